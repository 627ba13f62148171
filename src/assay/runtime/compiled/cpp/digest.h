// Digests of bytes: sums of mixed words, as `assay.runtime.learner.mixed` has them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace assay {

constexpr int64_t WORD = 8;       // bytes
constexpr int64_t ROW = 1 << 16;  // words that are added up to one, which is then mixed as a word of its own

inline uint64_t mixed_word(uint64_t word, uint64_t place) {
    uint64_t z = word + place * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// of n bytes, the last word filled up with zeros
inline uint64_t mixed_row(const unsigned char* bytes, int64_t n) {
    uint64_t sum = 0, word;
    int64_t whole = n / WORD;
    for (int64_t i = 0; i < whole; i++) {
        std::memcpy(&word, bytes + i * WORD, WORD);
        sum += mixed_word(word, static_cast<uint64_t>(i + 1));
    }
    if (n == whole * WORD) return sum;
    word = 0;
    std::memcpy(&word, bytes + whole * WORD, static_cast<size_t>(n - whole * WORD));
    return sum + mixed_word(word, static_cast<uint64_t>(whole + 1));
}

// of n bytes in rows of so many words
inline uint64_t mixed_total(const void* from, int64_t n, int64_t words = ROW) {
    auto* bytes = static_cast<const unsigned char*>(from);
    uint64_t total = 0, row = 1;
    for (int64_t some = WORD * words; n > 0; n -= some, bytes += some) total += mixed_word(mixed_row(bytes, std::min(n, some)), row++);
    return total;
}

}  // namespace assay
