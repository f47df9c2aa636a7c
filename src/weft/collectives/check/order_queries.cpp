#include "weft/collectives/check/order_queries.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>

namespace weft::collective {
namespace {

constexpr std::int32_t kGlance = 4;     // nodes of its own thread that trivially_ordered() looks back at
constexpr std::size_t kLineBytes = 64;  // a cache line

// One entry per column. 16 bits suffice except for very long threads.
template <class Entry>
struct Line {
  static constexpr std::size_t kColumns = kLineBytes / sizeof(Entry);
  std::array<Entry, kColumns> entries{};

  void raise_to(const Line& other) {
    for (std::size_t i = 0; i < kColumns; ++i)
      entries[i] = entries[i] < other.entries[i] ? other.entries[i] : entries[i];
  }
};

// Nodes in order, with all that a pass reads stored contiguously: there are many passes, and
// consecutive nodes of a run belong to different threads.
struct Strip {
  std::vector<std::int32_t> nodes;
  std::vector<std::int32_t> thread;        // numbered within the strip
  std::vector<std::int32_t> first_before;  // offset in `before`
  std::vector<std::int32_t> before;        // positions of predecessors in the strip
  std::vector<std::int32_t> thread_name;   // thread of the strip -> thread of the graph
  std::int32_t lag = 0;                    // greatest distance from a node back to a predecessor
};

// `position`: the position of each node in the strip; `here(node)`: whether it is in the strip.
template <class Here>
Strip make_strip(const HappensBefore& graph, std::span<const std::int32_t> nodes,
                 std::span<const std::int32_t> position, std::vector<std::int32_t>& number_of, Here here) {
  Strip strip;
  strip.nodes.assign(nodes.begin(), nodes.end());
  strip.thread.reserve(nodes.size());
  strip.first_before.reserve(nodes.size() + 1);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const std::int32_t name = graph.thread[nodes[at]];
    if (number_of[name] < 0) {
      number_of[name] = static_cast<std::int32_t>(strip.thread_name.size());
      strip.thread_name.push_back(name);
    }
    strip.thread.push_back(number_of[name]);
    strip.first_before.push_back(static_cast<std::int32_t>(strip.before.size()));
    for (const std::int32_t earlier : graph.before(nodes[at])) {
      if (!here(earlier)) continue;
      strip.before.push_back(position[earlier]);
      strip.lag = std::max(strip.lag, static_cast<std::int32_t>(at) - position[earlier]);
    }
  }
  strip.first_before.push_back(static_cast<std::int32_t>(strip.before.size()));
  for (const std::int32_t name : strip.thread_name) number_of[name] = -1;
  return strip;
}

// The queries whose earlier node is in one thread, and the range of the strip they span.
struct Column {
  std::int32_t thread = 0;
  std::int32_t first = 0, last = 0;   // positions of the first `earlier` and the last `later`
  std::vector<std::int32_t> queries;  // in order of `later`
};

template <class Entry>
class Columns {
 public:
  Columns(const HappensBefore& graph, std::span<const std::int32_t> order,
          std::span<const OrderQuery> queries)
      : graph_(graph),
        order_(order),
        queries_(queries),
        position_(graph.nodes()),
        number_of_(graph.threads.size(), -1) {}

  std::int64_t find() {
    std::vector<std::int32_t> open = settle_by_rank();
    if (open.empty()) return -1;
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<std::int32_t>(i);
    const Strip strip = make_strip(graph_, order_, position_, number_of_, [](std::int32_t) { return true; });
    const std::vector<Column> columns = columns_of(open);
    for (std::size_t i = 0; i < columns.size(); i += Line<Entry>::kColumns) {
      open.clear();
      pass(strip, group(columns, i), open);
      if (!open.empty()) return *std::ranges::min_element(open);
    }
    return -1;
  }

 private:
  std::int32_t rank_of(std::int32_t node) const { return graph_.threads[graph_.thread[node]].rank; }

  static std::span<const Column> group(std::span<const Column> columns, std::size_t first) {
    return columns.subspan(first, std::min(Line<Entry>::kColumns, columns.size() - first));
  }

  // Returns the queries that the waits within a rank do not answer.
  std::vector<std::int32_t> settle_by_rank() {
    std::vector<std::int32_t> open, local;
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      const bool one_rank = rank_of(queries_[i].earlier) == rank_of(queries_[i].later);
      (one_rank ? local : open).push_back(static_cast<std::int32_t>(i));
    }
    if (local.empty()) return open;

    // The nodes of each rank in order.
    std::int32_t ranks = 0;
    for (const HappensBefore::Thread& thread : graph_.threads) ranks = std::max(ranks, thread.rank + 1);
    std::vector<std::int32_t> first(ranks + 1);
    for (const HappensBefore::Thread& thread : graph_.threads)
      first[thread.rank + 1] += thread.end - thread.first;
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int32_t> nodes(order_.size()), next = first;
    for (const std::int32_t node : order_) {
      const std::int32_t rank = rank_of(node);
      position_[node] = next[rank] - first[rank];
      nodes[next[rank]++] = node;
    }

    std::ranges::stable_sort(local, {}, [&](std::int32_t query) { return rank_of(queries_[query].earlier); });
    for (std::size_t begin = 0, end = 0; begin < local.size(); begin = end) {
      const std::int32_t rank = rank_of(queries_[local[begin]].earlier);
      while (end < local.size() && rank_of(queries_[local[end]].earlier) == rank) ++end;
      const Strip strip =
          make_strip(graph_, std::span(nodes).subspan(first[rank], first[rank + 1] - first[rank]), position_,
                     number_of_, [&](std::int32_t node) { return rank_of(node) == rank; });
      const std::vector<Column> columns = columns_of(std::span(local).subspan(begin, end - begin));
      for (std::size_t i = 0; i < columns.size(); i += Line<Entry>::kColumns)
        pass(strip, group(columns, i), open);
    }
    std::ranges::sort(open);
    return open;
  }

  // Sorted by position in the strip, so that the columns of a group share a short range.
  std::vector<Column> columns_of(std::span<const std::int32_t> queries) {
    std::vector<Column> columns;
    for (const std::int32_t i : queries) {
      const OrderQuery& query = queries_[i];
      const std::int32_t thread = graph_.thread[query.earlier];
      if (number_of_[thread] < 0) {
        number_of_[thread] = static_cast<std::int32_t>(columns.size());
        columns.push_back({thread, position_[query.earlier], position_[query.later], {}});
      }
      Column& own = columns[number_of_[thread]];
      own.first = std::min(own.first, position_[query.earlier]);
      own.last = std::max(own.last, position_[query.later]);
      own.queries.push_back(i);
    }
    for (const Column& column : columns) number_of_[column.thread] = -1;
    std::ranges::sort(columns, {}, &Column::first);
    return columns;
  }

  // Fills a group of columns and adds the unanswered queries to `open`.
  void pass(const Strip& strip, std::span<const Column> columns, std::vector<std::int32_t>& open) {
    std::int32_t first = std::numeric_limits<std::int32_t>::max(), last = 0;
    std::vector<std::int32_t> queries;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      first = std::min(first, columns[i].first);
      last = std::max(last, columns[i].last);
      number_of_[columns[i].thread] = static_cast<std::int32_t>(i);
      queries.insert(queries.end(), columns[i].queries.begin(), columns[i].queries.end());
    }
    std::ranges::sort(queries);  // by position of `later` in the strip
    std::vector<std::int32_t> column_of;
    for (const std::int32_t name : strip.thread_name) column_of.push_back(number_of_[name]);

    // Nodes before the range precede all of its nodes, so every column starts at zero. Lines that
    // no later node looks back at are overwritten.
    threads_.assign(strip.thread_name.size(), {});
    const std::uint32_t mask =
        std::bit_ceil(static_cast<std::uint32_t>(std::min(strip.lag, last - first)) + 1) - 1;
    if (lines_.size() <= mask) lines_.resize(mask + 1);
    std::size_t next = 0;
    for (std::int32_t at = first; at <= last; ++at) {
      const std::int32_t thread = strip.thread[at];
      Line<Entry>& line = threads_[thread];
      for (std::int32_t i = strip.first_before[at]; i < strip.first_before[at + 1]; ++i)
        if (strip.before[i] >= first) line.raise_to(lines_[strip.before[i] & mask]);
      for (; next < queries.size() && queries_[queries[next]].later == strip.nodes[at]; ++next) {
        const std::int32_t earlier = queries_[queries[next]].earlier;
        if (line.entries[number_of_[graph_.thread[earlier]]] < mark(earlier)) open.push_back(queries[next]);
      }
      if (column_of[thread] >= 0) line.entries[column_of[thread]] = mark(strip.nodes[at]);
      lines_[at & mask] = line;
    }
    for (const Column& column : columns) number_of_[column.thread] = -1;
  }

  Entry mark(std::int32_t node) const {
    return static_cast<Entry>(node - graph_.threads[graph_.thread[node]].first + 1);
  }

  const HappensBefore& graph_;
  const std::span<const std::int32_t> order_;
  const std::span<const OrderQuery> queries_;
  std::vector<std::int32_t> position_;   // per node: its position in its strip
  std::vector<std::int32_t> number_of_;  // per thread: its number in the current structure; else -1
  std::vector<Line<Entry>> threads_, lines_;
};

}  // namespace

bool trivially_ordered(const HappensBefore& graph, const OrderQuery& query) {
  const std::int32_t thread = graph.thread[query.earlier];
  const std::int32_t first =
      std::max(graph.threads[graph.thread[query.later]].first, query.later - kGlance + 1);
  for (std::int32_t node = query.later; node >= first; --node)
    for (const std::int32_t earlier : graph.before(node))
      if (earlier >= query.earlier && graph.thread[earlier] == thread) return true;
  return false;
}

std::int64_t find_unordered(const HappensBefore& graph, std::span<const std::int32_t> order,
                            std::span<const OrderQuery> queries) {
  if (queries.empty()) return -1;
  std::int32_t longest = 0;
  for (const HappensBefore::Thread& thread : graph.threads)
    longest = std::max(longest, thread.end - thread.first);
  return longest < std::numeric_limits<std::int16_t>::max()
             ? Columns<std::int16_t>(graph, order, queries).find()
             : Columns<std::int32_t>(graph, order, queries).find();
}

}  // namespace weft::collective
