// A forward pass of some rows over pages of keys and values.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model.h"

namespace assay {

// ---- attention -------------------------------------------------------------------------------------------------------------

// Keys and values of many rows do not fit into the second cache: FAR ones are asked for by whoever reads some of them, before they
// are read. Those of few rows a product has asked for (`ask`).

// products of one query with the keys of whole pages; asks for the values, which are read next
template <bool FAR, int PAGES>
inline void score_some(int pages, const float* q, int dim, float* const* at, size_t offset, float* out) {
    if constexpr (PAGES > 1)
        if (pages < PAGES) return score_some<FAR, PAGES - 1>(pages, q, dim, at, offset, out);
    Vector sums[PAGES][PAGE_VECTORS] = {};
    for (int d = 0; d < dim; d++) {
        Vector a = splat(q[d]);
#pragma GCC unroll 8
        for (int p = 0; p < PAGES; p++)
#pragma GCC unroll 4
            for (int v = 0; v < PAGE_VECTORS; v++) sums[p][v] += a * load(at[p] + offset + d * PAGE + v * VL);
        if constexpr (FAR)
#pragma GCC unroll 8
            for (int p = 0; p < PAGES; p++) soon(at[p] + offset + (dim + d) * PAGE);
    }
    for (int p = 0; p < PAGES; p++)
        for (int v = 0; v < PAGE_VECTORS; v++) store(out + p * PAGE + v * VL, sums[p][v]);
}

// products of one query with the keys of all positions, in their order
template <bool FAR>
inline void score(const float* q, int dim, const Reach& reach, size_t offset, float* out) {
    constexpr int SOME = 8 / PAGE_VECTORS;  // as many sums as hide the latency of an addition
    int pages = reach.pages();
    for (int p = 0; p < pages; p += SOME)
        score_some<FAR, SOME>(std::min(SOME, pages - p), q, dim, reach.at.data() + p, offset, out + p * PAGE);
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
template <bool FAR, int HEADS, int VECTORS>
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
                if constexpr (FAR)
                    for (int f = 0; f < VECTORS * VL; f += LINE) soon(keys[h] + i * m.dim + f);
            }
    }
    for (int h = 0; h < HEADS; h++)
        for (int v = 0; v < VECTORS; v++) store(out + h * m.dim + first + v * VL, sums[h][v] * m.scales[h]);
}

template <bool FAR, int HEADS>
inline void mix(const Mixing& m, int heads, float* out) {
    if constexpr (HEADS > 1)
        if (heads < HEADS) return mix<FAR, HEADS - 1>(m, heads, out);
    int d = 0;
    if constexpr (HEADS <= 2)
        for (; d + 4 * VL <= m.dim; d += 4 * VL) mix_some<FAR, HEADS, 4>(m, d, out);
    for (; d + 2 * VL <= m.dim; d += 2 * VL) mix_some<FAR, HEADS, 2>(m, d, out);
    for (; d + VL <= m.dim; d += VL) mix_some<FAR, HEADS, 1>(m, d, out);
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
template <bool FAR>
inline void attend(
    const Engine& e, int layer, int position, const float* q, float* out, const Reach& reach, const Reach& next, float* scores) {
    static_assert(TOGETHER == ABREAST);
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
            score<FAR>(q + h * dim, dim, reach, of, scores + h * ld);
        }
        if (heads == TOGETHER) exponentials<TOGETHER>(scores, ld, n, 0, up(n, VL), scale, over);
        else for (int h = 0; h < heads; h++) exponentials<1>(scores + h * ld, ld, n, 0, up(n, VL), scale, over + h);
        mix<FAR, TOGETHER>({scores, ld, dim, reach, last ? next : reach, values, keys, over}, heads, out);
    }
}

// norms and turns queries and keys, and writes keys and values to the row's page
inline void place(const Engine& e, int layer, const Row& row, float* qkv) {
    const Shape& s = e.s;
    const Layer& l = e.layers[layer];
    int half = s.head_dim / 2;
    int at = row.position - (row.before ? row.before->length : 0), i = at % PAGE;
    float* page = row.own->at[at / PAGE] + static_cast<size_t>(layer) * s.kv_heads * e.head_floats();
    const float *cosine = e.cosine + static_cast<size_t>(row.position) * half, *sine = e.sine + static_cast<size_t>(row.position) * half;
    float* keys = qkv + static_cast<size_t>(s.heads) * s.head_dim;
    auto norm = [&](const Floats& w) { return s.qk_norm ? static_cast<const float*>(w) : nullptr; };
    norm_heads(qkv, norm(l.q_norm), s.heads, s.head_dim, s.eps, cosine, sine, qkv, s.head_dim);
    norm_heads(keys, norm(l.k_norm), s.kv_heads, s.head_dim, s.eps, cosine, sine, keys, s.head_dim);
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

// Asks for the keys and values of a layer that rows attend to, page by page; whether for at least half of them: more would drive out
// of the second cache what was asked for first.
inline bool ask(const Engine& e, int layer, const Row* rows, int n, Asking& asking) {
    constexpr size_t MOST = 1 << 17;  // floats
    size_t floats = e.head_floats() * e.s.kv_heads, all = 0;
    asking.clear();
    auto pages = [&](const Pages& of, int length) {
        for (int i = 0; i * PAGE < length; i++)
            if ((all += floats) <= MOST) asking.add(of.at[i] + layer * floats, floats);
    };
    for (int r = 0; r < n; r++) {
        int before = rows[r].before ? rows[r].before->length : 0;
        if (before && (!r || rows[r].before != rows[r - 1].before)) pages(*rows[r].before, before);
        pages(*rows[r].own, rows[r].position + 1 - before);
    }
    return all <= 2 * MOST;
}

// states behind the final norm in w.normed; rows of one sequence stand in the order of their positions
inline void forward(const Engine& e, const Row* rows, int n, Work& w) {
    const Shape& s = e.s;
    bool keeps = e.trail && std::any_of(rows, rows + n, [](const Row& row) { return row.keep != nullptr; });
    const Cells none{Shape{}}, &c = keeps ? e.trail->cells : none;
    w.kept.resize(keeps ? n : 0);
    for (size_t r = 0; r < w.kept.size(); r++) w.kept[r] = rows[r].keep;
    size_t layer_cell = 0;
    Asking* asking = ASKS && !e.half && ask(e, 0, rows, n, w.asking) ? &w.asking : nullptr;
    auto keep = [&](size_t cell) { return Beside{asking, keeps ? w.kept.data() : nullptr, layer_cell + cell}; };
    auto keep_rows = [&](const float* from, int ld, size_t cell, int count) {
        for (size_t r = 0; r < w.kept.size(); r++)
            if (w.kept[r]) put_away(w.kept[r] + layer_cell + cell, from + Work::size(static_cast<int>(r), ld), count);
    };
    for (int r = 0; r < n; r++)
        std::memcpy(w.x + Work::size(r, w.hidden), e.embedding + Work::size(rows[r].id, s.hidden), s.hidden * 4);
    keep_rows(w.x, w.hidden, s.layers ? c.x : c.last, s.hidden);
    auto norm = [&](const float* weight) {
        for (int r = 0; r < n; r++) rms_norm(w.x + Work::size(r, w.hidden), weight, s.hidden, s.eps, w.states(r));
    };
    for (int layer = 0; layer < s.layers; layer++, layer_cell += c.layer) {
        const Layer& l = e.layers[layer];
        norm(l.norm1);
        w.product(w.normed, w.hidden, n, l.qkv, w.heads, w.qkv, false, keep(c.qkv));
        w.next.take(rows[0]);
        for (int r = 0; r < n; r++) {
            float *q = w.heads + Work::size(r, w.qkv), *to = w.attended + Work::size(r, w.mixed);
            if (!r) place(e, layer, rows[r], q);
            if (r + 1 < n) place(e, layer, rows[r + 1], q + w.qkv);
            std::swap(w.reach, w.next);
            w.next.take(rows[std::min(r + 1, n - 1)]);
            (asking ? attend<false> : attend<true>)(e, layer, rows[r].position, q, to, w.reach, w.next, w.scores);
        }
        keep_rows(w.attended, w.mixed, c.mixed, s.heads * s.head_dim);
        w.asking.clear();
        w.product(w.attended, w.mixed, n, l.out, w.x, w.hidden, true, keep(c.middle));
        norm(l.norm2);
        w.product(w.normed, w.hidden, n, l.gate_up, w.inner, w.gate, false, keep(c.gate_up));
        for (int r = 0; r < n; r++) gate(w.inner + Work::size(r, w.gate), s.inner);
        if (asking && layer + 1 < s.layers) ask(e, layer + 1, rows, n, w.asking);
        w.product(w.inner, w.gate, n, l.down, w.x, w.hidden, true, keep(c.layer + c.x));  // of the last layer `last`
    }
    if (keeps) settled();
    norm(e.norm);
}

}  // namespace assay
