// Matrix products of bfloat16: both factors are rounded to it, sums are float32. A number of the result is summed in the order of
// the inputs, whatever rows stand beside it. Where the processor multiplies pairs of bfloat16, two inputs at a time; elsewhere what
// is rounded stays float32, and products are those of `linear`.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "linear.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace assay {

typedef uint16_t Halves __attribute__((vector_size(VL * 2), aligned(2), may_alias));

// the nearest, ties to even; NaN stays
inline Bits rounded(Vector x) {
    Bits all = reinterpret_cast<const Bits&>(x), nearest = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
    return (all & 0x7fffffffu) > 0x7f800000u ? all >> 16 | 0x40u : nearest;
}

inline uint16_t rounded(float x) { return static_cast<uint16_t>(rounded(splat(x))[0]); }

inline float widened(uint32_t upper) {  // what the upper half stands for
    upper &= 0xffff0000u;
    float x;
    std::memcpy(&x, &upper, sizeof x);
    return x;
}

#if defined(__AVX512BF16__)

// y [pairs of numbers] = x [n]; behind the last of an odd number stands 0
inline void pairs_of(const float* x, int n, uint32_t* y) {
    auto* to = reinterpret_cast<uint16_t*>(y);
    int i = 0;
    for (; i + VL <= n; i += VL) *reinterpret_cast<Halves*>(to + i) = __builtin_convertvector(rounded(load(x + i)), Halves);
    for (; i < n; i++) to[i] = rounded(x[i]);
    if (n & 1) to[n] = 0;
}

struct Inputs {  // two of them, for VL outputs
    __m512bh both;
    explicit Inputs(const uint32_t* w) : both((__m512bh)_mm512_loadu_si512(w)) {}
};
inline Vector with_pair(Vector sum, uint32_t x, const Inputs& w) {
    return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(x)), w.both);
}
class HalfMatrix {  // [outputs, inputs] as [panel][pair of inputs][PANEL], zeros behind the last output and the last input
  public:
    int outputs = 0, inputs = 0;

    HalfMatrix() = default;
    HalfMatrix(int n, int k) : outputs(n), inputs(k), data_(static_cast<size_t>(up(n, PANEL)) * pairs()) {}

    int pairs() const { return (inputs + 1) / 2; }
    const uint32_t* panel(int first) const { return words() + static_cast<size_t>(first) * pairs(); }
    void pack(const float* w) {
        for (int i = 0; i < outputs; i++)
            for (int j = 0; j < inputs; j++) at(i, j) = rounded(*w++);
    }
    void unpack(float* w) const {
        for (int i = 0; i < outputs; i++)
            for (int j = 0; j < inputs; j++) *w++ = widened(static_cast<uint32_t>(at(i, j)) << 16);
    }

  private:
    Floats data_;

    uint32_t* words() const { return reinterpret_cast<uint32_t*>(static_cast<float*>(data_)); }
    uint16_t& at(int output, int input) const {
        size_t word = (static_cast<size_t>(output / PANEL) * pairs() + input / 2) * PANEL + output % PANEL;
        return reinterpret_cast<uint16_t*>(words())[2 * word + input % 2];
    }
};

template <int ROWS>
inline void half_tile(int rows, const uint32_t* x, size_t ldx, const uint32_t* w, int pairs, float* y, size_t ldy, bool add) {
    if constexpr (ROWS > 1)
        if (rows < ROWS) return half_tile<ROWS - 1>(rows, x, ldx, w, pairs, y, ldy, add);
    Vector sums[ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++) sums[r][v] = add ? load(y + r * ldy + v * VL) : Vector{};
    for (int i = 0; i < pairs; i++)
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++) {
            Inputs b(w + static_cast<size_t>(i) * PANEL + v * VL);
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) sums[r][v] = with_pair(sums[r][v], x[r * ldx + i], b);
        }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < TILE_VECTORS; v++) store(y + r * ldy + v * VL, sums[r][v]);
}

// As `linear`; `room` holds the rows rounded, up(m.inputs, 2) / 2 words of each.
inline void half_linear(const float* x, size_t ldx, int rows, const HalfMatrix& m, float* room, float* y, size_t ldy, bool add) {
    auto* halves = reinterpret_cast<uint32_t*>(room);
    size_t wide = static_cast<size_t>(m.pairs());
    for (int r = 0; r < rows; r++) pairs_of(x + r * ldx, m.inputs, halves + r * wide);
    for (int first = 0; first < m.outputs; first += PANEL)
        for (int r = 0; r < rows; r += TILE_ROWS)
            half_tile<TILE_ROWS>(
                std::min(TILE_ROWS, rows - r), halves + r * wide, wide, m.panel(first), m.pairs(), y + r * ldy + first, ldy, add);
}

#else

class HalfMatrix {  // [outputs, inputs], rounded
  public:
    HalfMatrix() = default;
    HalfMatrix(int n, int k) : data_(n, k) {}

    const Matrix& data() const { return data_; }
    void pack(const float* w) {
        for (int i = 0; i < data_.outputs; i++)
            for (int j = 0; j < data_.inputs; j++) data_.at(i, j) = widened(uint32_t{rounded(*w++)} << 16);
    }
    void unpack(float* w) const { data_.unpack(w); }

  private:
    Matrix data_;
};

// As `linear`; `room` holds the rows rounded.
inline void half_linear(const float* x, size_t ldx, int rows, const HalfMatrix& m, float* room, float* y, size_t ldy, bool add) {
    int n = m.data().inputs;
    for (int r = 0; r < rows; r++) {
        const float* from = x + r * ldx;
        float* to = room + static_cast<size_t>(r) * n;
        int i = 0;
        for (; i + VL <= n; i += VL) {
            Bits upper = rounded(load(from + i)) << 16;
            store(to + i, reinterpret_cast<Vector&>(upper));
        }
        for (; i < n; i++) to[i] = widened(uint32_t{rounded(from[i])} << 16);
    }
    linear(room, n, rows, m.data(), y, ldy, add);
}

#endif

}  // namespace assay
