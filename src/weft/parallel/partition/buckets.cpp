#include "weft/parallel/partition/buckets.h"

#include <algorithm>
#include <limits>

#include "weft/base/check.h"

namespace weft::partition {
namespace {

// Tensors as grains, in order.
struct Grains {
  std::vector<double> made;   // by grain: when it is ready
  std::vector<double> bytes;  // by grain: sum of all before it; then the total
  std::vector<double> read;   // by grain: seconds to read it
};

Grains grains_of(std::span<const Tensor> chain) {
  Grains grains;
  grains.bytes = {0};
  double made = 0, bytes = 0;
  for (const Tensor& tensor : chain) {
    WEFT_CHECK(tensor.grains > 0, "a tensor needs at least one grain");
    const double parts = tensor.grains;
    for (std::int32_t part = 1; part <= tensor.grains; ++part) {
      grains.made.push_back(made + tensor.made_seconds * part / parts);
      grains.bytes.push_back(bytes + tensor.bytes * part / parts);
      grains.read.push_back(tensor.read_seconds / parts);
    }
    made += tensor.made_seconds;
    bytes += tensor.bytes;
  }
  return grains;
}

// A partial solution for the first grains: when the link is free again, and when they have been
// read. It is dominated by a solution that is no later in either.
struct PartialBuckets {
  double wire_free = 0, read = 0;
  std::int32_t begin = 0;   // of the last bucket
  std::int32_t before = 0;  // the solution that it extends, among those up to `begin`
};

// Removes dominated solutions.
void keep_best(std::vector<PartialBuckets>& ways) {
  std::ranges::sort(ways, [](const PartialBuckets& x, const PartialBuckets& y) {
    return x.wire_free != y.wire_free ? x.wire_free < y.wire_free : x.read < y.read;
  });
  std::size_t kept = 0;
  for (const PartialBuckets& way : ways)
    if (kept == 0 || way.read < ways[kept - 1].read) ways[kept++] = way;
  ways.resize(kept);
}

// Dynamic programming over the grains. A bucket that starts at s delays its readers like one task.
// They end at the later of `read + all reading times` and `s + latency + the longest path of bytes
// and reading`.
class ChainSearch {
 public:
  ChainSearch(std::span<const Tensor> chain, const Wire& wire, Release release)
      : grains_(grains_of(chain)), wire_(wire), release_(release), left_(grains_.read.size() + 1) {
    for (std::size_t g = grains_.read.size(); g-- > 0;) left_[g] = left_[g + 1] + grains_.read[g];
  }

  // Keeps at most this many solutions per grain, and none that must end later than `latest`.
  Buckets run(std::size_t most_ways, double latest) const {
    const std::size_t count = grains_.read.size();
    std::vector<std::vector<PartialBuckets>> ways(count + 1);
    ways[0] = {PartialBuckets{}};
    for (std::size_t begin = 0; begin <= count; ++begin) {
      std::vector<PartialBuckets>& from = ways[begin];
      keep_best(from);
      if (from.size() > most_ways) keep_soonest(from, begin, most_ways);
      double reading = 0, path = 0;
      for (std::size_t last = begin; last < count; ++last) {
        const double moving = (grains_.bytes[last + 1] - grains_.bytes[begin]) / wire_.bytes_per_second;
        reading += grains_.read[last];
        path = release_ == Release::early ? std::max(path, moving) + grains_.read[last] : moving + reading;
        for (std::size_t w = 0; w < from.size(); ++w) {
          const double starts = std::max(from[w].wire_free, grains_.made[last]) + wire_.latency;
          const PartialBuckets next{starts + moving, std::max(from[w].read + reading, starts + path),
                                    static_cast<std::int32_t>(begin), static_cast<std::int32_t>(w)};
          if (soonest(next, last + 1) <= latest) ways[last + 1].push_back(next);
        }
      }
    }
    return trace(ways);
  }

 private:
  // A lower bound on the end: the rest is read and transferred without a pause.
  double soonest(const PartialBuckets& way, std::size_t at) const {
    if (at == grains_.read.size()) return way.read;
    const double moving = (grains_.bytes.back() - grains_.bytes[at]) / wire_.bytes_per_second;
    return std::max(way.read + left_[at], std::max(way.wire_free, grains_.made.back()) + wire_.latency +
                                              (way.wire_free > grains_.made.back() ? moving : 0) +
                                              grains_.read.back());
  }

  void keep_soonest(std::vector<PartialBuckets>& ways, std::size_t at, std::size_t most) const {
    std::ranges::nth_element(ways, ways.begin() + static_cast<std::ptrdiff_t>(most), {},
                             [&](const PartialBuckets& way) { return soonest(way, at); });
    ways.resize(most);
  }

  static Buckets trace(const std::vector<std::vector<PartialBuckets>>& ways) {
    Buckets best;
    const auto chosen = std::ranges::min_element(ways.back(), {}, &PartialBuckets::read);
    WEFT_CHECK(chosen != ways.back().end(), "no way to the end of the chain");
    best.seconds = chosen->read;
    const PartialBuckets* way = &*chosen;
    for (std::size_t end = ways.size() - 1; end > 0;) {
      best.ends.push_back(static_cast<std::int32_t>(end));
      end = static_cast<std::size_t>(way->begin);
      way = &ways[end][static_cast<std::size_t>(way->before)];
    }
    std::ranges::reverse(best.ends);
    return best;
  }

  const Grains grains_;
  const Wire wire_;
  const Release release_;
  std::vector<double> left_;  // reading time from each grain on
};

}  // namespace

std::int32_t grain_count(std::span<const Tensor> chain) {
  std::int32_t grains = 0;
  for (const Tensor& tensor : chain) grains += tensor.grains;
  return grains;
}

// A narrow search first finds a good solution; its time then prunes the exact search.
Buckets bucketise(std::span<const Tensor> chain, const Wire& wire, Release release) {
  WEFT_CHECK(wire.bytes_per_second > 0, "bandwidth must be positive");
  constexpr std::size_t kNarrow = 4;
  const ChainSearch search(chain, wire, release);
  const double good = search.run(kNarrow, std::numeric_limits<double>::infinity()).seconds;
  return search.run(std::numeric_limits<std::size_t>::max(), good * (1 + 1e-12));
}

double seconds_of(std::span<const Tensor> chain, const Wire& wire, std::span<const std::int32_t> ends,
                  Release release) {
  // A separate clock for the producer, the link and the reader.
  double made = 0, wire_free = 0, read = 0;
  std::vector<double> there, takes;  // of the current bucket, by grain: arrival and reading time
  double bytes = 0;
  std::size_t bucket = 0;
  std::int32_t grain = 0;
  for (const Tensor& tensor : chain)
    for (std::int32_t part = 0; part < tensor.grains; ++part) {
      made += tensor.made_seconds / tensor.grains;
      bytes += tensor.bytes / tensor.grains;
      there.push_back(bytes / wire.bytes_per_second);
      takes.push_back(tensor.read_seconds / tensor.grains);
      WEFT_CHECK(bucket < ends.size(), "the last bucket ends before the chain does");
      if (++grain < ends[bucket]) continue;
      const double begins = std::max(made, wire_free) + wire.latency;
      wire_free = begins + there.back();
      for (std::size_t i = 0; i < there.size(); ++i)
        read = std::max(read, release == Release::early ? begins + there[i] : wire_free) + takes[i];
      there.clear();
      takes.clear();
      bytes = 0;
      ++bucket;
    }
  WEFT_CHECK(bucket == ends.size() && there.empty(), "buckets that do not end where the chain does");
  return read;
}

std::vector<std::int32_t> fixed_buckets(std::span<const Tensor> chain, double bytes) {
  std::vector<std::int32_t> ends;
  double held = 0;
  std::int32_t grain = 0;
  for (const Tensor& tensor : chain) {
    grain += tensor.grains;
    held += tensor.bytes;
    if (held < bytes) continue;
    ends.push_back(grain);
    held = 0;
  }
  if (grain > 0 && (ends.empty() || ends.back() != grain)) ends.push_back(grain);
  return ends;
}

}  // namespace weft::partition
