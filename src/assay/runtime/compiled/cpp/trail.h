// What a sampler computed of the tokens that it read, kept for gradient passes with the same weights.
//
// A path is a prompt and what was sampled behind it. Of each of its tokens there are the states that a backward pass reads, on lines
// of their own, written past the caches: they are read again when all else has been computed.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "memory.h"
#include "parts.h"

namespace assay {

struct Cells {  // where the states of a token lie: in each layer, and behind all layers; floats
    size_t x = 0, qkv, mixed, middle, gate_up, layer, last, token;

    explicit Cells(const Shape& s) {
        auto lines = [](int n) { return static_cast<size_t>(up(n, LINE)); };
        qkv = x + lines(s.hidden);
        mixed = qkv + lines((s.heads + 2 * s.kv_heads) * s.head_dim);
        middle = mixed + lines(s.heads * s.head_dim);
        gate_up = middle + lines(s.hidden);
        layer = gate_up + lines(2 * s.inner);
        last = layer * s.layers;
        token = last + lines(s.hidden);
    }
};

// rows of states: one behind the other, or where a sampler left them
struct StateRows {
    const float* base = nullptr;
    size_t ld = 0;
    const float* const* kept = nullptr;  // of each node, all its states
    size_t cell = 0;
    const int* read = nullptr;  // the node of each row; null: the nodes are the rows

    // asks for n floats of a row that is read soon, where a sampler left it: far away
    void ask(int r, int from, int n) const {
        if (kept)
            for (int i = from; i < from + n; i += LINE) soon((*this)[r] + i);
    }
    const float* operator[](int r) const { return kept ? kept[read ? read[r] : r] + cell : base + r * ld; }
};

class Sheets {  // room for the states of PAGE tokens each, as many as the budget allows; what was made once is used again
  public:
    const size_t floats;

    Sheets(size_t token, int64_t most) : floats(token * PAGE), most_(most) {}
    ~Sheets() {
        for (float* sheet : spare_) Slabs::give(sheet, size());
    }
    float* take() {  // null where there is no more room
        std::lock_guard<std::mutex> held(lock_);
        if (!spare_.empty()) {
            float* found = spare_.back();
            spare_.pop_back();
            return found;
        }
        if ((made_ + 1) * static_cast<int64_t>(size()) > most_) return nullptr;
        spare_.reserve(static_cast<size_t>(made_) + 1);  // so that giving one back cannot fail
        auto* fresh = static_cast<float*>(Slabs::take(size()));
        if (fresh) made_++;
        return fresh;
    }
    void give(std::vector<float*>& sheets) {
        std::lock_guard<std::mutex> held(lock_);
        spare_.insert(spare_.end(), sheets.begin(), sheets.end());
        sheets.clear();
    }
    int64_t bytes() {
        std::lock_guard<std::mutex> held(lock_);
        return made_ * static_cast<int64_t>(size());
    }

  private:
    std::mutex lock_;
    std::vector<float*> spare_;
    int64_t most_, made_ = 0;

    size_t size() const { return floats * sizeof(float); }
};

struct Path {
    std::shared_ptr<Sheets> sheets;
    int64_t era;                         // of the trail: other weights, another era
    std::shared_ptr<const Path> before;  // the prompt; null for one
    std::vector<int> ids;                // all tokens whose states are there, those of the prompt too

    Path(std::shared_ptr<Sheets> sheets, int64_t era, std::shared_ptr<const Path> before)
        : sheets(std::move(sheets)), era(era), before(std::move(before)) {
        if (this->before) ids = this->before->ids;
        begin_ = length();
    }
    Path(const Path&) = delete;
    ~Path() { sheets->give(own_); }

    int length() const { return static_cast<int>(ids.size()); }
    float* at(int position) const {
        if (position < begin_) return before->at(position);
        int own = position - begin_;
        return own_[static_cast<size_t>(own / PAGE)] + static_cast<size_t>(own % PAGE) * (sheets->floats / PAGE);
    }
    float* more(int id) {  // where the states of one more token go; null where there is no room
        if ((length() - begin_) % PAGE == 0) {
            own_.reserve(own_.size() + 1);
            float* sheet = sheets->take();
            if (!sheet) return nullptr;
            own_.push_back(sheet);
        }
        ids.push_back(id);
        return at(length() - 1);
    }

  private:
    int begin_ = 0;
    std::vector<float*> own_;
};

struct Trail {
    Shape s;
    Cells cells;
    std::shared_ptr<Sheets> sheets;
    bool open = false;
    int64_t era = 0;
    std::vector<std::pair<const float*, size_t>> weights;  // of the sampler: embedding, layers, norm; cosines, sines
    std::vector<std::shared_ptr<const Path>> paths;

    Trail(const Shape& s, int64_t most) : s(s), cells(s), sheets(std::make_shared<Sheets>(cells.token, most)) {}

    void forget() { era++, paths.clear(), sorted_ = 0; }
    std::shared_ptr<Path> begin(std::shared_ptr<const Path> before = nullptr) const {
        return std::make_shared<Path>(sheets, era, std::move(before));
    }
    void keep(std::shared_ptr<Path> path) noexcept {
        try {
            if (path && path->era == era) paths.push_back(std::move(path));
        } catch (const std::bad_alloc&) {  // then it goes
        }
    }
    // a path that begins with these; null for none
    std::shared_ptr<const Path> find(const int64_t* ids, int n) {
        auto less = [](const std::shared_ptr<const Path>& a, const std::shared_ptr<const Path>& b) { return a->ids < b->ids; };
        if (sorted_ != paths.size()) std::sort(paths.begin(), paths.end(), less), sorted_ = paths.size();
        auto before = [&](const std::shared_ptr<const Path>& path, int) {
            return std::lexicographical_compare(path->ids.begin(), path->ids.end(), ids, ids + n);
        };
        auto found = std::lower_bound(paths.begin(), paths.end(), 0, before);
        bool fits = found != paths.end() && (*found)->length() >= n && std::equal(ids, ids + n, (*found)->ids.begin());
        return fits ? *found : nullptr;
    }

  private:
    size_t sorted_ = 0;
};

}  // namespace assay
