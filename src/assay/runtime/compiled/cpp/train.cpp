// Hidden states of small decoders (Llama and Qwen3 families, float32), and the gradient by their weights, on the cores of one machine.
//
// Rows are cut into blocks, each a forest that a thread takes through all layers, forward and later backward; a beginning that rows
// of a block share is computed once, and gets the sum of their gradients. Numbers of the forward pass do not depend on what else
// there is. Gradients of blocks are added up in lanes, as many as the number of nodes says, and these in their order: so that
// nothing depends on the number of threads. States that a sampler left on its trail, by the same weights, have the same bits: a block
// of which all are there is not computed again.

#include <cstring>

#include "digest.h"
#include "passes.h"
#include "share.h"

using namespace assay;
using namespace assay::training;

namespace {

constexpr int BLOCK = 384;         // most nodes of a block, that its states stay near
constexpr int LANE = 1024;         // nodes that are worth a lane
constexpr int64_t LANES = 8;       // most; a power of two, as their number is: two and four threads have lanes alike
constexpr int64_t SUMS = 1 << 26;  // most weights of all lanes
constexpr int64_t CHECKED = 4096;  // recalled nodes on which a row is computed too
constexpr int32_t RECALLED_OTHERWISE = 4;  // beside the states of share.h

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

// visits the weights in the order of `assay_train_load`: `plain` those that are kept as they are, and how many floats; `packed` the
// outputs [first, first + n) of a matrix, and of that transposed
template <class Plain, class Packed>
void each_weight(Trainer& t, Plain plain, Packed packed) {
    const Shape& s = t.s;
    int q = s.heads * s.head_dim, k = s.kv_heads * s.head_dim;
    plain(t.embedding, static_cast<size_t>(s.vocabulary) * s.hidden);
    for (Layer& l : t.layers) {
        plain(l.norm1, s.hidden);
        packed(l.qkv, l.qkv_back, 0, q), packed(l.qkv, l.qkv_back, q, k), packed(l.qkv, l.qkv_back, q + k, k);
        packed(l.out, l.out_back, 0, s.hidden);
        if (s.qk_norm) plain(l.q_norm, s.head_dim), plain(l.k_norm, s.head_dim);
        plain(l.norm2, s.hidden);
        packed(l.gate_up, l.gate_up_back, 0, s.inner), packed(l.gate_up, l.gate_up_back, s.inner, s.inner);
        packed(l.down, l.down_back, 0, s.hidden);
    }
    plain(t.norm, s.hidden);
}

// whether a sampler multiplied with the trainer's weights, and turned by its angles, bit by bit
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
    size_t turns = static_cast<size_t>(t.s.positions) * (t.s.head_dim / 2);
    plain(t.cosine, turns), plain(t.sine, turns);
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
// norm. `back`: a backward pass will follow. What was loaded last is told by its digest, and is not packed again.
int32_t assay_train_load(Trainer* t, const float* const* w, int32_t back, uint64_t* digest) {
    return guarded([&] {
        t->room(back);
        uint64_t found = 0, place = 1;
        const float* const* next = w;
        auto mix = [&](size_t n) { found += mixed_word(mixed_total(*next++, static_cast<int64_t>(n * sizeof(float))), place++); };
        each_weight(*t, [&](float*, size_t n) { mix(n); }, [&](Matrix& m, Matrix&, int, int n) { mix(static_cast<size_t>(n) * m.inputs); });
        bool anew = found != t->digest, across = back && (anew || !t->across);
        auto plain = [&](float* to, size_t n) { std::memcpy(to, *w++, n * sizeof(float)); };
        auto packed = [&](Matrix& m, Matrix& back_again, int first, int n) {
            if (anew) m.pack(*w, first, n);
            if (across) back_again.pack_across(*w, first, n);
            w++;
        };
        if (anew || across) each_weight(*t, plain, packed);
        if (anew) t->across = false;
        t->across = t->across || across, *digest = t->digest = found;
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
        int64_t most = std::min<int64_t>({LANES, blocks, SUMS / weights(t.s), tape->nodes / LANE});
        int count = 1;
        while (2 * count <= most) count *= 2;
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
