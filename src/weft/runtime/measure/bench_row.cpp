#include "weft/runtime/measure/bench_row.h"

#include <algorithm>
#include <cmath>

#include "weft/base/median.h"

namespace weft::measure {
namespace {

struct Means {
  double ratio = 0, limit = 0;  // sums of logarithms
  std::int64_t ratios = 0, limits = 0;
};

double mean(double sum_of_logarithms, std::int64_t count) {
  return count == 0 ? 0 : std::exp(sum_of_logarithms / static_cast<double>(count));
}

}  // namespace

void summarize(std::span<const BenchSample> samples, BenchRow& row) {
  row.repeats = static_cast<std::int32_t>(samples.size());
  if (samples.empty()) return;
  std::vector<double> times, processor;
  for (const BenchSample& sample : samples) {
    times.push_back(sample.seconds);
    processor.push_back(sample.processor_seconds);
    row.wrong = std::max(row.wrong, sample.wrong);
  }
  row.fastest = std::ranges::min(times);
  row.slowest = std::ranges::max(times);
  row.seconds = median(std::move(times));
  row.processor_seconds = median(std::move(processor));
}

void compare(std::span<BenchRow> rows) {
  // Peers with wrong results are ignored, however fast they are.
  const BenchRow* best = nullptr;
  for (const BenchRow& row : rows)
    if (row.measured() && !row.is_weft() && row.wrong == 0 &&
        (best == nullptr || row.seconds < best->seconds))
      best = &row;
  for (BenchRow& row : rows) {
    if (!row.measured()) continue;
    if (best != nullptr) {
      row.ratio_to_best_peer = best->seconds / row.seconds;
      row.best_peer = best->side();
    }
    if (row.limit > 0) row.ratio_to_limit = row.seconds / row.limit;
  }
}

std::vector<BenchSummary> summarize(std::span<const BenchRow> rows) {
  std::vector<BenchSummary> all;
  std::vector<Means> means;
  for (const BenchRow& row : rows) {
    if (!row.is_weft() || !row.measured()) continue;
    const auto same = [&](const BenchSummary& one) {
      return one.kind == row.kind && one.ranks == row.ranks && one.transport == row.transport &&
             one.side == row.side();
    };
    auto found = std::ranges::find_if(all, same);
    if (found == all.end()) {
      all.push_back({row.kind, row.ranks, row.transport, row.side(), 0, 0, 0, {}, 0, 0});
      means.emplace_back();
      found = all.end() - 1;
    }
    Means& sums = means[static_cast<std::size_t>(found - all.begin())];
    ++found->sizes;
    if (row.ratio_to_best_peer > 0) {
      sums.ratio += std::log(row.ratio_to_best_peer);
      ++sums.ratios;
      if (found->worst == 0 || row.ratio_to_best_peer < found->worst) {
        found->worst = row.ratio_to_best_peer;
        found->worst_bytes = row.bytes;
        found->worst_peer = row.best_peer;
      }
    }
    if (row.ratio_to_limit > 0) {
      sums.limit += std::log(row.ratio_to_limit);
      ++sums.limits;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].mean = mean(means[i].ratio, means[i].ratios);
    all[i].limit_mean = mean(means[i].limit, means[i].limits);
  }
  return all;
}

}  // namespace weft::measure
