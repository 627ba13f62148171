// A forward pass of some rows over pages of keys and values.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model.h"

namespace assay {

// ---- attention -------------------------------------------------------------------------------------------------------------

// Keys and values of many rows do not fit into the second cache: whoever reads some asks for those that are read next.

// products of one query with the keys of whole pages; asks for the values, which are read next
template <int PAGES>
inline void score_some(int pages, const float* q, int dim, float* const* at, size_t offset, float* out) {
    if constexpr (PAGES > 1)
        if (pages < PAGES) return score_some<PAGES - 1>(pages, q, dim, at, offset, out);
    Vector sums[PAGES][PAGE_VECTORS] = {};
    for (int d = 0; d < dim; d++) {
        Vector a = splat(q[d]);
#pragma GCC unroll 8
        for (int p = 0; p < PAGES; p++)
#pragma GCC unroll 4
            for (int v = 0; v < PAGE_VECTORS; v++) sums[p][v] += a * load(at[p] + offset + d * PAGE + v * VL);
#pragma GCC unroll 8
        for (int p = 0; p < PAGES; p++) soon(at[p] + offset + (dim + d) * PAGE);
    }
    for (int p = 0; p < PAGES; p++)
        for (int v = 0; v < PAGE_VECTORS; v++) store(out + p * PAGE + v * VL, sums[p][v]);
}

// products of one query with the keys of all positions, in their order
inline void score(const float* q, int dim, const Reach& reach, size_t offset, float* out) {
    constexpr int SOME = 8 / PAGE_VECTORS;  // as many sums as hide the latency of an addition
    int pages = reach.pages();
    for (int p = 0; p < pages; p += SOME) score_some<SOME>(std::min(SOME, pages - p), q, dim, reach.at.data() + p, offset, out + p * PAGE);
    if (reach.split > reach.before) std::memmove(out + reach.before, out + reach.split, static_cast<size_t>(reach.own) * sizeof(float));
}

struct Mixing {  // values of some heads with weights, and what is read behind them
    const float* weights;  // [heads, ld]
    size_t ld;
    int dim;
    const Reach &reach, &next;
    const size_t *values, *keys;  // of each head: values in a page of `reach`, the keys that are read next in one of `next`
    const float* scales;
};

// their sums, VECTORS * VL numbers of each head, in the order of positions; heads together hide the latency of an addition
template <int HEADS, int VECTORS>
inline void mix_some(const Mixing& m, int first, float* out) {
    Vector sums[HEADS][VECTORS] = {};
    const float* weights = m.weights;
    for (int p = 0; p < m.reach.pages(); p++) {
        const float *values[HEADS], *keys[HEADS], *next = m.next.at[std::min(p, m.next.pages() - 1)];
#pragma GCC unroll 8
        for (int h = 0; h < HEADS; h++) values[h] = m.reach.at[p] + m.values[h] + first, keys[h] = next + m.keys[h] + first;
        int n = m.reach.counts(p);
        for (int i = 0; i < n; i++, weights++)
#pragma GCC unroll 8
            for (int h = 0; h < HEADS; h++) {
                Vector a = splat(weights[h * m.ld]);
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++) sums[h][v] += a * load(values[h] + i * m.dim + v * VL);
                for (int f = 0; f < VECTORS * VL; f += LINE) soon(keys[h] + i * m.dim + f);
            }
    }
    for (int h = 0; h < HEADS; h++)
        for (int v = 0; v < VECTORS; v++) store(out + h * m.dim + first + v * VL, sums[h][v] * m.scales[h]);
}

template <int HEADS>
inline void mix(const Mixing& m, int heads, float* out) {
    if constexpr (HEADS > 1)
        if (heads < HEADS) return mix<HEADS - 1>(m, heads, out);
    int d = 0;
    if constexpr (HEADS <= 2)
        for (; d + 4 * VL <= m.dim; d += 4 * VL) mix_some<HEADS, 4>(m, d, out);
    for (; d + 2 * VL <= m.dim; d += 2 * VL) mix_some<HEADS, 2>(m, d, out);
    for (; d + VL <= m.dim; d += VL) mix_some<HEADS, 1>(m, d, out);
    for (int h = 0; h < HEADS; h++)
        for (int i = d; i < m.dim; i++) {
            const float* w = m.weights + h * m.ld;
            float total = 0.0f;
            for (int p = 0; p < m.reach.pages(); p++)
                for (int k = 0; k < m.reach.counts(p); k++) total += *w++ * m.reach.at[p][m.values[h] + static_cast<size_t>(k) * m.dim + i];
            out[h * m.dim + i] = total * m.scales[h];
        }
}

// next: what is attended to behind this
inline void attend(
    const Engine& e, int layer, int position, const float* q, float* out, const Reach& reach, const Reach& next, float* scores) {
    const Shape& s = e.s;
    int share = s.heads / s.kv_heads, n = position + 1, dim = s.head_dim;
    float scale = 1.0f / std::sqrt(static_cast<float>(dim)), over[TOGETHER];
    size_t ld = Work::scores_wide(e), keys[TOGETHER], values[TOGETHER];
    auto keys_of = [&](int head) { return (static_cast<size_t>(layer) * s.kv_heads + head / share) * e.head_floats(); };
    for (int first = 0; first < s.heads; first += TOGETHER, q += TOGETHER * dim, out += TOGETHER * dim) {
        int heads = std::min(TOGETHER, s.heads - first), behind = first + TOGETHER;
        bool last = behind >= s.heads;
        for (int h = 0; h < heads; h++) {
            size_t of = keys_of(first + h);
            values[h] = of + static_cast<size_t>(PAGE) * dim, keys[h] = keys_of(last ? h : std::min(behind + h, s.heads - 1));
            score(q + h * dim, dim, reach, of, scores + h * ld);
            over[h] = 1.0f / exponentials(scores + h * ld, n, up(n, VL), scale);
        }
        mix<TOGETHER>({scores, ld, dim, reach, last ? next : reach, values, keys, over}, heads, out);
    }
}

// norms and turns queries and keys, and writes keys and values to the row's page
inline void place(const Engine& e, int layer, const Row& row, float* qkv) {
    const Shape& s = e.s;
    const Layer& l = e.layers[layer];
    int half = s.head_dim / 2;
    const float *cosine = e.cosine + static_cast<size_t>(row.position) * half, *sine = e.sine + static_cast<size_t>(row.position) * half;
    for (int h = 0; h < s.heads + s.kv_heads; h++) {
        float* x = qkv + static_cast<size_t>(h) * s.head_dim;
        if (s.qk_norm) rms_norm(x, h < s.heads ? l.q_norm : l.k_norm, s.head_dim, s.eps, x);
        rotate(x, cosine, sine, half);
    }
    int at = row.position - (row.before ? row.before->length : 0), i = at % PAGE;
    float* page = row.own->at[at / PAGE] + static_cast<size_t>(layer) * s.kv_heads * e.head_floats();
    const float* keys = qkv + static_cast<size_t>(s.heads) * s.head_dim;
    const float* values = keys + static_cast<size_t>(s.kv_heads) * s.head_dim;
    for (int h = 0; h < s.kv_heads; h++, page += e.head_floats(), keys += s.head_dim, values += s.head_dim) {
        for (int d = 0; d < s.head_dim; d++) page[static_cast<size_t>(d) * PAGE + i] = keys[d];
        std::memcpy(page + static_cast<size_t>(PAGE + i) * s.head_dim, values, s.head_dim * 4);
    }
}

// ---- a forward pass --------------------------------------------------------------------------------------------------------

inline void gate(float* g, int inner) {  // silu(g) * up, in the place of g
    const float* u = g + inner;
    int i = 0;
    for (; i + VL <= inner; i += VL) {
        Vector a = load(g + i);
        store(g + i, a / (1.0f + exponential(-a)) * load(u + i));
    }
    for (; i < inner; i++) g[i] = g[i] / (1.0f + std::exp(-g[i])) * u[i];
}

// states behind the final norm in w.normed; rows of one sequence stand in the order of their positions
inline void forward(const Engine& e, const Row* rows, int n, Work& w) {
    const Shape& s = e.s;
    bool keeps = e.trail && std::any_of(rows, rows + n, [](const Row& row) { return row.keep != nullptr; });
    size_t layer_cell = 0;
    auto keep = [&](const float* from, int ld, size_t cell, int count) {
        if (!keeps) return;
        for (int r = 0; r < n; r++)
            if (rows[r].keep) put_away(rows[r].keep + layer_cell + cell, from + Work::size(r, ld), count);
    };
    for (int r = 0; r < n; r++)
        std::memcpy(w.x + Work::size(r, w.hidden), e.embedding + Work::size(rows[r].id, s.hidden), s.hidden * 4);
    auto norm = [&](const float* weight) {
        for (int r = 0; r < n; r++) rms_norm(w.x + Work::size(r, w.hidden), weight, s.hidden, s.eps, w.states(r));
    };
    const Cells none{Shape{}}, &c = keeps ? e.trail->cells : none;
    for (int layer = 0; layer < s.layers; layer++, layer_cell += c.layer) {
        const Layer& l = e.layers[layer];
        keep(w.x, w.hidden, c.x, s.hidden);
        norm(l.norm1);
        w.product(w.normed, w.hidden, n, l.qkv, w.heads, w.qkv);
        keep(w.heads, w.qkv, c.qkv, (s.heads + 2 * s.kv_heads) * s.head_dim);
        for (int r = 0; r < n; r++) place(e, layer, rows[r], w.heads + Work::size(r, w.qkv));
        w.next.take(rows[0]);
        for (int r = 0; r < n; r++) {
            std::swap(w.reach, w.next);
            w.next.take(rows[std::min(r + 1, n - 1)]);
            float *q = w.heads + Work::size(r, w.qkv), *to = w.attended + Work::size(r, w.mixed);
            attend(e, layer, rows[r].position, q, to, w.reach, w.next, w.scores);
        }
        keep(w.attended, w.mixed, c.mixed, s.heads * s.head_dim);
        w.product(w.attended, w.mixed, n, l.out, w.x, w.hidden, true);
        keep(w.x, w.hidden, c.middle, s.hidden);
        norm(l.norm2);
        w.product(w.normed, w.hidden, n, l.gate_up, w.inner, w.gate);
        keep(w.inner, w.gate, c.gate_up, 2 * s.inner);
        for (int r = 0; r < n; r++) gate(w.inner + Work::size(r, w.gate), s.inner);
        w.product(w.inner, w.gate, n, l.down, w.x, w.hidden, true);
    }
    layer_cell = 0;
    keep(w.x, w.hidden, c.last, s.hidden);
    if (keeps) settled();
    norm(e.norm);
}

}  // namespace assay
