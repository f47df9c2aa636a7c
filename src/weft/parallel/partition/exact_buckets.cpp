#include "weft/parallel/partition/exact_buckets.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"

namespace weft::partition {
namespace {

// Operations are put at the end of computing, and buckets at the end of the wire, in every order that needs
// allow. After the same operations a start is no better where the wire, computing and all that others still need
// are later: what can follow is the same.
class ExactSearch {
 public:
  ExactSearch(std::span<const Operation> graph, const Wire& wire, Release release)
      : graph_(graph), wire_(wire), release_(release), needed_by_(graph.size()) {
    for (std::size_t i = 0; i < graph.size(); ++i)
      for (const std::int32_t need : graph[i].needs) {
        needs_.resize(graph.size());
        needs_[i] |= bit(need);
        needed_by_[static_cast<std::size_t>(need)] |= bit(static_cast<std::int32_t>(i));
      }
    needs_.resize(graph.size());
  }

  GraphBuckets run() {
    const std::uint32_t all = (std::uint32_t{1} << graph_.size()) - 1;
    starts_.resize(std::size_t{all} + 1);
    starts_[0].push_back({});
    for (std::uint32_t done = 0; done < all; ++done)
      for (std::size_t s = 0; s < starts_[done].size(); ++s) continue_from(done, s);
    const auto& ends = starts_[all];
    const auto best = std::ranges::min_element(ends, {}, [](const Start& start) { return start.last; });
    return trace(all, static_cast<std::size_t>(best - ends.begin()));
  }

 private:
  struct Start {
    double computing = 0, wire = 0, last = 0;  // when either is free, and when all so far is over
    std::array<double, kMostExact> over = {};  // by operation
    std::uint32_t before = 0;                  // what was done before the latest step
    std::uint32_t way = 0;                     // which of its starts that was
    std::vector<std::int32_t> step = {};       // one that computes, or a bucket
  };

  static std::uint32_t bit(std::int32_t i) { return std::uint32_t{1} << i; }

  void continue_from(std::uint32_t done, std::size_t way) {
    std::vector<std::int32_t> transfers;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph_.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if ((done & bit(i)) != 0 || (needs_[at] & ~done) != 0) continue;
      if (is_transfer(graph_[at])) {
        transfers.push_back(i);
        continue;
      }
      Start next = after(done, way);
      next.step = {i};
      next.computing = next.over[at] = std::max(next.computing, ready(next, i)) + graph_[at].seconds;
      next.last = std::max(next.last, next.computing);
      keep(done | bit(i), std::move(next));
    }
    std::vector<std::int32_t> bucket;
    choose_bucket(done, way, transfers, bucket);
  }

  // Every set of transfers that can go; where each is released by itself, in every order.
  void choose_bucket(std::uint32_t done, std::size_t way, std::span<const std::int32_t> transfers,
                     std::vector<std::int32_t>& bucket) {
    for (const std::int32_t next : transfers) {
      if (std::ranges::find(bucket, next) != bucket.end()) continue;
      if (release_ == Release::together && !bucket.empty() && next < bucket.back()) continue;
      bucket.push_back(next);
      send(done, way, bucket);
      choose_bucket(done, way, transfers, bucket);
      bucket.pop_back();
    }
  }

  void send(std::uint32_t done, std::size_t way, const std::vector<std::int32_t>& bucket) {
    Start next = after(done, way);
    next.step = bucket;
    double begins = next.wire;
    std::uint32_t sent = done;
    for (const std::int32_t i : bucket) begins = std::max(begins, ready(next, i)), sent |= bit(i);
    next.wire = begins + wire_.latency;
    for (const std::int32_t i : bucket) {
      const auto at = static_cast<std::size_t>(i);
      next.wire += graph_[at].bytes / wire_.bytes_per_second;
      next.over[at] = next.wire;
    }
    if (release_ == Release::together)
      for (const std::int32_t i : bucket) next.over[static_cast<std::size_t>(i)] = next.wire;
    next.last = std::max(next.last, next.wire);
    keep(sent, std::move(next));
  }

  Start after(std::uint32_t done, std::size_t way) const {
    Start next = starts_[done][way];
    next.before = done;
    next.way = static_cast<std::uint32_t>(way);
    return next;
  }

  double ready(const Start& start, std::int32_t i) const {
    double when = 0;
    for (const std::int32_t need : graph_[static_cast<std::size_t>(i)].needs)
      when = std::max(when, start.over[static_cast<std::size_t>(need)]);
    return when;
  }

  bool is_no_later(std::uint32_t done, const Start& x, const Start& y) const {
    if (x.computing > y.computing || x.wire > y.wire || x.last > y.last) return false;
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if ((done >> i & 1) != 0 && (needed_by_[i] & ~done) != 0 && x.over[i] > y.over[i]) return false;
    return true;
  }

  // More is done in each step, so nobody has gone on from a set while starts are still added to it.
  void keep(std::uint32_t done, Start start) {
    std::vector<Start>& known = starts_[done];
    for (const Start& other : known)
      if (is_no_later(done, other, start)) return;
    std::erase_if(known, [&](const Start& other) { return is_no_later(done, start, other); });
    known.push_back(std::move(start));
  }

  GraphBuckets trace(std::uint32_t done, std::size_t way) const {
    GraphBuckets found;
    found.seconds = starts_[done][way].last;
    while (done != 0) {
      const Start& start = starts_[done][way];
      if (is_transfer(graph_[static_cast<std::size_t>(start.step[0])]))
        found.buckets.push_back(start.step);
      else
        found.computing.push_back(start.step[0]);
      done = start.before;
      way = start.way;
    }
    std::ranges::reverse(found.computing);
    std::ranges::reverse(found.buckets);
    return found;
  }

  const std::span<const Operation> graph_;
  const Wire wire_;
  const Release release_;
  std::vector<std::uint32_t> needs_, needed_by_;
  std::vector<std::vector<Start>> starts_;  // by what is done
};

}  // namespace

GraphBuckets exact_buckets(std::span<const Operation> graph, const Wire& wire, Release release) {
  WEFT_CHECK(graph.size() <= kMostExact, "too many operations to look at all orders");
  return ExactSearch(graph, wire, release).run();
}

}  // namespace weft::partition
