// Threads take and give back pieces of all sizes: none overlaps another, each lies on a line, and what is over goes back to the system.
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "memory.h"

using assay::Slabs;

struct Piece {
    unsigned char* at;
    size_t bytes;
    unsigned char mark;

    bool whole() const {
        for (size_t i = 0; i < bytes; i += 61)
            if (at[i] != mark) return false;
        return at[bytes - 1] == mark;
    }
};

static size_t resident() {
    size_t all = 0, here = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    if (!file || std::fscanf(file, "%zu %zu", &all, &here) != 2) std::exit(3);
    std::fclose(file);
    return here * 4096;
}

static void law(unsigned seed, int* faults) {
    std::mt19937 random(seed);
    size_t sizes[] = {1, 64, 4095, 4096, 4097, 65600, 360512, 1 << 20, (1 << 20) + 1, 3 << 20};
    std::vector<Piece> held;
    for (int step = 0; step < 800; step++) {
        if (held.size() < 24 && random() % 2) {
            size_t bytes = sizes[random() % 10];
            Piece p{static_cast<unsigned char*>(Slabs::take(bytes)), bytes, static_cast<unsigned char>(random())};
            if (!p.at || reinterpret_cast<uintptr_t>(p.at) % 64) ++*faults;
            std::memset(p.at, p.mark, bytes);
            held.push_back(p);
        } else if (!held.empty()) {
            std::swap(held[random() % held.size()], held.back());
            if (!held.back().whole()) ++*faults;
            Slabs::give(held.back().at, held.back().bytes);
            held.pop_back();
        }
    }
    for (Piece& p : held) {
        if (!p.whole()) ++*faults;
        Slabs::give(p.at, p.bytes);
    }
}

int main() {
    int faults[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(law, i, faults + i);
    for (std::thread& t : threads) t.join();
    void* first = Slabs::take(70000);
    Slabs::give(first, 70000);
    bool again = Slabs::take(70000) == first;
    size_t before = resident();
    std::vector<void*> many;
    for (int i = 0; i < 200; i++) many.push_back(std::memset(Slabs::take(900000), 1, 900000));
    size_t most = resident();
    for (void* piece : many) Slabs::give(piece, 900000);
    std::printf("faults %d again %d grown %d gone %d\n", faults[0] + faults[1] + faults[2] + faults[3], again,
                most - before > 150000000, resident() < before + 20000000);
}
