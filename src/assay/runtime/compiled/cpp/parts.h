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

constexpr int ABREAST = 4;  // rows, or heads, whose sums do not wait for one another

inline void rms_norm(const float* x, const float* w, int n, float eps, float* y) {
    float scale = rms_scale(x, n, eps);
    int i = 0;
    for (; i + VL <= n; i += VL) store(y + i, load(x + i) * scale * load(w + i));
    for (; i < n; i++) y[i] = x[i] * scale * w[i];
}

// In each row e^(scale * a - the largest) of the first numbers, `valid` of the first row and `more` of each that follows, 0 behind
// them up to `all`; `over` gets the inverse of their sum.
template <int ROWS>
inline void exponentials(float* a, size_t ld, int valid, int more, int all, float scale, float* over) {
    Vector high[ROWS], total[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) {
        std::fill(a + r * ld + valid + r * more, a + r * ld + all, NOTHING);
        high[r] = splat(NOTHING), total[r] = Vector{};
    }
    for (int i = 0; i < all; i += VL)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            Vector z = load(a + r * ld + i) * scale;
            store(a + r * ld + i, z);
            high[r] = larger(high[r], z);
        }
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) high[r] = splat(largest(high[r]));
    for (int i = 0; i < all; i += VL)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            Vector z = load(a + r * ld + i) - high[r];
            Vector e = z < LOWEST ? Vector{} : exponential(z);
            total[r] += e;
            store(a + r * ld + i, e);
        }
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) over[r] = 1.0f / sum(total[r]);
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

// Norms heads of n numbers each, which stand behind one another, and turns them; w: null for no norm. `to` may be where they are.
inline void norm_heads(
    const float* x, const float* w, int heads, int n, float eps, const float* cosine, const float* sine, float* to, size_t ld) {
    for (int first = 0; first < heads; first += ABREAST, x += ABREAST * n, to += ABREAST * ld) {
        int some = std::min(ABREAST, heads - first);
        float scales[ABREAST];
        for (int h = 0; w && h < some; h++) scales[h] = rms_scale(x + h * n, n, eps);
        for (int h = 0; h < some; h++) {
            const float* from = x + h * n;
            float* out = to + h * ld;
            if (!w) {
                if (out != from) std::memcpy(out, from, n * sizeof(float));
                rotate(out, cosine, sine, n / 2);
                continue;
            }
            int half = n / 2, i = 0;
            for (; i + VL <= half; i += VL) {
                Vector a = load(from + i) * scales[h] * load(w + i), b = load(from + i + half) * scales[h] * load(w + i + half);
                Vector c = load(cosine + i), s = load(sine + i);
                store(out + i, a * c - b * s);
                store(out + i + half, b * c + a * s);
            }
            for (; i < half; i++) {
                float a = from[i] * scales[h] * w[i], b = from[i + half] * scales[h] * w[i + half];
                out[i] = a * cosine[i] - b * sine[i];
                out[i + half] = b * cosine[i] + a * sine[i];
            }
        }
    }
}

}  // namespace assay
