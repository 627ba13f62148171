// Forward and backward pass of a block of rows, with all that they keep; and what a trainer has of such.

#pragma once

#include <cstring>
#include <memory>
#include <mutex>

#include "attention.h"

namespace assay::training {

constexpr int SOME = 192;  // rows of a product whose results are summed over them: a panel of these stays in the first cache

inline size_t wide(int n) { return up(n, PANEL) + VL; }  // floats from row to row: by no power of two, which would share few cache lines

struct Layer {
    Floats norm1, norm2, q_norm, k_norm;
    Matrix qkv, out, gate_up, down, qkv_back, out_back, gate_up_back, down_back;  // the last four transposed

    // room for all that a forward pass multiplies with, or a backward pass
    void room(const Shape& s, bool back) {
        int mixed = s.heads * s.head_dim, all = mixed + 2 * s.kv_heads * s.head_dim;
        if (!down.data) {  // the last that is made: memory may not suffice midway
            norm1 = Floats(s.hidden), norm2 = Floats(s.hidden), q_norm = Floats(s.head_dim), k_norm = Floats(s.head_dim);
            qkv = Matrix(all, s.hidden), out = Matrix(s.hidden, mixed), gate_up = Matrix(2 * s.inner, s.hidden);
            down = Matrix(s.hidden, s.inner);
        }
        if (!back || down_back.data) return;
        qkv_back = Matrix(s.hidden, all), out_back = Matrix(mixed, s.hidden), gate_up_back = Matrix(s.hidden, 2 * s.inner);
        down_back = Matrix(s.inner, s.hidden);
    }
};

struct Sum {  // of gradients by a weight
    int rows, inputs;
    size_t ld;
    Floats data;

    Sum(int rows, int inputs) : rows(rows), inputs(inputs), ld(wide(inputs)), data(rows * ld) {}
    operator float*() const { return data; }

    // += dy' x, over rows of these in their order
    void add(const float* dy, size_t ldy, const float* x, size_t ldx, int n) {
        for (int i = 0; i < n; i += SOME)
            product<true>(dy + i * ldy, ldy, rows, x + i * ldx, ldx, std::min(SOME, n - i), inputs, data, ld, true);
    }
};

struct LayerSums {
    Sum norm1, qkv, out, q_norm, k_norm, norm2, gate_up, down;

    explicit LayerSums(const Shape& s)
        : norm1(1, s.hidden), qkv((s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden), out(s.hidden, s.heads * s.head_dim),
          q_norm(1, s.head_dim), k_norm(1, s.head_dim), norm2(1, s.hidden), gate_up(2 * s.inner, s.hidden), down(s.hidden, s.inner) {}
};

struct Sums {
    Sum embedding, norm;
    std::vector<LayerSums> layers;

    explicit Sums(const Shape& s) : embedding(s.vocabulary, s.hidden), norm(1, s.hidden) {
        for (int i = 0; i < s.layers; i++) layers.emplace_back(s);
    }
    // visits the gradient by each weight, in the order of `assay_train_load`: whose sum, from which row, how many
    template <class F>
    void each(const Shape& s, F visit) {
        int q = s.heads * s.head_dim, k = s.kv_heads * s.head_dim;
        visit(embedding, 0, s.vocabulary);
        for (LayerSums& l : layers) {
            visit(l.norm1, 0, 1), visit(l.qkv, 0, q), visit(l.qkv, q, k), visit(l.qkv, q + k, k), visit(l.out, 0, s.hidden);
            if (s.qk_norm) visit(l.q_norm, 0, 1), visit(l.k_norm, 0, 1);
            visit(l.norm2, 0, 1), visit(l.gate_up, 0, s.inner), visit(l.gate_up, s.inner, s.inner), visit(l.down, 0, s.hidden);
        }
        visit(norm, 0, 1);
    }
};

struct LayerStates {  // what the backward pass reads
    Floats x, qkv, mixed, middle, gate_up;
};

struct States {
    std::vector<LayerStates> layers;
    Floats last;  // ahead of the final norm
};

struct Block {
    Forest forest;
    std::vector<std::shared_ptr<const Path>> paths;  // that hold what `kept` points to
    std::vector<const float*> kept;                  // a sampler's states of each node; none where one is missing
    std::vector<int> read;                     // nodes whose states are wanted, ascending
    std::vector<std::pair<int64_t, int>> out;  // places in the result, and in `read`
    std::unique_ptr<States> states;
};

struct Work {
    Heads heads;
    Floats normed, act, mixed, dx, dnormed, dact, dgate_up, dmixed, dqkv;
};

template <class T>
class Spares {  // what was made once is used again: fresh memory costs as much as a pass over it
  public:
    template <class Make>
    std::unique_ptr<T> take(Make make) {
        {
            std::lock_guard<std::mutex> held(lock_);
            if (!spares_.empty()) {
                std::unique_ptr<T> found = std::move(spares_.back());
                spares_.pop_back();
                return found;
            }
        }
        return make();
    }
    void give(std::unique_ptr<T> what) noexcept {
        if (!what) return;
        try {
            std::lock_guard<std::mutex> held(lock_);
            spares_.push_back(std::move(what));
        } catch (const std::bad_alloc&) {  // then it goes
        }
    }

  private:
    std::mutex lock_;
    std::vector<std::unique_ptr<T>> spares_;
};

struct Trainer {
    Shape s;
    Floats cosine, sine, embedding, norm;  // the first two [positions, head_dim / 2]
    std::vector<Layer> layers;
    Spares<States> states;
    Spares<Work> work;
    Spares<Sums> sums;
    uint64_t digest = 0;    // of the weights that are packed; 0 before the first
    bool across = false;    // whether these are packed for a backward pass too
    int64_t unchecked = 0;  // nodes recalled since a row of them was computed too

    // for weights, and for what a backward pass multiplies with
    void room(bool back) {
        embedding.room(static_cast<size_t>(s.vocabulary) * s.hidden), norm.room(s.hidden);
        for (Layer& l : layers) l.room(s, back);
    }
    int mixed() const { return s.heads * s.head_dim; }
    int qkv() const { return (s.heads + 2 * s.kv_heads) * s.head_dim; }
};

struct Tape {  // blocks between their two passes
    Trainer& t;
    std::vector<Block> blocks;
    int64_t nodes = 0, recalled = 0;  // of all blocks; of those that are not computed again

    explicit Tape(Trainer& t) : t(t) {}
    ~Tape() {
        for (Block& b : blocks) t.states.give(std::move(b.states));
    }
};

struct Borrowed {  // a thread's room, which goes back when this ends
    Trainer& t;
    std::unique_ptr<Work> work;

    explicit Borrowed(Trainer& t) : t(t), work(t.work.take([] { return std::make_unique<Work>(); })) {}
    Borrowed(Borrowed&&) = default;
    ~Borrowed() { t.work.give(std::move(work)); }
};

inline void norm_rows(const Shape& s, const StateRows& x, int n, const float* w, float* y) {
    for (int r = 0; r < n; r++) {
        if (r + 1 < n) x.ask(r + 1, 0, s.hidden);
        rms_norm(x[r], w, s.hidden, s.eps, y + r * wide(s.hidden));
    }
}

inline void norm_rows_back(const Shape& s, const StateRows& x, int n, const float* w, const float* dy, float* dx, float* dw) {
    size_t ld = wide(s.hidden);
    for (int r = 0; r < n; r++) rms_norm_back(x[r], w, s.hidden, rms_scale(x[r], s.hidden, s.eps), dy + r * ld, dx + r * ld, dw);
}

// act = silu(g) * u
inline void gate(const float* g, const float* u, int n, float* act) {
    int i = 0;
    for (; i + VL <= n; i += VL) {
        Vector a = load(g + i);
        store(act + i, a / (1.0f + exponential(-a)) * load(u + i));
    }
    for (; i < n; i++) act[i] = g[i] / (1.0f + std::exp(-g[i])) * u[i];
}

// the same, and gradients by both
inline void gate_back(
    const float* g, const float* u, int n, const float* dact, float* act, float* dg, float* du, const float* next) {
    int i = 0;
    for (; i + VL <= n; i += VL) {
        if (next && i % LINE == 0) soon(next + i), soon(next + n + i);
        Vector a = load(g + i), b = load(u + i), d = load(dact + i), share = 1.0f / (1.0f + exponential(-a)), silu = a * share;
        store(act + i, silu * b);
        store(dg + i, d * b * (share + silu * (1.0f - share)));
        store(du + i, d * silu);
    }
    for (; i < n; i++) {
        float share = 1.0f / (1.0f + std::exp(-g[i])), silu = g[i] * share;
        act[i] = silu * u[i];
        dg[i] = dact[i] * u[i] * (share + silu * (1.0f - share));
        du[i] = dact[i] * silu;
    }
}

// states behind the final norm of the nodes that are read
inline void finish(const Trainer& t, const Block& b, Work& w, float* out) {
    const Shape& s = t.s;
    size_t hidden = wide(s.hidden);
    norm_rows(s, {b.states->last, hidden}, static_cast<int>(b.read.size()), t.norm, w.normed);
    for (auto [to, from] : b.out) std::memcpy(out + to * s.hidden, w.normed + from * hidden, s.hidden * sizeof(float));
}

// the same of a block whose states a sampler left
inline void recall(const Trainer& t, const Block& b, Work& w, float* out) {
    size_t hidden = wide(t.s.hidden), rows = b.read.size();
    b.states->last.room(rows * hidden), w.normed.room(rows * hidden);
    for (size_t r = 0; r < rows; r++)
        std::memcpy(b.states->last + r * hidden, b.kept[b.read[r]] + Cells(t.s).last, t.s.hidden * sizeof(float));
    finish(t, b, w, out);
}

inline void forward(const Trainer& t, Block& b, Work& w, bool keep, float* out) {
    const Shape& s = t.s;
    int n = b.forest.nodes(), m = static_cast<int>(b.read.size());
    size_t hidden = wide(s.hidden), qkv = wide(t.qkv()), mixed = wide(t.mixed()), inner = wide(s.inner), both = wide(2 * s.inner);
    States& kept = *b.states;
    kept.layers.resize(std::max<size_t>(kept.layers.size(), keep ? s.layers : 2));
    auto states = [&](int layer) -> LayerStates& { return kept.layers[keep ? layer : layer & 1]; };
    Floats& start = s.layers ? states(0).x : kept.last;
    int rows = s.layers ? n : m;
    start.room(rows * hidden), w.normed.room(n * hidden), w.act.room(n * inner);
    for (int r = 0; r < rows; r++) {
        int id = b.forest.ids[s.layers ? r : b.read[r]];
        std::memcpy(start + r * hidden, t.embedding + static_cast<size_t>(id) * s.hidden, s.hidden * sizeof(float));
    }
    Attention attention(s, t.cosine, t.sine, b.forest, w.heads, false);
    for (int i = 0; i < s.layers; i++) {
        const Layer& l = t.layers[i];
        LayerStates& k = states(i);
        bool last = i == s.layers - 1;
        rows = last ? m : n;
        k.qkv.room(n * qkv), k.mixed.room(n * mixed), k.middle.room(n * hidden), k.gate_up.room(rows * both);
        norm_rows(s, {k.x, hidden}, n, l.norm1, w.normed);
        linear(w.normed, hidden, n, l.qkv, k.qkv, qkv);
        attention.place(StateRows{k.qkv, qkv}, l.q_norm, l.k_norm);
        attention.forward(k.mixed, mixed);
        for (int r = 0; r < rows; r++) {  // behind the last attention no node needs another: go on with those that are read
            int from = last ? b.read[r] : r;
            std::memcpy(k.middle + r * hidden, k.x + from * hidden, hidden * sizeof(float));
            if (from != r) std::memcpy(k.mixed + r * mixed, k.mixed + from * mixed, mixed * sizeof(float));
        }
        linear(k.mixed, mixed, rows, l.out, k.middle, hidden, true);
        norm_rows(s, {k.middle, hidden}, rows, l.norm2, w.normed);
        linear(w.normed, hidden, rows, l.gate_up, k.gate_up, both);
        for (int r = 0; r < rows; r++) gate(k.gate_up + r * both, k.gate_up + r * both + s.inner, s.inner, w.act + r * inner);
        Floats& next = last ? kept.last : states(i + 1).x;
        next.room(rows * hidden);
        std::memcpy(next, k.middle, rows * hidden * sizeof(float));
        linear(w.act, inner, rows, l.down, next, hidden, true);
    }
    finish(t, b, w, out);
}

// rows 0 to m - 1 of x go where `read` says, zeros where it says nothing
inline void spread(float* x, size_t ld, const std::vector<int>& read, int n) {
    int from = static_cast<int>(read.size()) - 1;
    for (int r = n - 1; r >= 0; r--) {  // from the end: none is overwritten before it is read
        if (from < 0 || read[from] != r) {
            std::memset(x + r * ld, 0, ld * sizeof(float));
        } else if (from-- != r) {
            std::memcpy(x + r * ld, x + (from + 1) * ld, ld * sizeof(float));
        }
    }
}

inline void backward(const Trainer& t, const Block& b, Work& w, const float* grad, Sums& g) {
    const Shape& s = t.s;
    int n = b.forest.nodes(), m = static_cast<int>(b.read.size()), rows = m;
    size_t hidden = wide(s.hidden), qkv = wide(t.qkv()), mixed = wide(t.mixed()), inner = wide(s.inner), both = wide(2 * s.inner);
    const States& kept = *b.states;
    w.normed.room(n * hidden), w.act.room(n * inner), w.dx.room(n * hidden), w.dnormed.room(n * hidden), w.dact.room(n * inner);
    w.dgate_up.room(n * both), w.dmixed.room(n * mixed), w.dqkv.room(n * qkv);
    if (!b.kept.empty()) w.mixed.room(n * mixed);
    float* dx = w.dx;
    std::memset(dx, 0, m * hidden * sizeof(float)), std::memset(w.dnormed, 0, m * hidden * sizeof(float));
    for (auto [from, to] : b.out)
        for (int i = 0; i < s.hidden; i++) w.dnormed[to * hidden + i] += grad[from * s.hidden + i];
    norm_rows_back(s, {kept.last, hidden}, m, t.norm, w.dnormed, dx, g.norm);
    Attention attention(s, t.cosine, t.sine, b.forest, w.heads, true);
    const Cells c(s);
    for (int i = s.layers - 1; i >= 0; i--) {
        const Layer& l = t.layers[i];
        LayerSums& sums = g.layers[i];
        // of the last layer there is, behind the attention, what is read
        auto states = [&](Floats LayerStates::*of, size_t ld, size_t cell, bool behind) {
            if (b.kept.empty()) return StateRows{kept.layers[i].*of, ld};
            return StateRows{nullptr, 0, b.kept.data(), c.layer * i + cell, behind && i == s.layers - 1 ? b.read.data() : nullptr};
        };
        StateRows x = states(&LayerStates::x, hidden, c.x, false), middle = states(&LayerStates::middle, hidden, c.middle, true);
        StateRows qkvs = states(&LayerStates::qkv, qkv, c.qkv, false), gates = states(&LayerStates::gate_up, both, c.gate_up, true);
        StateRows attended = states(&LayerStates::mixed, mixed, c.mixed, true);
        linear(dx, hidden, rows, l.down_back, w.dact, inner);
        for (int r = 0; r < rows; r++) {
            const float* gate_up = gates[r];
            const float* next = gates.kept && r + 1 < rows ? gates[r + 1] : nullptr;
            float* to = w.dgate_up + r * both;
            gate_back(gate_up, gate_up + s.inner, s.inner, w.dact + r * inner, w.act + r * inner, to, to + s.inner, next);
        }
        sums.down.add(dx, hidden, w.act, inner, rows);
        norm_rows(s, middle, rows, l.norm2, w.normed);
        sums.gate_up.add(w.dgate_up, both, w.normed, hidden, rows);
        linear(w.dgate_up, both, rows, l.gate_up_back, w.dnormed, hidden);
        norm_rows_back(s, middle, rows, l.norm2, w.dnormed, dx, sums.norm2);
        const float* mix = attended.base;
        if (!mix) {
            for (int r = 0; r < rows; r++) {
                if (r + 1 < rows) attended.ask(r + 1, 0, t.mixed());
                std::memcpy(w.mixed + r * mixed, attended[r], t.mixed() * sizeof(float));
            }
            mix = w.mixed;
        }
        sums.out.add(dx, hidden, mix, mixed, rows);
        linear(dx, hidden, rows, l.out_back, w.dmixed, mixed);
        if (rows < n) spread(dx, hidden, b.read, n), spread(w.dmixed, mixed, b.read, n);
        rows = n;
        attention.place(qkvs, l.q_norm, l.k_norm);
        attention.backward(w.dmixed, mixed, qkvs, w.dqkv, qkv, l.q_norm, l.k_norm, sums.q_norm, sums.k_norm);
        norm_rows(s, x, n, l.norm1, w.normed);
        sums.qkv.add(w.dqkv, qkv, w.normed, hidden, n);
        linear(w.dqkv, qkv, n, l.qkv_back, w.dnormed, hidden);
        norm_rows_back(s, x, n, l.norm1, w.dnormed, dx, sums.norm1);
    }
    for (int r = 0; r < rows; r++) {
        float* sum = g.embedding + static_cast<size_t>(b.forest.ids[s.layers ? r : b.read[r]]) * hidden;
        for (int j = 0; j < s.hidden; j++) sum[j] += dx[r * hidden + j];
    }
}

}  // namespace assay::training
