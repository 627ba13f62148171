// Work in parts that no two threads share.

#pragma once

#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace assay {

enum Status : int32_t { DONE = 0, NO_MEMORY = 1, NO_THREAD = 2 };

// what `work` returns, or that memory did not suffice
template <class Work_>
int32_t guarded(Work_ work) noexcept {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
}

// runs work(part) for each part in [0, parts) on so many threads; `room` makes what a thread needs. No part waits for another.
template <class Room, class Work_>
inline int32_t share_out(int parts, int threads, Room room, Work_ work) {
    std::atomic<int> next{0};
    std::atomic<int32_t> status{DONE};
    auto run = [&] {
        try {
            auto own = room();
            for (int part; status == DONE && (part = next++) < parts;) work(part, own);
        } catch (const std::bad_alloc&) {
            status = NO_MEMORY;
        }
    };
    std::vector<std::thread> others;
    try {
        for (int t = 1; t < std::min(threads, parts); t++) others.emplace_back(run);
    } catch (const std::system_error&) {
        status = NO_THREAD;
    } catch (const std::bad_alloc&) {
        status = NO_MEMORY;
    }
    run();
    for (std::thread& other : others) other.join();
    return status;
}

// sequences in units of at most `block` tokens, a longer one by itself: unit u is [starts[u], starts[u + 1])
inline std::vector<int> units(const int64_t* offsets, int n, int block) {
    std::vector<int> starts;
    int64_t held = 0;
    for (int i = 0; i < n; i++) {
        int64_t length = offsets[i + 1] - offsets[i];
        if (starts.empty() || held + length > block) starts.push_back(i), held = 0;
        held += length;
    }
    starts.push_back(n);
    return starts;
}

}  // namespace assay
