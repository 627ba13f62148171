// Rows as forests: what several rows begin with is there once.

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace assay {

struct Rows {  // row i begins at ids[offsets[i]]; what stands behind the last of its tokens that is read does not count
    const int64_t *ids, *offsets;
    std::vector<int> lengths;

    // at: places of the tokens that are read, in all that the rows hold
    Rows(const int64_t* ids, const int64_t* offsets, int n, const int64_t* at, int64_t wanted) : ids(ids), offsets(offsets), lengths(n, 0) {
        for (int64_t i = 0; i < wanted; i++) {
            int row = static_cast<int>(std::upper_bound(offsets, offsets + n + 1, at[i]) - offsets) - 1;
            lengths[row] = std::max(lengths[row], static_cast<int>(at[i] - offsets[row]) + 1);
        }
    }
    int length(int row) const { return lengths[row]; }
    const int64_t* begin(int row) const { return ids + offsets[row]; }
    const int64_t* end(int row) const { return begin(row) + lengths[row]; }
    int shared(int a, int b) const {  // tokens that both begin with
        int n = std::min(length(a), length(b));
        return static_cast<int>(std::mismatch(begin(a), begin(a) + n, begin(b)).first - begin(a));
    }
};

struct Range {
    int start, count;
};

struct Span {  // nodes [start, start + count), each but the first the only one behind the one before it
    int start, count;
    int before;         // nodes ahead of the first
    int first, ranges;  // where these lie: ranges [first, first + ranges) of the forest
};

struct Forest {
    std::vector<int> ids, positions;  // of each node; the one behind which it stands has a lower number
    std::vector<Span> spans;
    std::vector<Range> ranges;

    int nodes() const { return static_cast<int>(ids.size()); }
};

// Rows of which something is read in lexical order, in parts of at most `most` nodes; a longer row by itself. A part ends where the
// next row shares least with it, in its second half.
inline std::vector<std::vector<int>> parted(const Rows& rows, int most) {
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(rows.lengths.size()); i++)
        if (rows.length(i)) order.push_back(i);
    int n = static_cast<int>(order.size());
    std::vector<int> common(static_cast<size_t>(n) + 1, 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return std::lexicographical_compare(rows.begin(a), rows.end(a), rows.begin(b), rows.end(b));
    });
    for (int i = 1; i < n; i++) common[i] = rows.shared(order[i - 1], order[i]);
    std::vector<std::vector<int>> parts;
    for (int first = 0; first < n;) {
        int nodes = rows.length(order[first]), end = first + 1, cut = 0;
        for (;; end++) {
            if (2 * nodes >= most && (!cut || common[end] <= common[cut])) cut = end;
            if (end == n || nodes + rows.length(order[end]) - common[end] > most) break;
            nodes += rows.length(order[end]) - common[end];
        }
        if (!cut || end == n) cut = end;
        parts.emplace_back(order.begin() + first, order.begin() + cut);
        first = cut;
    }
    return parts;
}

// the rows of a part; node_of gets the node of each of their tokens
inline Forest forest_of(const Rows& rows, const std::vector<int>& part, std::vector<int>& node_of) {
    Forest f;
    std::vector<int> path, parents, children, span_of;
    for (size_t i = 0; i < part.size(); i++) {
        int row = part[i], common = i ? rows.shared(part[i - 1], row) : 0;
        path.resize(common);
        for (int k = common; k < rows.length(row); k++) {
            parents.push_back(k ? path[k - 1] : -1), children.push_back(0);
            if (k) children[path[k - 1]]++;
            path.push_back(f.nodes());
            f.ids.push_back(static_cast<int>(rows.begin(row)[k])), f.positions.push_back(k);
        }
        std::copy(path.begin(), path.end(), node_of.begin() + rows.offsets[row]);
    }
    for (int node = 0; node < f.nodes(); node++) {
        int parent = parents[node];
        if (parent < 0 || parent != node - 1 || children[parent] > 1) {
            Span span{node, 0, 0, static_cast<int>(f.ranges.size()), 0};
            if (parent >= 0) {
                const Span& above = f.spans[span_of[parent]];
                for (int i = 0; i < above.ranges; i++) f.ranges.push_back(Range(f.ranges[above.first + i]));
                if (above.ranges && f.ranges.back().start + f.ranges.back().count == above.start) f.ranges.back().count += above.count;
                else f.ranges.push_back({above.start, above.count});
                span.before = above.before + above.count;
                span.ranges = static_cast<int>(f.ranges.size()) - span.first;
            }
            f.spans.push_back(span);
        }
        span_of.push_back(static_cast<int>(f.spans.size()) - 1);
        f.spans.back().count++;
    }
    return f;
}

}  // namespace assay
