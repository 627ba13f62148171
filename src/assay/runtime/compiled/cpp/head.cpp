// Log-probabilities and entropies of a head over a small vocabulary, and their gradients: logits are there for a block of positions at
// a time, twice. Numbers of a position do not depend on the others; gradients by the weight are added up in lanes, as many as the
// sizes say, so that nothing depends on the number of threads.

#include <cmath>

#include "linear.h"
#include "share.h"

using namespace assay;

namespace {

constexpr int BLOCK = 96;             // positions
constexpr int64_t LANE = 1 << 24;     // products that are worth a lane
constexpr int64_t LANES = 8;          // most
constexpr int32_t NO_SUCH_TOKEN = 3;  // beside the states of share.h

struct Head {
    int hidden, vocabulary;
    size_t across, ld;   // floats from position to position: of states, of logits; by no power of two, which would share few cache lines
    Matrix forth;        // [vocabulary, hidden]
    Floats back;         // the same, row by row, with zeros behind each

    Head(int hidden, int vocabulary, const float* weight, bool learns)
        : hidden(hidden), vocabulary(vocabulary), across(up(hidden, PANEL) + VL), ld(up(vocabulary, PANEL) + VL), forth(vocabulary, hidden) {
        forth.pack(weight);
        if (!learns) return;
        back = Floats(vocabulary * across);
        for (int i = 0; i < vocabulary; i++)
            std::memcpy(back + i * across, weight + static_cast<size_t>(i) * hidden, hidden * sizeof(float));
    }
    int lanes(int64_t n) const { return static_cast<int>(std::clamp<int64_t>(n * vocabulary * hidden / LANE, 1, LANES)); }
    // what stands behind the last logit, up to a whole vector
    void end(float* z, float with) const { std::fill(z + vocabulary, z + up(vocabulary, VL), with); }
};

struct Room {
    Floats logits, states, grads;

    explicit Room(const Head& h) : logits(BLOCK * h.ld), states(BLOCK * h.across), grads(BLOCK * h.across) {}
};

// calls work(position, how many) for the blocks of a lane
template <class Work>
void blocks(int64_t n, int lane, int lanes, Work work) {
    int64_t end = n * (lane + 1) / lanes;
    for (int64_t i = n * lane / lanes; i < end; i += BLOCK) work(i, static_cast<int>(std::min<int64_t>(BLOCK, end - i)));
}

// log of the sum of e^z, and with `spread` the entropy; what is LOWEST below the largest logit adds next to nothing
float normaliser(const Head& h, float* z, float* spread) {
    Vector highest = splat(NOTHING);
    h.end(z, NOTHING);
    for (int i = 0; i < h.vocabulary; i += VL) highest = larger(highest, load(z + i));
    float most = largest(highest);
    h.end(z, most + LOWEST);
    Vector total{}, weighted{};
    for (int i = 0; i < h.vocabulary; i += VL) {
        Vector e = exponential(load(z + i) - most);
        total += e;
        weighted += e * (load(z + i) - most);
    }
    float mass = sum(total), log = std::log(mass);
    if (spread) *spread = log - sum(weighted) / mass;
    return most + log;
}

// the gradient by the logits, in their place, of those by the log-probability and the entropy
void slope(const Head& h, float* z, int64_t target, float normal, float by_logp, float by_spread, float spread) {
    h.end(z, normal + LOWEST);
    for (int i = 0; i < h.vocabulary; i += VL) {
        Vector log = load(z + i) - normal, p = exponential(log);
        store(z + i, -p * (by_logp + by_spread * (log + spread)));  // dH/dz = -p (log p + H)
    }
    z[target] += by_logp;
}

}  // namespace

extern "C" {

// Of n states [n, hidden] and the weight [vocabulary, hidden]: the log-probabilities of the targets, the logarithms of the sums of
// e^logit, and the entropies unless that is null; [n] each.
int32_t assay_head_forward(
    int64_t n, int32_t hidden, int32_t vocabulary, const float* states, const float* weight, const int64_t* targets, int32_t threads,
    float* logp, float* normal, float* spread) {
    return guarded([&]() -> int32_t {
        for (int64_t i = 0; i < n; i++)
            if (targets[i] < 0 || targets[i] >= vocabulary) return NO_SUCH_TOKEN;
        Head h(hidden, vocabulary, weight, false);
        int lanes = h.lanes(n);
        auto lane = [&](int at, Room& own) {
            blocks(n, at, lanes, [&](int64_t first, int rows) {
                linear(states + first * hidden, hidden, rows, h.forth, own.logits, h.ld);
                for (int r = 0; r < rows; r++) {
                    float* z = own.logits + r * h.ld;
                    float chosen = z[targets[first + r]];
                    normal[first + r] = normaliser(h, z, spread ? spread + first + r : nullptr);
                    logp[first + r] = chosen - normal[first + r];
                }
            });
        };
        return share_out(lanes, threads, [&h] { return Room(h); }, lane);
    });
}

// Gradients by states and weight, each unless that is null, of those by log-probabilities and entropies; null for zeros. `normal` and
// `spread` are what the forward pass gave.
int32_t assay_head_backward(
    int64_t n, int32_t hidden, int32_t vocabulary, const float* states, const float* weight, const int64_t* targets, const float* normal,
    const float* spread, const float* by_logp, const float* by_spread, int32_t threads, float* by_states, float* by_weight) {
    return guarded([&]() -> int32_t {
        Head h(hidden, vocabulary, weight, true);
        int lanes = h.lanes(n);
        std::vector<Floats> sums(lanes);
        auto lane = [&](int at, Room& own) {
            if (by_weight) sums[at] = Floats(vocabulary * h.across);
            blocks(n, at, lanes, [&](int64_t first, int rows) {
                linear(states + first * hidden, hidden, rows, h.forth, own.logits, h.ld);
                for (int r = 0; r < rows; r++) {
                    int64_t i = first + r;
                    slope(
                        h, own.logits + r * h.ld, targets[i], normal[i], by_logp ? by_logp[i] : 0, by_spread ? by_spread[i] : 0,
                        by_spread ? spread[i] : 0);
                    std::memcpy(own.states + r * h.across, states + i * hidden, hidden * sizeof(float));
                }
                if (by_weight)
                    product<true>(own.logits, h.ld, vocabulary, own.states, h.across, rows, hidden, sums[at], h.across, true);
                if (!by_states) return;
                product<false>(own.logits, h.ld, rows, h.back, h.across, vocabulary, hidden, own.grads, h.across, false);
                for (int r = 0; r < rows; r++)
                    std::memcpy(by_states + (first + r) * hidden, own.grads + r * h.across, hidden * sizeof(float));
            });
        };
        int32_t status = share_out(lanes, threads, [&h] { return Room(h); }, lane);
        if (status != DONE || !by_weight) return status;
        for (int i = 0; i < vocabulary; i++)
            for (int j = 0; j < hidden; j++) {
                float sum = sums[0][i * h.across + j];
                for (int at = 1; at < lanes; at++) sum += sums[at][i * h.across + j];
                by_weight[static_cast<size_t>(i) * hidden + j] = sum;
            }
        return status;
    });
}

}  // extern "C"
