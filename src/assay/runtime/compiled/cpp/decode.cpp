// Decoding of small decoders (Llama and Qwen3 families, float32) on the cores of one machine.
//
// A row is one token of one sequence. Rows pass through the model in blocks that a thread owns from the embedding to the drawn
// token: threads share nothing but a counter of blocks, so there are no barriers. Each number of a row is computed by the same
// operations in the same order whatever stands beside it, so that results do not depend on the batch, on the order in which rows
// were admitted, or on the number of threads.

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "draw.h"
#include "forward.h"
#include "share.h"

using namespace assay;

namespace {

struct Thread {
    Work work;
    Floats logits;
    Draw draw;
    std::vector<Row> rows;
    std::vector<int> last;  // of each row of a prefill, the prompt whose last token it is; -1: not a last one

    Thread(const Engine& e) : work(e, e.block), logits(Work::size(e.block, e.logits_wide())), draw{Floats(e.logits_wide()), {}} {}
};

// rows go on by one token each; those that have none yet draw from behind their prompt
void step(Engine& e, const Table& t, Thread& own, std::vector<int>& live, int8_t* ended) {
    own.rows.clear();
    for (int slot : live) {
        if (!t.count[slot]) continue;
        Slot& s = e.slots[slot];
        int at = static_cast<int>(t.count[slot]) - 1, before = s.prefix->pages.length;
        e.reserve(s.own, at + 1);
        float* keep = s.path ? s.path->more(static_cast<int>(t.token[slot])) : nullptr;
        if (!keep) s.path = nullptr;
        own.rows.push_back({static_cast<int>(t.token[slot]), before + at, &s.prefix->pages, &s.own, keep});
    }
    if (!own.rows.empty()) {
        forward(e, own.rows.data(), static_cast<int>(own.rows.size()), own.work);
        own.work.product(own.work.normed, own.work.hidden, static_cast<int>(own.rows.size()), e.head, own.logits, e.logits_wide());
    }
    Floats first;
    size_t kept = 0;
    int row = 0;
    for (int slot : live) {
        int64_t at = t.count[slot];
        float* z = own.logits + Work::size(row, e.logits_wide());
        if (at) {
            row++;
        } else {
            if (!first) first = Floats(e.logits_wide());
            z = first;
            std::memcpy(z, e.slots[slot].prefix->logits, static_cast<size_t>(e.s.vocabulary) * 4);
        }
        Drawn drawn = own.draw(z, e, t, slot, at);
        int64_t cell = slot * t.width + at;
        t.ids[cell] = drawn.id, t.logp[cell] = drawn.logp, t.entropy[cell] = drawn.entropy;
        t.token[slot] = drawn.id, t.count[slot] = at + 1, t.position[slot]++;
        const int64_t* stops = t.stop + slot * t.stops;
        bool stopped = std::find(stops, stops + t.stops, drawn.id) != stops + t.stops || std::isnan(drawn.logp);
        ended[slot] = stopped ? 1 : at + 1 >= t.limit[slot] ? 2 : 0;
        if (!ended[slot]) live[kept++] = slot;
    }
    live.resize(kept);
}

void forget(Engine& e, int n) {
    for (size_t slot = n; slot < e.slots.size(); slot++) e.close(e.slots[slot]);
}

// of own.rows, whole sequences in order
void score_rows(Engine& e, Thread& own, float* out) {
    int wide = e.logits_wide(), size = static_cast<int>(own.rows.size());
    for (int first = 0; first < size; first += e.block) {
        int rows = std::min(size - first, e.block);
        forward(e, own.rows.data() + first, rows, own.work);
        own.work.product(own.work.normed, own.work.hidden, rows, e.head, own.logits, wide);
        for (int r = 0; r < rows; r++) {
            int next = first + r + 1;
            if (!own.rows[next - 1].position) out[next - 1] = 0.0f;
            if (next == size || !own.rows[next].position) continue;
            float* z = own.logits + Work::size(r, wide);
            float wanted = z[own.rows[next].id];
            Odds o = odds(z, e.s.vocabulary, wide, own.draw.p);
            out[next] = static_cast<float>(wanted - o.most - std::log(o.total));
        }
    }
}

}  // namespace

extern "C" {

// null where memory does not suffice; half: products take bfloat16
Engine* assay_engine(const Shape* shape, const float* cosine, const float* sine, int32_t block, int32_t half) try {
    auto e = std::make_unique<Engine>();
    const Shape& s = e->s = *shape;
    e->block = block, e->half = half != 0;
    size_t turns = static_cast<size_t>(s.positions) * (s.head_dim / 2);
    e->cosine = Floats(turns), e->sine = Floats(turns), e->norm = Floats(s.hidden);
    std::memcpy(e->cosine, cosine, turns * 4), std::memcpy(e->sine, sine, turns * 4);
    e->embedding = Floats(static_cast<size_t>(s.vocabulary) * s.hidden);
    e->head = Weights(s.vocabulary, s.hidden, e->half);
    for (int i = 0; i < s.layers; i++)
        e->layers.push_back(Layer{
            Floats(s.hidden), Floats(s.hidden), Floats(s.head_dim), Floats(s.head_dim),
            Weights((s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden, e->half), Weights(s.hidden, s.heads * s.head_dim, e->half),
            Weights(2 * s.inner, s.hidden, e->half), Weights(s.hidden, s.inner, e->half)});
    return e.release();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void assay_engine_free(Engine* e) { delete e; }

}  // extern "C"

// The arrays of the weights, in this order: embedding, norm, head; then of each layer norm1, qkv, out, norm2, gate_up, down and,
// where queries and keys are normed, q_norm, k_norm. `plain` sees those that are kept as they are, `packed` the matrices.
template <class Plain, class Packed>
void each_array(Engine& e, Plain plain, Packed packed) {
    const Shape& s = e.s;
    plain(e.embedding, static_cast<size_t>(s.vocabulary) * s.hidden);
    plain(e.norm, s.hidden);
    packed(e.head);
    for (Layer& l : e.layers) {
        plain(l.norm1, s.hidden);
        packed(l.qkv);
        packed(l.out);
        plain(l.norm2, s.hidden);
        packed(l.gate_up);
        packed(l.down);
        if (s.qk_norm) plain(l.q_norm, s.head_dim), plain(l.k_norm, s.head_dim);
    }
}

extern "C" {

void assay_load(Engine* e, const float* const* w) {
    if (e->trail) {
        e->trail->forget();
        for (Slot& slot : e->slots) slot.path = nullptr;  // it goes on from keys and values of other weights
    }
    each_array(*e, [&](float* to, size_t n) { std::memcpy(to, *w++, n * 4); }, [&](Weights& m) { m.pack(*w++); });
}

// A trail of at most so many bytes, which the engine leaves from now on while it is open; null where memory does not suffice. It
// outlives the engine, and is given back by `assay_trail_free`.
std::shared_ptr<Trail>* assay_trail(Engine* e, int64_t most) try {
    auto trail = std::make_shared<Trail>(e->s, most);
    auto add = [&](const float* data, size_t n) { trail->weights.push_back({data, n}); };
    auto matrix = [&](const Weights& m) { add(m.full.data, m.full.floats()); };
    add(e->embedding, static_cast<size_t>(e->s.vocabulary) * e->s.hidden);
    for (Layer& l : e->layers) {
        add(l.norm1, e->s.hidden), matrix(l.qkv), matrix(l.out);
        if (e->s.qk_norm) add(l.q_norm, e->s.head_dim), add(l.k_norm, e->s.head_dim);
        add(l.norm2, e->s.hidden), matrix(l.gate_up), matrix(l.down);
    }
    add(e->norm, e->s.hidden);
    size_t turns = static_cast<size_t>(e->s.positions) * (e->s.head_dim / 2);
    add(e->cosine, turns), add(e->sine, turns);
    auto handle = std::make_unique<std::shared_ptr<Trail>>(trail);
    e->trail = trail;
    return handle.release();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void assay_trail_free(std::shared_ptr<Trail>* trail) { delete trail; }

// what is sampled from now on is kept, or no longer; what was kept is forgotten where it begins anew
void assay_trail_open(std::shared_ptr<Trail>* trail, int32_t open) {
    if (open && !(*trail)->open) (*trail)->forget();
    (*trail)->open = open != 0;
}

// paths that are kept, their tokens, and the bytes that were made for states
void assay_trail_size(std::shared_ptr<Trail>* trail, int64_t* out) {
    out[0] = static_cast<int64_t>((*trail)->paths.size()), out[1] = 0, out[2] = (*trail)->sheets->bytes();
    for (auto& path : (*trail)->paths) out[1] += path->length();
}

// what the decode path multiplies with, as it was given
void assay_read(Engine* e, float* const* w) {
    each_array(*e, [&](float* from, size_t n) { std::memcpy(*w++, from, n * 4); }, [&](Weights& m) { m.unpack(*w++); });
}

// n prompts pass through the model: ids of all behind one another, prompt i at [offsets[i], offsets[i + 1])
int32_t assay_prefill(Engine* e, int32_t n, const int64_t* ids, const int64_t* offsets, int32_t threads, Prefix** out) {
    std::fill(out, out + n, nullptr);
    int32_t status = guarded([&] {
        std::vector<int> starts = units(offsets, n, e->block);
        return share_out(static_cast<int>(starts.size()) - 1, threads, [e] { return Thread(*e); }, [&](int unit, Thread& own) {
            own.rows.clear(), own.last.clear();
            for (int i = starts[unit]; i < starts[unit + 1]; i++) {
                out[i] = new Prefix;
                out[i]->logits = Floats(e->logits_wide());
                int length = static_cast<int>(offsets[i + 1] - offsets[i]);
                e->reserve(out[i]->pages, length);
                std::shared_ptr<Path>& path = out[i]->path;
                if (e->trail && e->trail->open) path = e->trail->begin();
                for (int k = 0; path && k < length; k++)
                    if (!path->more(static_cast<int>(ids[offsets[i] + k]))) path = nullptr;
                for (int k = 0; k < length; k++) {
                    float* keep = path ? path->at(k) : nullptr;
                    own.rows.push_back({static_cast<int>(ids[offsets[i] + k]), k, nullptr, &out[i]->pages, keep});
                    own.last.push_back(k == length - 1 ? i : -1);
                }
            }
            for (size_t first = 0; first < own.rows.size(); first += e->block) {
                int rows = std::min(static_cast<int>(own.rows.size() - first), e->block);
                forward(*e, own.rows.data() + first, rows, own.work);
                for (int r = 0; r < rows; r++)
                    if (int i = own.last[first + r]; i >= 0)
                        own.work.product(own.work.states(r), own.work.hidden, 1, e->head, out[i]->logits, e->logits_wide());
            }
        });
    });
    if (status != DONE)
        for (int i = 0; i < n; i++) e->leave(out[i]), out[i] = nullptr;
    return status;
}

void assay_leave(Engine* e, Prefix* prefix) { e->leave(prefix); }

// rows [first, first + n) go on from prompts
int32_t assay_open(Engine* e, int32_t first, int32_t n, Prefix* const* prefixes) {
    return guarded([&] {
        if (static_cast<int>(e->slots.size()) < first + n) e->slots.resize(first + n);
        for (int i = 0; i < n; i++) {
            e->close(e->slots[first + i]);
            prefixes[i]->users++;
            Slot& slot = e->slots[first + i];
            slot.prefix = prefixes[i];
            if (e->trail && e->trail->open && prefixes[i]->path && prefixes[i]->path->era == e->trail->era)
                slot.path = e->trail->begin(prefixes[i]->path);
        }
        return DONE;
    });
}

// pages of keys and values in use, and those that wait for use
void assay_pages(const Engine* e, int64_t* out) {
    out[1] = e->unused();
    out[0] = e->pages() - out[1];
}

// rows from[i] are rows to[i] from now on, then rows from n on are forgotten
void assay_keep(Engine* e, int32_t moves, const int64_t* from, const int64_t* to, int32_t n) {
    for (int i = 0; i < moves; i++) {
        e->close(e->slots[to[i]]);
        std::swap(e->slots[to[i]], e->slots[from[i]]);
    }
    forget(*e, n);
}

// rows [0, n) go on by at most `tokens` each, rows behind them are forgotten; ended: 0 no, 1 by a stop id, 2 by their length
int32_t assay_advance(Engine* e, int32_t n, const Table* table, int32_t tokens, int32_t threads, int8_t* ended) {
    forget(*e, n);
    int blocks = std::max(up(n, e->block) / e->block, std::min(threads, n));
    int32_t status = share_out(blocks, threads, [e] { return Thread(*e); }, [&](int block, Thread& own) {
        int first = static_cast<int>(int64_t{n} * block / blocks), last = static_cast<int>(int64_t{n} * (block + 1) / blocks);
        std::vector<int> live(static_cast<size_t>(last - first));
        std::iota(live.begin(), live.end(), first);
        for (int i = 0; i < tokens && !live.empty(); i++) step(*e, *table, own, live, ended);
    });
    if (status != DONE)
        for (int i = 0; i < n; i++) e->slots[i].path = nullptr;  // its last states may not have been written
    return status;
}

// log-probability of each token given those before it, at temperature 1; 0 for the first of a sequence
int32_t assay_score(Engine* e, int32_t n, const int64_t* ids, const int64_t* offsets, int32_t threads, float* out) {
    return guarded([&] {
        std::vector<int> starts = units(offsets, n, e->block);
        return share_out(static_cast<int>(starts.size()) - 1, threads, [e] { return Thread(*e); }, [&](int unit, Thread& own) {
            Borrowed lent(*e, starts[unit + 1] - starts[unit]);
            own.rows.clear();
            for (int i = starts[unit]; i < starts[unit + 1]; i++) {
                Pages& p = lent.pages[i - starts[unit]];
                int length = static_cast<int>(offsets[i + 1] - offsets[i]);
                e->reserve(p, length);
                for (int k = 0; k < length; k++) own.rows.push_back({static_cast<int>(ids[offsets[i] + k]), k, nullptr, &p, nullptr});
            }
            score_rows(*e, own, out + offsets[starts[unit]]);
        });
    });
}

}  // extern "C"
