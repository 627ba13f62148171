// A model's sizes, and what it does with one row: norms and turns.

#pragma once

#include <cmath>
#include <cstdint>

#include "vectors.h"

namespace assay {

struct Shape {
    int32_t layers, hidden, heads, kv_heads, head_dim, inner, vocabulary, positions, qk_norm;
    float eps;
};

// 1 / sqrt(mean of squares + eps)
inline float rms_scale(const float* x, int n, float eps) {
    Vector squares = {};
    int i = 0;
    for (; i + VL <= n; i += VL) squares += load(x + i) * load(x + i);
    float total = sum(squares);
    for (; i < n; i++) total += x[i] * x[i];
    return 1.0f / std::sqrt(total / static_cast<float>(n) + eps);
}

inline void rms_norm(const float* x, const float* w, int n, float eps, float* y) {
    float scale = rms_scale(x, n, eps);
    int i = 0;
    for (; i + VL <= n; i += VL) store(y + i, load(x + i) * scale * load(w + i));
    for (; i < n; i++) y[i] = x[i] * scale * w[i];
}

// e^(scale * a - the largest) of the first `valid`, 0 behind them up to `all`; returns their sum
inline float exponentials(float* a, int valid, int all, float scale) {
    std::fill(a + valid, a + all, NOTHING);
    Vector high = splat(NOTHING), total = {};
    for (int i = 0; i < all; i += VL) {
        Vector z = load(a + i) * scale;
        store(a + i, z);
        high = larger(high, z);
    }
    float most = largest(high);
    for (int i = 0; i < all; i += VL) {
        Vector z = load(a + i) - most;
        Vector e = z < LOWEST ? Vector{} : exponential(z);
        total += e;
        store(a + i, e);
    }
    return sum(total);
}

// BACK is the turn's transpose
template <bool BACK = false>
inline void rotate(float* x, const float* cosine, const float* sine, int half) {
    int i = 0;
    for (; i + VL <= half; i += VL) {
        Vector a = load(x + i), b = load(x + i + half), c = load(cosine + i), s = BACK ? -load(sine + i) : load(sine + i);
        store(x + i, a * c - b * s);
        store(x + i + half, b * c + a * s);
    }
    for (; i < half; i++) {
        float a = x[i], b = x[i + half], s = BACK ? -sine[i] : sine[i];
        x[i] = a * cosine[i] - b * s;
        x[i + half] = b * cosine[i] + a * s;
    }
}

}  // namespace assay
