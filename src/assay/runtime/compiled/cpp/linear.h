// Matrix products with packed weights. A number of the result is summed in the order of the inputs, whatever rows stand beside it.

#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory.h"
#include "vectors.h"

namespace assay {

struct Matrix {  // [outputs, inputs] as [panel][input][PANEL], zeros behind the last output
    int outputs = 0, inputs = 0;
    Floats data;

    Matrix() = default;
    Matrix(int n, int k) : outputs(n), inputs(k), data(floats()) {}

    size_t floats() const { return static_cast<size_t>(up(outputs, PANEL)) * inputs; }
    float& at(int output, int input) const {
        return data[(static_cast<size_t>(output / PANEL) * inputs + input) * PANEL + output % PANEL];
    }
    void pack(const float* w) { pack(w, 0, outputs); }
    void pack(const float* w, int first, int n) {  // the outputs [first, first + n), from [n, inputs]
        for (int i = first; i < first + n; i++) {
            float* to = &at(i, 0);
            for (int j = 0; j < inputs; j++, to += PANEL) *to = *w++;
        }
    }
    void pack_across(const float* w, int first, int n) {  // the inputs [first, first + n), from [n, outputs]
        for (int i = 0; i < outputs; i += PANEL)
            for (int j = 0; j < n; j++)
                std::memcpy(&at(i, first + j), w + static_cast<size_t>(j) * outputs + i, std::min(PANEL, outputs - i) * sizeof(float));
    }
    void unpack(float* w) const {
        for (int i = 0; i < outputs; i++)
            for (int j = 0; j < inputs; j++) *w++ = at(i, j);
    }
};

constexpr int STRETCH = 16, ASKED = 32;  // inputs of a product between which so many lines are asked for

// What is read soon: a product asks for it while it has no other use for the memory.
class Asking {
  public:
    void clear() { runs_.clear(), next_ = 0, at_ = end_ = nullptr; }
    void add(const float* from, size_t floats) { runs_.push_back({from, from + floats}); }
    void some() {
        for (int n = 0; n < ASKED; n++, at_ += LINE) {
            if (at_ == end_) {
                if (next_ == runs_.size()) return;
                at_ = runs_[next_].first, end_ = runs_[next_++].second;
            }
            nearer(at_);
        }
    }

  private:
    std::vector<std::pair<const float*, const float*>> runs_;  // whole lines
    size_t next_ = 0;
    const float *at_ = nullptr, *end_ = nullptr;
};

struct Beside {  // what a product does beside itself
    Asking* asking = nullptr;      // null for nothing
    float* const* kept = nullptr;  // of each row, where its results are put away too; null for nowhere
    size_t cell = 0;
};

// y [ROWS, VECTORS * VL] becomes the sum over i of x(r, i) w[i], or has it added, in the order of i. x(r, i) is x[r * ldx + i];
// ACROSS it is x[i * ldx + r].
template <int ROWS, int VECTORS = TILE_VECTORS, bool ACROSS = false, bool ASKS = false>
inline void tile(
    const float* x, size_t ldx, const float* w, size_t ldw, int inputs, float* y, size_t ldy, bool add, Asking* asking = nullptr) {
    Vector sums[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) sums[r][v] = add ? load(y + r * ldy + v * VL) : Vector{};
    auto some = [&](int first, int last) {
        for (int i = first; i < last; i++) {
            Vector b[VECTORS];
            for (int v = 0; v < VECTORS; v++) b[v] = load(w + i * ldw + v * VL);
            const float* a = ACROSS ? x + i * ldx : x + i;
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) {
                float factor = ACROSS ? a[r] : a[r * ldx];
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++) sums[r][v] += factor * b[v];
            }
        }
    };
    if constexpr (ASKS)
        for (int i = 0; i < inputs; i += STRETCH) {
            asking->some();
            some(i, std::min(i + STRETCH, inputs));
        }
    else some(0, inputs);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) store(y + r * ldy + v * VL, sums[r][v]);
}

template <int ROWS>
inline void tile_of(int rows, const float* x, size_t ldx, const float* w, int inputs, float* y, size_t ldy, bool add, Asking* asking) {
    if constexpr (ROWS > 1)
        if (rows != ROWS) return tile_of<ROWS - 1>(rows, x, ldx, w, inputs, y, ldy, add, asking);
    if (asking) tile<ROWS, TILE_VECTORS, false, true>(x, ldx, w, PANEL, inputs, y, ldy, add, asking);
    else tile<ROWS>(x, ldx, w, PANEL, inputs, y, ldy, add);
}

// y [rows, up(outputs, PANEL)] = x [rows, inputs] w', or added to it; a panel stays in the first cache while all rows pass it
inline void linear(
    const float* x, size_t ldx, int rows, const Matrix& m, float* y, size_t ldy, bool add = false, const Beside& beside = {}) {
    for (int first = 0; first < m.outputs; first += PANEL) {
        const float* w = m.data + static_cast<size_t>(first) * m.inputs;
        for (int r = 0; r < rows; r += TILE_ROWS) {
            int some = std::min(TILE_ROWS, rows - r);
            float* to = y + r * ldy + first;
            tile_of<TILE_ROWS>(some, x + r * ldx, ldx, w, m.inputs, to, ldy, add, beside.asking);
            if (!beside.kept) continue;
            int wide = std::min(PANEL, m.outputs - first);
            for (int i = 0; i < some; i++)
                if (float* kept = beside.kept[r + i]) put_away(kept + beside.cell + first, to + i * ldy, wide);
        }
    }
}

template <int VECTORS, bool ACROSS>
inline void column(const float* x, size_t ldx, int rows, const float* w, size_t ldw, int inputs, float* y, size_t ldy, bool add) {
    auto each = [&](auto size) {
        constexpr int ROWS = decltype(size)::value;
        for (; rows >= ROWS; rows -= ROWS, x += ROWS * (ACROSS ? 1 : ldx), y += ROWS * ldy) {
            if (ACROSS && add)
                for (int r = 0; r < std::min(ROWS, rows - ROWS); r++)
                    for (int v = 0; v < VECTORS * VL; v += LINE) soon(y + (ROWS + r) * ldy + v);
            tile<ROWS, VECTORS, ACROSS>(x, ldx, w, ldw, inputs, y, ldy, add);
        }
    };
    each(std::integral_constant<int, TILE_ROWS>{});
    if constexpr (TILE_ROWS > 8) each(std::integral_constant<int, 8>{});
    each(std::integral_constant<int, 4>{});
    each(std::integral_constant<int, 2>{});
    each(std::integral_constant<int, 1>{});
}

// y [rows, up(outputs, VL)] = x [rows, inputs] w [inputs, outputs], or added to it; ACROSS x is [inputs, rows]
template <bool ACROSS>
inline void product(
    const float* x, size_t ldx, int rows, const float* w, size_t ldw, int inputs, int outputs, float* y, size_t ldy, bool add) {
    int first = 0;
    for (; first + PANEL <= up(outputs, VL); first += PANEL)
        column<TILE_VECTORS, ACROSS>(x, ldx, rows, w + first, ldw, inputs, y + first, ldy, add);
    for (; first < outputs; first += VL) column<1, ACROSS>(x, ldx, rows, w + first, ldw, inputs, y + first, ldy, add);
}

}  // namespace assay
