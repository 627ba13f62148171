// Vectors as wide as the processor's, and exponentials.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace assay {

// A tile of the matrix product keeps TILE_ROWS x TILE_VECTORS sums in registers: 32 registers, 16, or 32 of a quarter the width.
#if defined(__AVX512F__)
constexpr int VL = 16, TILE_ROWS = 12, TILE_VECTORS = 2;
#elif defined(__AVX2__)
constexpr int VL = 8, TILE_ROWS = 6, TILE_VECTORS = 2;
#else
constexpr int VL = 4, TILE_ROWS = 6, TILE_VECTORS = 4;
#endif
constexpr int PANEL = VL * TILE_VECTORS;  // outputs side by side in packed weights
constexpr int PAGE = 16;                  // positions
constexpr int PAGE_VECTORS = PAGE / VL;
constexpr float LOWEST = -87.0f, HIGHEST = 88.0f;  // exponents of normal numbers of float32
constexpr float NOTHING = -std::numeric_limits<float>::infinity();

// aligned(4): any float may begin a vector
typedef float Vector __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef uint32_t Bits __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(VL * 8), aligned(8), may_alias));

inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }
inline Vector splat(float x) { return x - Vector{}; }  // a sum with zero would be computed: it turns -0 into 0
inline int up(int n, int m) { return (n + m - 1) / m * m; }

constexpr int LINE = 16;  // floats
#if defined(__AVX512F__)
constexpr bool ASKS = true;
#else
constexpr bool ASKS = false;  // on Zen 3 nothing is won by it
#endif
inline void soon(const float* p) {  // asks for what lies there, which may be anywhere
    if (ASKS) __builtin_prefetch(p);
}
inline void nearer(const float* p) {  // the same, into the second cache
    if (ASKS) __builtin_prefetch(p, 0, 2);
}

// copies whole lines, past the caches where the processor can; `settled` comes before another thread reads them
inline void put_away(float* to, const float* from, int n) {
#if defined(__AVX512F__)
    for (int i = 0; i < n; i += LINE) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
#elif defined(__AVX__)
    for (int i = 0; i < up(n, LINE); i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#else
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
#endif
}
inline void settled() {
#if defined(__AVX__)
    _mm_sfence();
#endif
}

inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

// v with its lanes swapped in blocks of BY
template <int BY, int... I>
inline Vector swapped(Vector v, std::integer_sequence<int, I...>) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(v, v, (I ^ BY)...);
#else
    return Vector{v[I ^ BY]...};
#endif
}

template <int BY = VL / 2>
inline float sum(Vector v) {
    v += swapped<BY>(v, std::make_integer_sequence<int, VL>{});
    if constexpr (BY > 1) return sum<BY / 2>(v);
    else return v[0];
}

template <int BY = VL / 2>
inline float largest(Vector v) {
    v = larger(v, swapped<BY>(v, std::make_integer_sequence<int, VL>{}));
    if constexpr (BY > 1) return largest<BY / 2>(v);
    else return v[0];
}

// e^x within 2 ulp, of x cut to [LOWEST, HIGHEST]: 2^n of the nearest n, and a polynomial of what is left (Cephes' expf). NaN stays.
inline Vector exponential(Vector x) {
    x = x < LOWEST ? splat(LOWEST) : x;
    x = x > HIGHEST ? splat(HIGHEST) : x;
    const Vector shift = splat(12582912.0f);  // 1.5 * 2^23: added, it leaves the nearest whole number in the lowest bits
    Vector shifted = x * 1.44269504088896341f + shift;
    Vector n = shifted - shift;
    Vector r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Vector p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    Bits power = (reinterpret_cast<Bits&>(shifted) - reinterpret_cast<const Bits&>(shift) + 127u) << 23;
    return p * reinterpret_cast<Vector&>(power);
}

}  // namespace assay
