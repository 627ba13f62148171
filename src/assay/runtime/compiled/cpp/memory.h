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

#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASSAY_SANITIZED
#endif

namespace assay {

// Memory of the system's own, at an address that `align` divides, on large pages where it has them; null where there is none. The C
// library would hold as much again for what is ahead of that address.
inline size_t whole_pages(size_t bytes) { return (bytes + 0xffff) & ~size_t{0xffff}; }  // of any system
inline void* mapped(size_t bytes, size_t align) {
    size_t whole = whole_pages(bytes);
    auto anywhere = [](size_t n) {
        void* found = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return found == MAP_FAILED ? uintptr_t{0} : reinterpret_cast<uintptr_t>(found);
    };
    auto leave = [](uintptr_t from, size_t n) {
        if (n) munmap(reinterpret_cast<void*>(from), n);
    };
    uintptr_t begin = anywhere(whole);  // often just below the one before, at such an address
    if (begin % align) {
        leave(begin, whole);
        uintptr_t from = anywhere(whole + align);
        begin = (from + align - 1) / align * align;
        if (from) leave(from, begin - from), leave(begin + whole, from + align - begin);
    }
#if defined(MADV_HUGEPAGE)
    if (begin) madvise(reinterpret_cast<void*>(begin), whole, MADV_HUGEPAGE);
#endif
    return reinterpret_cast<void*>(begin);
}
inline void unmapped(void* from, size_t bytes) { munmap(from, whole_pages(bytes)); }

// Pieces of some kilobytes lie behind one another in slabs, and are taken again by who wants as much. A slab goes with the last of its
// pieces that is in use.
class Slabs {
  public:
    static void* take(size_t bytes) {  // on a cache line; null where there is none
        if (bytes < SMALL || (bytes > PIECE && bytes < LARGE)) return std::aligned_alloc(64, lines(bytes));
        if (bytes > PIECE) return mapped(bytes, LARGE);
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
            void* fresh = mapped(SLAB, SLAB);
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
        if (bytes < SMALL || (bytes > PIECE && bytes < LARGE)) return std::free(piece);
        if (bytes > PIECE) return unmapped(piece, bytes);
        Slabs& s = all();
        std::lock_guard<std::mutex> held(s.lock_);
        s.spares_ = new (piece) Spare{s.spares_, lines(bytes)};
        s.leave(slab_of(piece));
    }

  private:
#if defined(ASSAY_SANITIZED)
    static constexpr size_t PIECE = 0, LARGE = SIZE_MAX;  // each by itself, so that what is read beside it is seen
#else
    static constexpr size_t PIECE = 1 << 20, LARGE = 2 << 20;
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
        unmapped(slab, SLAB);
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
