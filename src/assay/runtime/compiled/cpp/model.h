// The model: its weights, the pages of keys and values, and what a thread computes in.
//
// Keys and values lie in pages of PAGE positions, keys with positions innermost, so that scores need no sum across a vector. A
// prompt's pages are shared by all rows that go on from it.

#pragma once

#include <atomic>
#include <cmath>
#include <mutex>
#include <vector>

#include "half.h"
#include "trail.h"

namespace assay {

struct Weights {  // of a matrix product, float32 or bfloat16
    bool half = false;
    Matrix full;
    HalfMatrix rounded;

    Weights() = default;
    Weights(int n, int k, bool half) : half(half) {
        if (half) rounded = HalfMatrix(n, k);
        else full = Matrix(n, k);
    }
    void pack(const float* w) { half ? rounded.pack(w) : full.pack(w); }
    void unpack(float* w) const { half ? rounded.unpack(w) : full.unpack(w); }
};

struct Layer {
    Floats norm1, norm2, q_norm, k_norm;
    Weights qkv, out, gate_up, down;
};

struct Pages {  // keys and values of some positions; a page is [layer][kv head][keys: head_dim x PAGE, values: PAGE x head_dim]
    std::vector<float*> at;
    int length = 0;
};

struct Prefix {  // a prompt
    Pages pages;
    Floats logits;  // behind its last token
    std::atomic<int> users{1};
    std::shared_ptr<Path> path;  // null where its states are not kept
};

struct Slot {
    Prefix* prefix = nullptr;
    Pages own;
    std::shared_ptr<Path> path;
};

struct Row {
    int id, position;
    const Pages* before;  // shared pages, positions [0, length); null for none
    Pages* own;           // the row's keys and values are written at position - length of `before`
    float* keep;          // where its states go; null for nowhere
};

struct Engine {
    Shape s;
    int block;
    bool half;
    std::vector<Layer> layers;
    Floats embedding, norm, cosine, sine;  // the last two [positions, head_dim / 2]
    Weights head;
    std::vector<Slot> slots;
    std::shared_ptr<Trail> trail;  // null for none

    size_t head_floats() const { return static_cast<size_t>(2) * PAGE * s.head_dim; }
    size_t page_floats() const { return head_floats() * s.layers * s.kv_heads; }
    int logits_wide() const { return up(s.vocabulary, PANEL); }

    int64_t pages() const { return made_; }
    int64_t unused() const { return static_cast<int64_t>(spare_.size()); }  // no other thread at work

    void reserve(Pages& pages, int length) {
        while (static_cast<int>(pages.at.size()) * PAGE < length) pages.at.push_back(page());
        pages.length = length;
    }
    void give(Pages& pages) {
        std::lock_guard<std::mutex> held(lock_);
        spare_.insert(spare_.end(), pages.at.begin(), pages.at.end());
        pages.at.clear();
        pages.length = 0;
    }
    void leave(Prefix* prefix) {
        if (!prefix || --prefix->users) return;
        give(prefix->pages);
        delete prefix;
    }
    void close(Slot& slot) {
        if (trail) trail->keep(std::move(slot.path));
        slot.path = nullptr;
        give(slot.own);
        leave(slot.prefix);
        slot.prefix = nullptr;
    }
    ~Engine() {
        if (trail) trail->weights.clear(), trail->forget();
        trail = nullptr;
        for (Slot& slot : slots) close(slot);
        for (float* page : spare_) Slabs::give(page, page_floats() * sizeof(float));
    }

  private:
    std::mutex lock_;
    std::vector<float*> spare_;  // with room for every page that there is, so that giving one back cannot fail
    std::atomic<int64_t> made_{0};

    float* page() {
        {
            std::lock_guard<std::mutex> held(lock_);
            if (!spare_.empty()) {
                float* found = spare_.back();
                spare_.pop_back();
                return found;
            }
            made_++;
            if (spare_.capacity() < static_cast<size_t>(made_)) spare_.reserve(2 * static_cast<size_t>(made_));
        }
        void* fresh = Slabs::take(page_floats() * sizeof(float));
        if (!fresh) {
            made_--;
            throw std::bad_alloc();
        }
        std::memset(fresh, 0, page_floats() * sizeof(float));
        return static_cast<float*>(fresh);
    }
};

struct Borrowed {  // pages that go back when this ends
    Engine& engine;
    std::vector<Pages> pages;

    Borrowed(Engine& e, int n) : engine(e), pages(static_cast<size_t>(n)) {}
    ~Borrowed() {
        for (Pages& p : pages) engine.give(p);
    }
};

// What a row attends to: pages of the prompt, then its own. Of each prompt's and each row's last page only some positions count.
struct Reach {
    std::vector<float*> at;
    int before, own, split;  // positions of the prompt, of the row; where the row's begin among whole pages

    void take(const Row& row) {
        before = row.before ? row.before->length : 0, own = row.position + 1 - before, split = up(before, PAGE);
        at.clear();
        if (before) at.insert(at.end(), row.before->at.begin(), row.before->at.begin() + split / PAGE);
        at.insert(at.end(), row.own->at.begin(), row.own->at.begin() + up(own, PAGE) / PAGE);
    }
    int pages() const { return static_cast<int>(at.size()); }
    int counts(int page) const {
        int first = page * PAGE;
        return std::min(PAGE, first < split ? before - first : own - (first - split));
    }
};

constexpr int TOGETHER = 4;  // heads whose values are mixed at once

struct Work {  // what one thread computes in, for up to `rows` rows
    int hidden, qkv, mixed, gate;
    Floats x, normed, heads, attended, inner, scores, halves;
    Reach reach, next;
    Asking asking;
    std::vector<float*> kept;

    Work(const Engine& e, int rows)
        : hidden(up(e.s.hidden, PANEL)), qkv(up((e.s.heads + 2 * e.s.kv_heads) * e.s.head_dim, PANEL)),
          mixed(up(e.s.heads * e.s.head_dim, PANEL)), gate(up(2 * e.s.inner, PANEL)), x(size(rows, hidden)),
          normed(size(rows, hidden)), heads(size(rows, qkv)), attended(size(rows, mixed)), inner(size(rows, gate)),
          scores(TOGETHER * scores_wide(e)),
          halves(e.half ? size(rows, std::max({hidden, mixed, gate / 2})) : 0) {}

    static size_t scores_wide(const Engine& e) { return static_cast<size_t>(e.s.positions) + 2 * PAGE; }
    static size_t size(int rows, int wide) { return static_cast<size_t>(rows) * wide; }
    float* states(int r) const { return normed + size(r, hidden); }
    void product(
        const float* from, size_t ldx, int rows, const Weights& m, float* y, size_t ldy, bool add = false, const Beside& beside = {}) const {
        if (m.half) half_linear(from, ldx, rows, m.rounded, halves, y, ldy, add);
        else linear(from, ldx, rows, m.full, y, ldy, add, beside);
    }
};

}  // namespace assay
