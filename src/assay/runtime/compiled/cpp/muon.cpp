// Steps of Muon (Jordan et al. 2024): momenta, five Newton-Schulz iterations of each, weights. A matrix is one thread's.
//
// A matrix lies tall, as Z [n, k] with n >= k, transposed if need be; `X` of the paper is Z'. Then X X' = Z' Z and
// (a + b X X' + c (X X')^2) X = (Z (a + b Z' Z + c (Z' Z)^2))', and neither product needs anything turned. Symmetric products are
// computed below their diagonal and mirrored.

#include <cmath>

#include "linear.h"
#include "share.h"

using namespace assay;

namespace {

constexpr int STEPS = 5;
constexpr float A = 3.4445f, B = -4.7750f, C = 2.0315f;
constexpr float LEAST = 1e-7f;  // norm that divides
constexpr int SOME = 128;       // numbers added up in one go: so many rows of a panel stay in the first cache

struct Moves {  // of one step
    float rate, momentum, decay;
    int32_t nesterov;
};

struct Room {
    Floats z, next, gram, poly;
};

// the product's panels from their corners on the diagonal downwards; what stands above belongs to nobody
template <bool ACROSS>
void below(const float* x, size_t ld, int k, int inputs, float* y) {
    for (int i = 0; i < inputs; i += SOME)
        for (int first = 0; first < k; first += PANEL) {
            const float* from = ACROSS ? x + i * ld + first : x + first * ld + i;
            product<ACROSS>(
                from, ld, k - first, x + i * ld + first, ld, std::min(SOME, inputs - i), std::min(PANEL, k - first),
                y + first * ld + first, ld, i > 0);
        }
}

// what stands below the diagonal, above it too; zeros behind the last column
void mirror(float* y, size_t ld, int k) {
    for (int i = 0; i < k; i++) {
        for (int j = i + 1; j < k; j++) y[i * ld + j] = y[j * ld + i];
        for (int j = k; j < up(k, VL); j++) y[i * ld + j] = 0;
    }
}

// z [n, k] goes nearly to the closest matrix with orthonormal columns; in z or in `next`, which is said
float* orthogonal(Room& w, int n, int k, size_t ld) {
    float *z = w.z, *next = w.next;
    for (int step = 0; step < STEPS; step++) {
        below<true>(z, ld, k, n, w.gram);
        mirror(w.gram, ld, k);
        below<false>(w.gram, ld, k, k, w.poly);
        for (int i = 0; i < k; i++) {
            float *to = w.poly + i * ld, *g = w.gram + i * ld;
            for (int j = 0; j <= i; j++) to[j] = B * g[j] + C * to[j];
            to[i] += A;
        }
        mirror(w.poly, ld, k);
        for (int i = 0; i < k; i += SOME)
            product<false>(z + i, ld, n, w.poly + i * ld, ld, std::min(SOME, k - i), k, next, ld, i > 0);
        std::swap(z, next);
    }
    return z;
}

// a + share (b - a), from the nearer end
inline float between(float a, float b, float share) { return share < 0.5f ? a + share * (b - a) : b - (b - a) * (1 - share); }

// momentum of a row, and where it moves: the sum of that one's squares
double average(const Moves& s, int n, const float* grad, float* momentum, float* move) {
    double squares = 0;
    for (int i = 0; i < n; i++) {
        float g = grad ? grad[i] : 0.0f, m = between(momentum[i], g, 1 - s.momentum);
        momentum[i] = m;
        move[i] = s.nesterov ? between(g, m, s.momentum) : m;
    }
    for (int i = 0; i < n; i++) squares += static_cast<double>(move[i]) * move[i];
    return squares;
}

// y [n, m] transposed is x
void turn(const float* x, size_t ldx, int n, int m, float* y, size_t ldy) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) y[i * ldy + j] = x[j * ldx + i];
}

void step(const Moves& s, int rows, int columns, float* weight, const float* grad, float* momentum, Room& w) {
    bool tall = rows >= columns;
    int n = std::max(rows, columns), k = std::min(rows, columns);
    size_t ld = up(k, PANEL) + VL;  // by no power of two, which would share few cache lines
    size_t across = up(n, PANEL) + VL;
    size_t room = std::max(n * ld, k * across);
    w.z.room(room), w.next.room(room), w.gram.room(k * ld), w.poly.room(k * ld);
    float* move = tall ? w.z : w.next;
    size_t line = tall ? ld : across;
    double squares = 0;
    for (int i = 0; i < rows; i++) {
        size_t at = static_cast<size_t>(i) * columns;
        squares += average(s, columns, grad ? grad + at : nullptr, momentum + at, move + i * line);
    }
    if (!tall) turn(move, line, n, k, w.z, ld);
    float norm = std::max(static_cast<float>(std::sqrt(squares)), LEAST);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) w.z[i * ld + j] /= norm;
        for (int j = k; j < up(k, VL); j++) w.z[i * ld + j] = 0;
    }
    move = orthogonal(w, n, k, ld);
    if (!tall) {
        float* turned = move == w.z ? w.next : w.z;
        turn(move, ld, k, n, turned, across), move = turned;
    }
    float kept = 1 - s.rate * s.decay, scale = s.rate * std::sqrt(std::max(1.0f, static_cast<float>(rows) / columns));
    for (int i = 0; i < rows; i++) {
        float* to = weight + static_cast<size_t>(i) * columns;
        for (int j = 0; j < columns; j++) to[j] = to[j] * kept - scale * move[i * line + j];
    }
}

}  // namespace

extern "C" {

// One step of n matrices [rows, columns]; a null gradient is zeros.
int32_t assay_muon_step(
    const Moves* moves, int32_t n, const int32_t* rows, const int32_t* columns, float* const* weights, const float* const* grads,
    float* const* momenta, int32_t threads) {
    return guarded([&] {
        auto one = [&](int i, Room& own) { step(*moves, rows[i], columns[i], weights[i], grads[i], momenta[i], own); };
        return share_out(n, threads, [] { return Room(); }, one);
    });
}

}  // extern "C"
