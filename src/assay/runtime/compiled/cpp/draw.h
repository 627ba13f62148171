// Draws tokens from logits.

#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "model.h"

namespace assay {

struct Table {  // the running rows as numpy holds them, by slot
    int64_t *token, *position, *count;
    const int64_t *limit, *top_k, *stop;
    const float* temperature;  // of each token of a row, as uniform
    const double *top_p, *min_p, *uniform;
    int32_t* ids;
    float *logp, *entropy;
    int64_t width, stops;
    uint8_t* support;  // bits of the ids that could be drawn, of the last `room` tokens of each row; null for none
    int64_t bytes, room;
};

struct Odds {  // of one row's logits z: exponentials of z - most in p, and their sums
    float most;
    double total, weighted;  // sum of p, and of p (z - most)
};

inline Odds odds(float* z, int n, int wide, float* p) {
    Vector high = splat(NOTHING);
    std::fill(z + n, z + wide, NOTHING);
    for (int i = 0; i < wide; i += VL) high = larger(high, load(z + i));
    Odds found{largest(high), 0.0, 0.0};
    for (int i = 0; i < wide; i += VL) {
        Vector a = load(z + i) - found.most;
        Vector e = a < LOWEST ? Vector{} : exponential(a);
        Vector ae = a < LOWEST ? Vector{} : a * e;
        store(p + i, e);
        Doubles x = __builtin_convertvector(e, Doubles), y = __builtin_convertvector(ae, Doubles);
        for (int j = 0; j < VL; j++) found.total += x[j], found.weighted += y[j];
    }
    return found;
}

// -inf outside the support: those of at least min_p of the largest's probability, of these the top_k largest, then the fewest that
// reach top_p; of equals the lower id is larger
inline void truncate(float* z, int n, int64_t top_k, double top_p, double min_p, std::vector<int>& order) {
    order.resize(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [z](int a, int b) { return z[a] > z[b]; });
    int kept = top_k > 0 ? static_cast<int>(std::min<int64_t>(top_k, n)) : n;
    double most = z[order[0]], total = 0.0, before = 0.0;
    if (min_p > 0.0)
        for (double least = most + std::log(min_p); kept > 1 && z[order[kept - 1]] < least;) kept--;
    for (int i = 0; i < kept; i++) total += std::exp(z[order[i]] - most);
    for (int i = 0; i < n; i++) {
        if (i && (i >= kept || before >= top_p)) {
            for (int j = i; j < n; j++) z[order[j]] = NOTHING;
            return;
        }
        before += std::exp(z[order[i]] - most) / total;
    }
}

// bit i of `out`: id i is in the support
inline void mark(const float* z, int n, uint8_t* out, int64_t bytes) {
    std::fill(out, out + bytes, uint8_t{0});
    for (int i = 0; i < n; i++)
        if (z[i] != NOTHING) out[i / 8] |= static_cast<uint8_t>(1 << (i % 8));
}

struct Drawn {
    int id;
    float logp, entropy;
};

struct Draw {  // one thread's room for drawing
    Floats p;
    std::vector<int> order;

    Drawn operator()(float* z, const Engine& e, const Table& t, int slot, int64_t at) {
        int n = e.s.vocabulary, wide = e.logits_wide();
        float temperature = t.temperature[slot * t.width + at];
        bool greedy = temperature == 0.0f;
        if (!greedy && temperature != 1.0f)
            for (int i = 0; i < n; i++) z[i] /= temperature;
        if (!finite(z, n, wide)) return {0, std::nanf(""), std::nanf("")};
        if (!greedy && (t.top_k[slot] > 0 || t.top_p[slot] < 1.0 || t.min_p[slot] > 0.0))
            truncate(z, n, t.top_k[slot], t.top_p[slot], t.min_p[slot], order);
        if (t.support) mark(z, n, t.support + (slot * t.room + at % t.room) * t.bytes, t.bytes);
        Odds o = odds(z, n, wide, p);
        if (greedy) return {static_cast<int>(std::find(z, z + n, o.most) - z), 0.0f, 0.0f};
        double point = t.uniform[slot * t.width + at] * o.total, sum = 0.0;
        int id = -1, last = 0;
        for (int i = 0; i < n && id < 0; i++) {
            if (p[i] > 0.0f) last = i;
            sum += p[i];
            if (sum > point) id = i;
        }
        if (id < 0) id = last;
        double log_total = std::log(o.total);
        return {id, static_cast<float>(z[id] - o.most - log_total), static_cast<float>(log_total - o.weighted / o.total)};
    }

  private:
    static bool finite(float* z, int n, int wide) {
        Vector wrong = {};
        std::fill(z + n, z + wide, 0.0f);
        for (int i = 0; i < wide; i += VL) wrong += load(z + i) * 0.0f;  // what is not finite leaves NaN
        return sum(wrong) == 0.0f;
    }
};

}  // namespace assay
