#include "weft/parallel/partition/graph_buckets.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weft/base/check.h"
#include "weft/parallel/partition/exact_buckets.h"

namespace weft::partition {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// What must still happen after each operation, itself counted: the longest way to the end.
std::vector<double> tails(std::span<const Operation> graph, const Wire& wire) {
  std::vector<double> tail(graph.size());
  for (std::size_t i = graph.size(); i-- > 0;) {
    const Operation& operation = graph[i];
    tail[i] +=
        is_transfer(operation) ? wire.latency + operation.bytes / wire.bytes_per_second : operation.seconds;
    for (const std::int32_t need : operation.needs)
      tail[static_cast<std::size_t>(need)] = std::max(tail[static_cast<std::size_t>(need)], tail[i]);
  }
  return tail;
}

// What is ready begins, that with the longest tail first; each transfer by itself.
GraphBuckets most_urgent_first(std::span<const Operation> graph, const Wire& wire) {
  const std::vector<double> tail = tails(graph, wire);
  GraphBuckets order;
  std::vector<double> over(graph.size(), kForever);
  std::array<double, 2> free = {0, 0};
  std::vector<bool> placed(graph.size());
  for (std::size_t count = 0; count < graph.size(); ++count) {
    std::size_t best = graph.size();
    double best_begin = kForever;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      if (placed[i]) continue;
      double begin = free[is_transfer(graph[i]) ? 1 : 0];
      for (const std::int32_t need : graph[i].needs)
        begin = std::max(begin, over[static_cast<std::size_t>(need)]);
      if (begin < best_begin || (begin == best_begin && begin < kForever && tail[i] > tail[best]))
        best = i, best_begin = begin;
    }
    WEFT_CHECK(best < graph.size(), "operations that need each other");
    placed[best] = true;
    const bool moves = is_transfer(graph[best]);
    over[best] = free[moves ? 1 : 0] =
        best_begin + (moves ? wire.latency + graph[best].bytes / wire.bytes_per_second : graph[best].seconds);
    if (moves)
      order.buckets.push_back({static_cast<std::int32_t>(best)});
    else
      order.computing.push_back(static_cast<std::int32_t>(best));
  }
  return order;
}

// The transfers of an order as a chain, each made when what it needs was computed.
std::vector<std::vector<std::int32_t>> as_chain(std::span<const Operation> graph, const Wire& wire,
                                                const GraphBuckets& order, Release release) {
  std::vector<double> over(graph.size());
  double now = 0;
  for (const std::int32_t i : order.computing)
    over[static_cast<std::size_t>(i)] = now += graph[static_cast<std::size_t>(i)].seconds;
  std::vector<std::int32_t> transfers;
  for (const std::vector<std::int32_t>& bucket : order.buckets)
    transfers.insert(transfers.end(), bucket.begin(), bucket.end());
  std::vector<Tensor> chain;
  double made = 0;
  for (const std::int32_t i : transfers) {
    double when = made;
    for (const std::int32_t need : graph[static_cast<std::size_t>(i)].needs)
      when = std::max(when, over[static_cast<std::size_t>(need)]);
    chain.push_back({.bytes = graph[static_cast<std::size_t>(i)].bytes, .made_seconds = when - made});
    made = when;
  }
  std::vector<std::vector<std::int32_t>> buckets;
  std::size_t next = 0;
  for (const std::int32_t end : bucketise(chain, wire, release).ends) {
    buckets.emplace_back(transfers.begin() + static_cast<std::ptrdiff_t>(next), transfers.begin() + end);
    next = static_cast<std::size_t>(end);
  }
  return buckets;
}

// Two buckets become one, one becomes two, a transfer goes to the next bucket or two change places, as long as
// that is quicker.
GraphBuckets improved(std::span<const Operation> graph, const Wire& wire, GraphBuckets order,
                      Release release) {
  order.seconds = seconds_of(graph, wire, order, release);
  constexpr int kMostRounds = 20;
  const auto take = [&](GraphBuckets other) {
    other.seconds = seconds_of(graph, wire, other, release);
    if (!(other.seconds < order.seconds * (1 - 1e-12))) return false;
    order = std::move(other);
    return true;
  };
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (std::size_t b = 0; b < order.buckets.size(); ++b) {
      for (std::size_t at = 1; at < order.buckets[b].size(); ++at) {
        GraphBuckets split = order;
        std::vector<std::int32_t>& bucket = split.buckets[b];
        std::vector<std::int32_t> rest(bucket.begin() + static_cast<std::ptrdiff_t>(at), bucket.end());
        bucket.resize(at);
        split.buckets.insert(split.buckets.begin() + static_cast<std::ptrdiff_t>(b) + 1, std::move(rest));
        if (take(std::move(split))) changed = true;
      }
      if (b + 1 >= order.buckets.size()) continue;
      GraphBuckets merged = order;
      merged.buckets[b].insert(merged.buckets[b].end(), merged.buckets[b + 1].begin(),
                               merged.buckets[b + 1].end());
      merged.buckets.erase(merged.buckets.begin() + static_cast<std::ptrdiff_t>(b) + 1);
      if (take(std::move(merged))) {
        changed = true;
        continue;
      }
      GraphBuckets swapped = order;
      std::swap(swapped.buckets[b], swapped.buckets[b + 1]);
      if (take(std::move(swapped))) changed = true;
    }
    for (std::size_t i = 0; i + 1 < order.computing.size(); ++i) {
      GraphBuckets swapped = order;
      std::swap(swapped.computing[i], swapped.computing[i + 1]);
      if (take(std::move(swapped))) changed = true;
    }
    if (!changed) break;
  }
  return order;
}

GraphBuckets search_nearby(std::span<const Operation> graph, const Wire& wire, Release release) {
  std::vector<GraphBuckets> tried = {fixed_buckets(graph, wire, kUsualBucketBytes, release),
                                     fixed_buckets(graph, wire, 0, release), most_urgent_first(graph, wire)};
  for (std::size_t i = 1; i < 3; ++i) {
    GraphBuckets chained = tried[i];
    chained.buckets = as_chain(graph, wire, tried[i], release);
    tried.push_back(std::move(chained));
  }
  GraphBuckets best;
  best.seconds = kForever;
  for (GraphBuckets& order : tried)
    if (GraphBuckets found = improved(graph, wire, std::move(order), release); found.seconds < best.seconds)
      best = std::move(found);
  return best;
}

}  // namespace

GraphBuckets bucketise(std::span<const Operation> graph, const Wire& wire, Release release) {
  WEFT_CHECK(wire.bytes_per_second > 0, "a wire that passes nothing");
  if (graph.size() <= kMostExact) return exact_buckets(graph, wire, release);
  return search_nearby(graph, wire, release);
}

double seconds_of(std::span<const Operation> graph, const Wire& wire, const GraphBuckets& order,
                  Release release) {
  std::vector<double> over(graph.size(), kForever);
  double computing = 0, wire_free = 0, last = 0;
  std::size_t next = 0, bucket = 0;
  const auto ready = [&](std::int32_t i) {
    double when = 0;
    for (const std::int32_t need : graph[static_cast<std::size_t>(i)].needs)
      when = std::max(when, over[static_cast<std::size_t>(need)]);
    return when;
  };
  // Either goes on as far as it can; where neither can, they wait for each other.
  for (bool moved = true; moved;) {
    moved = false;
    for (; next < order.computing.size() && ready(order.computing[next]) < kForever; ++next, moved = true) {
      const std::int32_t i = order.computing[next];
      over[static_cast<std::size_t>(i)] = computing =
          std::max(computing, ready(i)) + graph[static_cast<std::size_t>(i)].seconds;
      last = std::max(last, computing);
    }
    for (; bucket < order.buckets.size(); ++bucket, moved = true) {
      double begins = wire_free;
      for (const std::int32_t i : order.buckets[bucket]) begins = std::max(begins, ready(i));
      if (begins == kForever) break;
      wire_free = begins + wire.latency;
      for (const std::int32_t i : order.buckets[bucket]) {
        wire_free += graph[static_cast<std::size_t>(i)].bytes / wire.bytes_per_second;
        over[static_cast<std::size_t>(i)] = wire_free;
      }
      if (release == Release::together)
        for (const std::int32_t i : order.buckets[bucket]) over[static_cast<std::size_t>(i)] = wire_free;
      last = std::max(last, wire_free);
    }
  }
  return next == order.computing.size() && bucket == order.buckets.size() ? last : kForever;
}

GraphBuckets fixed_buckets(std::span<const Operation> graph, const Wire& wire, double bytes,
                           Release release) {
  GraphBuckets order;
  std::vector<bool> is_open(graph.size());  // a member of the bucket that is being filled
  std::vector<std::int32_t> open;
  double held = 0;
  const auto close = [&] {
    if (!open.empty()) order.buckets.push_back(std::move(open));
    open.clear();
    held = 0;
    is_open.assign(graph.size(), false);
  };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (std::ranges::any_of(graph[i].needs,
                            [&](std::int32_t need) { return is_open[static_cast<std::size_t>(need)]; }))
      close();
    if (!is_transfer(graph[i])) {
      order.computing.push_back(static_cast<std::int32_t>(i));
      continue;
    }
    open.push_back(static_cast<std::int32_t>(i));
    is_open[i] = true;
    held += graph[i].bytes;
    if (held >= bytes) close();
  }
  close();
  order.seconds = seconds_of(graph, wire, order, release);
  return order;
}

}  // namespace weft::partition
