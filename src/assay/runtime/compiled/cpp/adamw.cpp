// Steps of AdamW (Loshchilov & Hutter 2019), all tensors in one call.

#include <cmath>

#include "share.h"
#include "vectors.h"

using namespace assay;

namespace {

constexpr int64_t MANY = 1 << 20;  // weights that are worth threads

struct Rates {  // in double, as far as a step's constants are concerned
    double rate, beta1, beta2, eps;
};

void step(const Rates& s, double decay, int64_t n, double steps, float* weight, const float* grad, float* average, float* square) {
    const float root = static_cast<float>(std::sqrt(1 - std::pow(s.beta2, steps)));
    const float length = static_cast<float>(s.rate / (1 - std::pow(s.beta1, steps))), kept = static_cast<float>(1 - s.rate * decay);
    const float new1 = static_cast<float>(1 - s.beta1), old2 = static_cast<float>(s.beta2), new2 = static_cast<float>(1 - s.beta2);
    const float eps = static_cast<float>(s.eps);
    for (int64_t i = 0; i < n; i++) {
        float g = grad[i], m = new1 < 0.5f ? average[i] + new1 * (g - average[i]) : g - (g - average[i]) * (1 - new1);
        float v = square[i] * old2 + new2 * g * g;
        weight[i] = weight[i] * kept - length * m / (std::sqrt(v) / root + eps);
        average[i] = m, square[i] = v;
    }
}

}  // namespace

extern "C" {

// One step of n tensors of so many numbers, each with the number of its steps, which goes up by one, and a decay of its own.
int32_t assay_adamw_step(
    const Rates* rates, int32_t n, const int64_t* sizes, const double* decays, float* const* weights, const float* const* grads,
    float* const* averages, float* const* squares, float* const* steps, int32_t threads) {
    return guarded([&] {
        int64_t all = 0;
        for (int i = 0; i < n; i++) all += sizes[i];
        auto one = [&](int i, int) {
            step(*rates, decays[i], sizes[i], *steps[i] += 1, weights[i], grads[i], averages[i], squares[i]);
        };
        return share_out(n, all < MANY ? 1 : threads, [] { return 0; }, one);
    });
}

}  // extern "C"
