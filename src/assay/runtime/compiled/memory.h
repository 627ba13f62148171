// Memory for numbers, on large pages where the system has them: their addresses are looked up sooner, and asking ahead crosses fewer
// borders.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASSAY_SANITIZED
#endif

namespace assay {

constexpr size_t LARGE_PAGE = 2 << 20;  // bytes

// at an address that `align` divides; null where there is none
inline void* aligned(size_t align, size_t bytes) {
    void* found = nullptr;
    if (posix_memalign(&found, align, bytes)) return nullptr;
#if defined(MADV_HUGEPAGE)
    if (bytes >= LARGE_PAGE) madvise(found, bytes, MADV_HUGEPAGE);
#endif
    return found;
}

// Pieces of some kilobytes lie behind one another in slabs, and are taken again by who wants as much. A slab goes with the last of its
// pieces that is in use.
class Slabs {
  public:
    static void* take(size_t bytes) {  // on a cache line; null where there is none
        if (bytes < SMALL) return aligned(64, bytes);
        if (bytes > PIECE) return aligned(bytes < LARGE_PAGE ? 64 : LARGE_PAGE, bytes);
        Slabs& s = all();
        std::lock_guard<std::mutex> held(s.lock_);
        size_t whole = lines(bytes);
        for (Spare** at = &s.spares_; *at; at = &(*at)->next)
            if ((*at)->bytes == whole) {
                void* found = *at;
                *at = (*at)->next;
                slab_of(found)->used++;
                return found;
            }
        if (!s.newest_ || s.newest_->end + whole > SLAB) {
            void* fresh = aligned(SLAB, SLAB);
            if (!fresh) return nullptr;
            if (s.newest_) s.leave(s.newest_);
            s.newest_ = new (fresh) Slab;
        }
        s.newest_->used++;
        void* found = reinterpret_cast<char*>(s.newest_) + s.newest_->end;
        s.newest_->end += whole;
        return found;
    }
    static void give(void* piece, size_t bytes) {
        if (bytes < SMALL || bytes > PIECE) return std::free(piece);
        Slabs& s = all();
        std::lock_guard<std::mutex> held(s.lock_);
        s.spares_ = new (piece) Spare{s.spares_, lines(bytes)};
        s.leave(slab_of(piece));
    }

  private:
#if defined(ASSAY_SANITIZED)
    static constexpr size_t PIECE = 0;  // each by itself, so that what is read beside it is seen
#else
    static constexpr size_t PIECE = 1 << 20;
#endif
    static constexpr size_t SMALL = 4 << 10, SLAB = 8 << 20;  // bytes

    struct Slab {
        size_t end = 64, used = 1;  // bytes, these among them; and pieces in use, one more while it is the newest
    };
    struct Spare {  // in the place of a piece
        Spare* next;
        size_t bytes;
    };

    std::mutex lock_;
    Slab* newest_ = nullptr;
    Spare* spares_ = nullptr;

    static Slabs& all() {
        static Slabs* one = new Slabs;  // for ever: others may end behind it
        return *one;
    }
    static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
    static Slab* slab_of(void* piece) { return reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(piece) & ~(SLAB - 1)); }
    void leave(Slab* slab) {
        if (--slab->used) return;
        for (Spare** at = &spares_; *at;)
            if (slab_of(*at) == slab) *at = (*at)->next;
            else at = &(*at)->next;
        std::free(slab);
    }
};

inline std::atomic<int64_t> bytes_held{0};  // by all Floats

class Floats {  // zeros, on a cache line
  public:
    Floats() = default;
    explicit Floats(size_t n) { room(n); }
    Floats(Floats&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr, other.size_ = 0; }
    Floats& operator=(Floats&& other) noexcept {
        std::swap(data_, other.data_), std::swap(size_, other.size_);
        return *this;
    }
    ~Floats() { drop(); }
    operator float*() const { return data_; }

    void zero() {
        if (size_) std::memset(data_, 0, size_ * sizeof(float));
    }
    void room(size_t n) {  // for n at least; zeros where there was less, else what stood there
        if (n <= size_) return;
        drop();
        data_ = static_cast<float*>(Slabs::take(bytes(n)));
        if (!data_) throw std::bad_alloc();
        size_ = n;
        bytes_held += static_cast<int64_t>(n * sizeof(float));
        zero();
    }

  private:
    static size_t bytes(size_t n) { return n * sizeof(float) + 64; }  // a vector may be read that begins at the last number
    void drop() {
        if (!data_) return;
        Slabs::give(data_, bytes(size_));
        bytes_held -= static_cast<int64_t>(size_ * sizeof(float));
        data_ = nullptr, size_ = 0;
    }
    float* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace assay
