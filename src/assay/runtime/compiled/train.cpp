// Hidden states of small decoders (Llama and Qwen3 families, float32), and the gradient by their weights, on the cores of one machine.
//
// Rows are cut into blocks, each a forest that a thread takes through all layers, forward and later backward; a beginning that rows
// of a block share is computed once, and gets the sum of their gradients. Numbers of the forward pass do not depend on what else
// there is. Gradients of blocks are added up in lanes, as many as the number of nodes says, and these in their order: so that
// nothing depends on the number of threads. States that a sampler left on its trail, by the same weights, have the same bits: a block
// of which all are there is not computed again.

#include <cstring>
#include <memory>
#include <mutex>

#include "attention.h"
#include "share.h"

using namespace assay;

namespace {

constexpr int BLOCK = 384;         // most nodes of a block, that its states stay near
constexpr int LANE = 1024;         // nodes that are worth a lane
constexpr int64_t LANES = 8;       // most
constexpr int64_t SUMS = 1 << 26;  // most weights of all lanes
constexpr int64_t CHECKED = 4096;  // recalled nodes on which a row is computed too
constexpr int32_t RECALLED_OTHERWISE = 4;  // beside the states of share.h
constexpr int SOME = 128;          // rows of a product whose results are summed over them: a panel of these stays in the first cache

size_t wide(int n) { return up(n, PANEL) + VL; }  // floats from row to row: by no power of two, which would share few cache lines

struct Layer {
    Floats norm1, norm2, q_norm, k_norm;
    Matrix qkv, out, gate_up, down, qkv_back, out_back, gate_up_back, down_back;  // the last four transposed

    // room for all that a forward pass multiplies with, or a backward pass
    void room(const Shape& s, bool back) {
        int mixed = s.heads * s.head_dim, all = mixed + 2 * s.kv_heads * s.head_dim;
        if (!qkv.data) {
            norm1 = Floats(s.hidden), norm2 = Floats(s.hidden), q_norm = Floats(s.head_dim), k_norm = Floats(s.head_dim);
            qkv = Matrix(all, s.hidden), out = Matrix(s.hidden, mixed), gate_up = Matrix(2 * s.inner, s.hidden);
            down = Matrix(s.hidden, s.inner);
        }
        if (!back || qkv_back.data) return;
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

}  // namespace

struct Trainer {
    Shape s;
    Floats cosine, sine, embedding, norm;  // the first two [positions, head_dim / 2]
    std::vector<Layer> layers;
    Spares<States> states;
    Spares<Work> work;
    Spares<Sums> sums;
    int64_t unchecked = 0;  // nodes recalled since a row of them was computed too

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

namespace {

struct Borrowed {  // a thread's room, which goes back when this ends
    Trainer& t;
    std::unique_ptr<Work> work;

    explicit Borrowed(Trainer& t) : t(t), work(t.work.take([] { return std::make_unique<Work>(); })) {}
    Borrowed(Borrowed&&) = default;
    ~Borrowed() { t.work.give(std::move(work)); }
};

void norm_rows(const Shape& s, const StateRows& x, int n, const float* w, float* y) {
    for (int r = 0; r < n; r++) {
        if (r + 1 < n) x.ask(r + 1, 0, s.hidden);
        rms_norm(x[r], w, s.hidden, s.eps, y + r * wide(s.hidden));
    }
}

void norm_rows_back(const Shape& s, const StateRows& x, int n, const float* w, const float* dy, float* dx, float* dw) {
    size_t ld = wide(s.hidden);
    for (int r = 0; r < n; r++) rms_norm_back(x[r], w, s.hidden, s.eps, dy + r * ld, dx + r * ld, dw);
}

// act = silu(g) * u
void gate(const float* g, const float* u, int n, float* act) {
    int i = 0;
    for (; i + VL <= n; i += VL) {
        Vector a = load(g + i);
        store(act + i, a / (1.0f + exponential(-a)) * load(u + i));
    }
    for (; i < n; i++) act[i] = g[i] / (1.0f + std::exp(-g[i])) * u[i];
}

// the same, and gradients by both
void gate_back(const float* g, const float* u, int n, const float* dact, float* act, float* dg, float* du) {
    int i = 0;
    for (; i + VL <= n; i += VL) {
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
void finish(const Trainer& t, const Block& b, Work& w, float* out) {
    const Shape& s = t.s;
    size_t hidden = wide(s.hidden);
    norm_rows(s, {b.states->last, hidden}, static_cast<int>(b.read.size()), t.norm, w.normed);
    for (auto [to, from] : b.out) std::memcpy(out + to * s.hidden, w.normed + from * hidden, s.hidden * sizeof(float));
}

// the same of a block whose states a sampler left
void recall(const Trainer& t, const Block& b, Work& w, float* out) {
    size_t hidden = wide(t.s.hidden), rows = b.read.size();
    b.states->last.room(rows * hidden), w.normed.room(rows * hidden);
    for (size_t r = 0; r < rows; r++)
        std::memcpy(b.states->last + r * hidden, b.kept[b.read[r]] + Cells(t.s).last, t.s.hidden * sizeof(float));
    finish(t, b, w, out);
}

void forward(const Trainer& t, Block& b, Work& w, bool keep, float* out) {
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
void spread(float* x, size_t ld, const std::vector<int>& read, int n) {
    int from = static_cast<int>(read.size()) - 1;
    for (int r = n - 1; r >= 0; r--) {  // from the end: none is overwritten before it is read
        if (from < 0 || read[from] != r) {
            std::memset(x + r * ld, 0, ld * sizeof(float));
        } else if (from-- != r) {
            std::memcpy(x + r * ld, x + (from + 1) * ld, ld * sizeof(float));
        }
    }
}

void backward(const Trainer& t, const Block& b, Work& w, const float* grad, Sums& g) {
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
            if (r + 1 < rows) gates.ask(r + 1, 0, 2 * s.inner);
            float* to = w.dgate_up + r * both;
            gate_back(gate_up, gate_up + s.inner, s.inner, w.dact + r * inner, w.act + r * inner, to, to + s.inner);
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

// takes a sampler's states for those of a block, where it left all of them
void follow(Block& b, const Rows& rows, const std::vector<int>& part, const std::vector<int>& node_of, Trail& trail) {
    b.kept.assign(b.forest.nodes(), nullptr);
    for (int row : part) {
        std::shared_ptr<const Path> path = trail.find(rows.begin(row), rows.length(row));
        if (!path) {
            b.kept.clear(), b.paths.clear();
            return;
        }
        for (int k = 0; k < rows.length(row); k++) b.kept[node_of[rows.offsets[row] + k]] = path->at(k);
        b.paths.push_back(std::move(path));
    }
}

// blocks of the rows, with what is wanted of each: `at` counts the tokens of all rows
void lay_out(Tape& tape, const Rows& rows, int n, int64_t wanted, const int64_t* at, Trail* trail) {
    std::vector<int> node_of(rows.offsets[n]), block_of(rows.offsets[n]);
    for (const std::vector<int>& part : parted(rows, BLOCK)) {
        for (int row : part)
            std::fill_n(block_of.begin() + rows.offsets[row], rows.length(row), static_cast<int>(tape.blocks.size()));
        tape.blocks.emplace_back();
        Block& b = tape.blocks.back();
        b.forest = forest_of(rows, part, node_of);
        tape.nodes += b.forest.nodes();
        if (trail) follow(b, rows, part, node_of, *trail);
        if (!b.kept.empty()) tape.recalled += b.forest.nodes();
    }
    std::vector<std::vector<int>> place;
    for (const Block& b : tape.blocks) place.emplace_back(b.forest.nodes(), -1);
    for (int64_t i = 0; i < wanted; i++) place[block_of[at[i]]][node_of[at[i]]] = 0;
    for (size_t i = 0; i < place.size(); i++)
        for (int node = 0; node < tape.blocks[i].forest.nodes(); node++) {
            if (place[i][node] < 0) continue;
            place[i][node] = static_cast<int>(tape.blocks[i].read.size());
            tape.blocks[i].read.push_back(node);
        }
    for (int64_t i = 0; i < wanted; i++) tape.blocks[block_of[at[i]]].out.push_back({i, place[block_of[at[i]]][node_of[at[i]]]});
}

// whether a sampler multiplied with the trainer's weights, bit by bit
bool same_weights(const Trainer& t, const Trail& trail) {
    if (std::memcmp(&t.s, &trail.s, sizeof t.s) || trail.weights.empty()) return false;
    auto next = trail.weights.begin();
    bool same = true;
    auto plain = [&](const float* data, size_t n) {
        same = same && n == next->second && !std::memcmp(data, next->first, n * sizeof(float));
        next++;
    };
    auto matrix = [&](const Matrix& m) { plain(m.data, m.floats()); };
    plain(t.embedding, static_cast<size_t>(t.s.vocabulary) * t.s.hidden);
    for (const Layer& l : t.layers) {
        plain(l.norm1, t.s.hidden), matrix(l.qkv), matrix(l.out);
        if (t.s.qk_norm) plain(l.q_norm, t.s.head_dim), plain(l.k_norm, t.s.head_dim);
        plain(l.norm2, t.s.hidden), matrix(l.gate_up), matrix(l.down);
    }
    plain(t.norm, t.s.hidden);
    return same;
}

// whether the states `out` of the first row of a recalled block have the bits that they have when they are computed
bool checked(Trainer& t, const Rows& rows, const int64_t* at, const Block& b, Work& w, const float* out) {
    int64_t any = at[b.out.front().first];
    int row = static_cast<int>(std::upper_bound(rows.offsets, rows.offsets + rows.lengths.size() + 1, any) - rows.offsets) - 1;
    std::vector<int64_t> places, there;
    for (auto [i, node] : b.out)
        if (at[i] >= rows.offsets[row] && at[i] < rows.offsets[row + 1]) places.push_back(i), there.push_back(at[i] - rows.offsets[row]);
    int64_t offsets[] = {0, rows.offsets[row + 1] - rows.offsets[row]}, wanted = static_cast<int64_t>(there.size());
    Tape alone(t);
    lay_out(alone, Rows(rows.begin(row), offsets, 1, there.data(), wanted), 1, wanted, there.data(), nullptr);
    Floats found(static_cast<size_t>(wanted) * t.s.hidden);
    Block& again = alone.blocks.front();
    again.states = t.states.take([] { return std::make_unique<States>(); });
    forward(t, again, w, false, found);
    for (int64_t i = 0; i < wanted; i++)
        if (std::memcmp(found + i * t.s.hidden, out + places[i] * t.s.hidden, t.s.hidden * sizeof(float))) return false;
    return true;
}

int64_t weights(const Shape& s) {
    int64_t layer = int64_t{s.hidden} * (s.head_dim * (2 * s.heads + 2 * s.kv_heads) + 3 * s.inner);
    return int64_t{s.vocabulary} * s.hidden + s.layers * layer;
}

}  // namespace

extern "C" {

// null where memory does not suffice
Trainer* assay_train(const Shape* shape, const float* cosine, const float* sine) try {
    auto t = std::make_unique<Trainer>();
    const Shape& s = t->s = *shape;
    size_t turns = static_cast<size_t>(s.positions) * (s.head_dim / 2);
    t->cosine = Floats(turns), t->sine = Floats(turns);
    std::memcpy(t->cosine, cosine, turns * sizeof(float)), std::memcpy(t->sine, sine, turns * sizeof(float));
    t->layers.resize(s.layers);
    return t.release();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void assay_train_free(Trainer* t) { delete t; }

// Weights in this order: embedding; of each layer norm1, q, k, v, out, q_norm and k_norm where these are normed, norm2, gate, up, down;
// norm. `back`: a backward pass will follow.
int32_t assay_train_load(Trainer* t, const float* const* w, int32_t back) {
    return guarded([&] {
        const Shape& s = t->s;
        int q = s.heads * s.head_dim, k = s.kv_heads * s.head_dim;
        auto plain = [&](float* to, size_t n) { std::memcpy(to, *w++, n * sizeof(float)); };
        auto packed = [&](Matrix& m, Matrix& across, int first, int n) {
            m.pack(*w, first, n);
            if (back) across.pack_across(*w, first, n);
            w++;
        };
        size_t table = static_cast<size_t>(s.vocabulary) * s.hidden;
        t->embedding.room(table), t->norm.room(s.hidden);
        plain(t->embedding, table);
        for (Layer& l : t->layers) {
            l.room(s, back);
            plain(l.norm1, s.hidden);
            packed(l.qkv, l.qkv_back, 0, q), packed(l.qkv, l.qkv_back, q, k), packed(l.qkv, l.qkv_back, q + k, k);
            packed(l.out, l.out_back, 0, s.hidden);
            if (s.qk_norm) plain(l.q_norm, s.head_dim), plain(l.k_norm, s.head_dim);
            plain(l.norm2, s.hidden);
            packed(l.gate_up, l.gate_up_back, 0, s.inner), packed(l.gate_up, l.gate_up_back, s.inner, s.inner);
            packed(l.down, l.down_back, 0, s.hidden);
        }
        plain(t->norm, s.hidden);
        return int32_t{DONE};
    });
}

// bytes of all arrays of floats that this library holds
int64_t assay_bytes() { return bytes_held; }

// States behind the final norm of the tokens `at`, [wanted, hidden], counted over n rows, which stand behind one another: row i is
// ids[offsets[i]:offsets[i + 1]]. What a sampler left on the trail, unless that is null, is not computed again where its weights are
// those loaded last. A null `tape` asks for no backward pass.
int32_t assay_train_forward(
    Trainer* t, int32_t n, const int64_t* ids, const int64_t* offsets, int64_t wanted, const int64_t* at, std::shared_ptr<Trail>* trail,
    int32_t threads, float* out, Tape** tape) {
    return guarded([&] {
        auto made = std::make_unique<Tape>(*t);
        Rows rows(ids, offsets, n, at, wanted);
        lay_out(*made, rows, n, wanted, at, trail && same_weights(*t, **trail) ? trail->get() : nullptr);
        const Block* check = nullptr;
        if ((t->unchecked += made->recalled) >= CHECKED)
            for (const Block& b : made->blocks)
                if (!b.kept.empty()) check = &b, t->unchecked = 0;
        std::atomic<bool> differs{false};
        auto pass = [&](int i, Borrowed& own) {
            Block& b = made->blocks[i];
            b.states = t->states.take([] { return std::make_unique<States>(); });
            if (b.kept.empty()) forward(*t, b, *own.work, tape != nullptr, out);
            else recall(*t, b, *own.work, out);
            if (&b == check && !checked(*t, rows, at, b, *own.work, out)) differs = true;
            if (!tape) t->states.give(std::move(b.states));
        };
        int32_t status = share_out(static_cast<int>(made->blocks.size()), threads, [t] { return Borrowed(*t); }, pass);
        if (status == DONE && differs) return int32_t{RECALLED_OTHERWISE};
        if (tape && status == DONE) *tape = made.release();
        return status;
    });
}

// nodes of the forward pass: tokens, but what several begin with once; of these, those that a sampler had computed
void assay_train_nodes(const Tape* tape, int64_t* out) { out[0] = tape->nodes, out[1] = tape->recalled; }

void assay_train_forget(Tape* tape) { delete tape; }

// gradients by the weights, in their order, of what has the gradient `grad` by the states that the forward pass gave
int32_t assay_train_backward(const Tape* tape, const float* grad, int32_t threads, float* const* to) {
    return guarded([&] {
        Trainer& t = tape->t;
        int blocks = static_cast<int>(tape->blocks.size());
        int64_t most = std::max<int64_t>(1, std::min<int64_t>({LANES, blocks, SUMS / weights(t.s)}));
        int count = static_cast<int>(std::clamp<int64_t>(tape->nodes / LANE, 1, most));
        std::vector<std::unique_ptr<Sums>> lanes(count);
        auto pass = [&](int i, Borrowed& own) {
            lanes[i] = t.sums.take([&] { return std::make_unique<Sums>(t.s); });
            lanes[i]->each(t.s, [](Sum& sum, int first, int) { if (!first) sum.data.zero(); });
            for (int b = blocks * i / count; b < blocks * (i + 1) / count; b++)
                backward(t, tape->blocks[b], *own.work, grad, *lanes[i]);
        };
        int32_t status = share_out(count, threads, [&t] { return Borrowed(t); }, pass);
        if (status != DONE) return status;
        for (auto& lane : lanes) {
            float* const* into = to;
            bool begins = lane == lanes[0];
            lane->each(t.s, [&](Sum& sum, int first, int rows) {
                float* out = *into++;
                for (int r = first; r < first + rows; r++, out += sum.inputs) {
                    const float* from = sum + r * sum.ld;
                    if (begins) std::memcpy(out, from, sum.inputs * sizeof(float));
                    else for (int j = 0; j < sum.inputs; j++) out[j] += from[j];
                }
            });
        }
        for (auto& lane : lanes) t.sums.give(std::move(lane));
        return status;
    });
}

}  // extern "C"
