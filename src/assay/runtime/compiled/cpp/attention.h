// Attention over a forest, with its gradient: a node sees itself and all nodes above it.
//
// Heads lie one behind the other, each [nodes, wide]; keys and values also with nodes innermost, so that scores need no sum across
// a vector. A node's numbers are summed in the order of its path, whatever branches off elsewhere.

#pragma once

#include "forest.h"
#include "linear.h"
#include "trail.h"

namespace assay {

constexpr int QUERIES = 2 * TILE_ROWS;  // whose scores exist at once

struct Heads {  // what one thread computes in
    Floats q, k, v, kt, vt, dq, dk, dv, weights, over, slopes, mixed, dmixed;
};

// in d, gradients by the weights p: gradients by what these were made of
inline void softmax_back(const float* p, float* d, int valid, int all, float scale) {
    std::fill(d + valid, d + all, 0.0f);
    Vector sums = {};
    for (int i = 0; i < all; i += VL) sums += load(p + i) * load(d + i);
    float mean = sum(sums);
    for (int i = 0; i < all; i += VL) store(d + i, load(p + i) * (load(d + i) - mean) * scale);
}

// dx += and dw +=, of y = x * scale * w, where scale is rms_scale(x)
inline void rms_norm_back(const float* x, const float* w, int n, float scale, const float* dy, float* dx, float* dw) {
    Vector sums = {};
    int i = 0;
    for (; i + VL <= n; i += VL) {
        Vector d = load(dy + i), a = load(x + i) * scale;
        sums += d * load(w + i) * a;
        store(dw + i, load(dw + i) + d * a);
    }
    float radial = sum(sums);
    for (; i < n; i++) {
        radial += dy[i] * w[i] * x[i] * scale;
        dw[i] += dy[i] * x[i] * scale;
    }
    radial *= scale / static_cast<float>(n);
    for (i = 0; i + VL <= n; i += VL) store(dx + i, load(dx + i) + (load(dy + i) * load(w + i) - load(x + i) * radial) * scale);
    for (; i < n; i++) dx[i] += (dy[i] * w[i] - x[i] * radial) * scale;
}

class Attention {
  public:
    Attention(const Shape& s, const float* cosine, const float* sine, const Forest& f, Heads& h, bool backward)
        : s(s), cosine(cosine), sine(sine), f(f), h(h), n(f.nodes()), dim(s.head_dim), wide(up(dim, VL)), head(size_t(n) * wide),
          turned(up(n, VL) + PANEL), backward_(backward), scale(1.0f / std::sqrt(static_cast<float>(dim))) {
        int longest = 0;
        for (const Span& span : f.spans) longest = std::max(longest, span.before + span.count);
        ld = up(longest, PANEL) + PANEL;
        h.q.room(head * s.heads), h.k.room(head * s.kv_heads), h.v.room(head * s.kv_heads);
        h.kt.room(turned * wide * s.kv_heads), h.weights.room(QUERIES * ld), h.over.room(QUERIES), h.mixed.room(QUERIES * wide);
        if (!backward) return;
        h.vt.room(turned * wide * s.kv_heads), h.slopes.room(QUERIES * ld), h.dmixed.room(QUERIES * wide);
        h.dq.room(head * s.heads), h.dk.room(head * s.kv_heads), h.dv.room(head * s.kv_heads);
    }

    // reads queries, keys and values of each node from its row of qkv; norms, where there are any, and turns the first two
    void place(const StateRows& qkv, const float* q_norm, const float* k_norm) {
        int keys = s.heads * dim, values = keys + s.kv_heads * dim, all = values + s.kv_heads * dim;
        for (int node = 0; node < n; node++) {
            if (node + 1 < n) qkv.ask(node + 1, 0, all);
            const float *from = qkv[node], *c = angle(cosine, node), *t = angle(sine, node);
            norm_heads(from, s.qk_norm ? q_norm : nullptr, s.heads, dim, s.eps, c, t, h.q + at(node), head);
            norm_heads(from + keys, s.qk_norm ? k_norm : nullptr, s.kv_heads, dim, s.eps, c, t, h.k + at(node), head);
            for (int i = 0; i < s.kv_heads; i++) std::memcpy(h.v + i * head + at(node), from + values + i * dim, dim * sizeof(float));
            for (int i = 0; dim < wide && i < s.heads + 2 * s.kv_heads; i++) {
                float* of = i < s.heads ? h.q + i * head : i < s.heads + s.kv_heads ? h.k + (i - s.heads) * head
                                                                                  : h.v + (i - s.heads - s.kv_heads) * head;
                std::fill(of + at(node) + dim, of + at(node) + wide, 0.0f);
            }
        }
        for (int i = 0; i < s.kv_heads; i++) {
            turn(h.k + i * head, h.kt + i * turned * wide);
            if (backward_) turn(h.v + i * head, h.vt + i * turned * wide);
        }
    }

    void forward(float* mixed, size_t ldm) {
        each_chunk([&](const Span& span, int i, int kv, int first, int count) {
            weigh(span, first, count, h.q + i * head + at(span.start + first), kv);
            std::memset(h.mixed, 0, at(count) * sizeof(float));
            each_range(span, first + count, [&](int start, int nodes, int seen) {
                product<false>(h.weights + seen, ld, count, h.v + kv * head + at(start), wide, nodes, wide, h.mixed, wide, true);
            });
            for (int j = 0; j < count; j++) {
                float* to = mixed + (span.start + first + j) * ldm + static_cast<size_t>(i) * dim;
                for (int d = 0; d < dim; d++) to[d] = h.mixed[at(j) + d] * h.over[j];
            }
        });
    }

    // of what `forward` gave; leaves gradients by what `place` read in dqkv, and adds those by the norms to their sums
    void backward(
        const float* dmixed, size_t ldm, const StateRows& qkv, float* dqkv, size_t ldq, const float* q_norm, const float* k_norm,
        float* dq_norm, float* dk_norm) {
        std::memset(h.dq, 0, head * s.heads * sizeof(float));
        std::memset(h.dk, 0, head * s.kv_heads * sizeof(float)), std::memset(h.dv, 0, head * s.kv_heads * sizeof(float));
        std::memset(h.dmixed, 0, at(QUERIES) * sizeof(float));
        each_chunk([&](const Span& span, int i, int kv, int first, int count) {
            const float* q = h.q + i * head + at(span.start + first);
            weigh(span, first, count, q, kv);
            for (int j = 0; j < count; j++)
                for (int k = 0; k < up(span.before + first + count, VL); k += VL)
                    store(h.weights + j * ld + k, load(h.weights + j * ld + k) * h.over[j]);
            for (int j = 0; j < count; j++)
                std::memcpy(h.dmixed + at(j), dmixed + (span.start + first + j) * ldm + static_cast<size_t>(i) * dim, dim * sizeof(float));
            each_range(span, first + count, [&](int start, int nodes, int seen) {
                const float* values = h.vt + kv * turned * wide + start;
                product<false>(h.dmixed, wide, count, values, turned, wide, nodes, h.slopes + seen, ld, false);
                product<true>(h.weights + seen, ld, nodes, h.dmixed, wide, count, wide, h.dv + kv * head + at(start), wide, true);
            });
            for (int j = 0; j < count; j++) {
                int valid = span.before + first + j + 1;
                softmax_back(h.weights + j * ld, h.slopes + j * ld, valid, up(span.before + first + count, VL), scale);
            }
            float* dq = h.dq + i * head + at(span.start + first);
            each_range(span, first + count, [&](int start, int nodes, int seen) {
                product<false>(h.slopes + seen, ld, count, h.k + kv * head + at(start), wide, nodes, wide, dq, wide, true);
                product<true>(h.slopes + seen, ld, nodes, q, wide, count, wide, h.dk + kv * head + at(start), wide, true);
            });
        });
        int keys = s.heads * dim, values = keys + s.kv_heads * dim;
        for (int node = 0; node < n; node++) {
            float* to = dqkv + node * ldq;
            place_back(node, qkv[node], s.heads, h.dq, q_norm, to, dq_norm);
            place_back(node, qkv[node] + keys, s.kv_heads, h.dk, k_norm, to + keys, dk_norm);
            for (int i = 0; i < s.kv_heads; i++) std::memcpy(to + values + i * dim, h.dv + i * head + at(node), dim * sizeof(float));
        }
    }

  private:
    const Shape& s;
    const float *cosine, *sine;
    const Forest& f;
    Heads& h;
    int n, dim, wide;
    size_t head, turned;  // floats of a head, and of a row of turned ones
    bool backward_;
    float scale;
    size_t ld = 0;  // of weights

    size_t at(int node) const { return static_cast<size_t>(node) * wide; }
    const float* angle(const float* of, int node) const { return of + static_cast<size_t>(f.positions[node]) * (dim / 2); }

    // of what `norm_heads` gave of a node's heads x: from their gradients d, which are turned back, those by x, and by the norm w
    void place_back(int node, const float* x, int heads, float* d, const float* w, float* to, float* dw) {
        for (int first = 0; first < heads; first += ABREAST) {
            int last = std::min(heads, first + ABREAST);
            float scales[ABREAST];
            for (int i = first; s.qk_norm && i < last; i++) scales[i - first] = rms_scale(x + i * dim, dim, s.eps);
            for (int i = first; i < last; i++) rotate<true>(d + i * head + at(node), angle(cosine, node), angle(sine, node), dim / 2);
            if (s.qk_norm) std::memset(to + first * dim, 0, (last - first) * dim * sizeof(float));
            for (int i = first; i < last; i++) {
                const float* from = d + i * head + at(node);
                if (s.qk_norm) rms_norm_back(x + i * dim, w, dim, scales[i - first], from, to + i * dim, dw);
                else std::memcpy(to + i * dim, from, dim * sizeof(float));
            }
        }
    }

    // visits the queries of each head, some at a time, none of another span among them
    template <class F>
    void each_chunk(F visit) {
        for (const Span& span : f.spans)
            for (int i = 0; i < s.heads; i++)
                for (int first = 0; first < span.count; first += QUERIES)
                    visit(span, i, i / (s.heads / s.kv_heads), first, std::min(QUERIES, span.count - first));
    }

    // visits what the first `own` nodes of a span see: where nodes lie, how many, and how many were before
    template <class F>
    void each_range(const Span& span, int own, F visit) const {
        int seen = 0;
        for (int i = 0; i < span.ranges; i++) {
            Range r = f.ranges[span.first + i];
            visit(r.start, r.count, seen);
            seen += r.count;
        }
        visit(span.start, own, seen);
    }

    // leaves e^score in h.weights, and in h.over what makes weights of them
    void weigh(const Span& span, int first, int count, const float* q, int kv) {
        each_range(span, first + count, [&](int start, int nodes, int seen) {
            product<false>(q, wide, count, h.kt + kv * turned * wide + start, turned, wide, nodes, h.weights + seen, ld, false);
        });
        int valid = span.before + first + 1, all = up(span.before + first + count, VL), j = 0;
        for (; j + ABREAST <= count; j += ABREAST) exponentials<ABREAST>(h.weights + j * ld, ld, valid + j, 1, all, scale, h.over + j);
        for (; j < count; j++) exponentials<1>(h.weights + j * ld, ld, valid + j, 1, all, scale, h.over + j);
    }

    void turn(const float* from, float* to) const {
        for (int i = 0; i < n; i += VL)
            for (int d = 0; d < wide; d++)
                for (int j = i; j < std::min(n, i + VL); j++) to[d * turned + j] = from[at(j) + d];
        for (int d = 0; d < wide; d++) std::fill(to + d * turned + n, to + (d + 1) * turned, 0.0f);
    }
};

}  // namespace assay
