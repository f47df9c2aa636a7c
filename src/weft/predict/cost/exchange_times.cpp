#include "weft/predict/cost/exchange_times.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <variant>

#include <fmt/format.h>

#include "weft/base/median.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

constexpr std::string_view kOwn = "exchange", kLate = "late";
constexpr Kind kKinds[] = {Kind::all_reduce,     Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                           Kind::broadcast_from, Kind::permute_ranks,  Kind::halo};

// The part of a key after the size.
std::string ending(std::string_view transport, const Concurrency& concurrency) {
  return fmt::format(
      " {} ranks={}{}", transport, concurrency.ranks,
      concurrency.workers > 1 ? fmt::format(" workers={}", concurrency.workers) : std::string());
}

std::string key(std::string_view what, Kind kind, std::int32_t ranks, std::int64_t bytes,
                std::string_view end) {
  return fmt::format("{} {} {} {}{}", what, name(kind), ranks, bytes, end);
}

// A rank's exchange tasks along each mesh axis, in the order in which all ranks run them.
using Meetings = std::vector<std::vector<std::uint32_t>>;

Meetings meetings_of(const program::Program& program, const plan::Mesh& mesh) {
  Meetings found(mesh.axes.size());
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
    if (const auto* exchange = std::get_if<program::Exchange>(&program.units[program.tasks[t].unit].kernel))
      if (const int axis = mesh.find(exchange->axis); axis >= 0)
        found[static_cast<std::size_t>(axis)].push_back(t);
  return found;
}

const program::Exchange& exchange_of(const program::Program& program, std::uint32_t task) {
  return std::get<program::Exchange>(program.units[program.tasks[task].unit].kernel);
}

double mean(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

struct Found {
  double own = 0, late = 0;
};

// Times of one collective in one group, over all steps.
Found look_at(std::span<const RankSteps> ranks, std::span<const std::int32_t> group,
              std::span<const Meetings> meetings, std::size_t axis, std::size_t number, bool oversubscribed) {
  const std::size_t steps = ranks.front().timelines.size();
  std::vector<double> own(steps, std::numeric_limits<double>::infinity());
  std::vector<double> by_rank;  // mean time that each rank spends in it
  for (const std::int32_t rank : group) {
    const auto r = static_cast<std::size_t>(rank);
    const std::uint32_t task = meetings[r][axis][number];
    std::vector<double> spent(steps);
    for (std::size_t s = 0; s < steps; ++s) {
      const program::TaskTime& time = ranks[r].timelines[s].tasks[task];
      spent[s] = time.end - time.begin;
      own[s] = std::min(own[s], spent[s]);  // the last rank to arrive does not wait
    }
    by_rank.push_back(mean(spent));
  }
  const double spent = oversubscribed ? mean(by_rank) : *std::ranges::min_element(by_rank);
  return {mean(own), std::max(spent - mean(own), 0.0)};
}

std::optional<std::int64_t> number_at(std::string_view text, std::size_t& at) {
  if (at > text.size()) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  at = static_cast<std::size_t>(end - text.data());
  return number;
}

}  // namespace

std::string transport_with_servers(std::string_view transport, std::int64_t servers) {
  return servers == 0 ? std::string(transport) : fmt::format("{} servers={}", transport, servers);
}

std::string_view transport_without_servers(std::string_view transport) {
  return transport.substr(0, transport.find(' '));
}

Status record_exchanges(Statistics& statistics, const plan::Mesh& mesh, std::span<const RankSteps> ranks,
                        std::string_view transport, const Concurrency& concurrency) {
  WEFT_CHECK(ranks.size() == static_cast<std::size_t>(mesh.ranks()), "a program for each rank");
  const std::size_t steps = ranks.front().timelines.size();
  if (steps == 0) return {};
  std::vector<Meetings> meetings;
  for (const RankSteps& rank : ranks) {
    WEFT_CHECK(rank.timelines.size() == steps, "equally many steps of each rank");
    for (const program::Timeline& timeline : rank.timelines)
      WEFT_CHECK(timeline.tasks.size() == rank.program->tasks.size(), "a timeline of another program");
    meetings.push_back(meetings_of(*rank.program, mesh));
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (meetings.back()[axis].size() != meetings.front()[axis].size()) return {};
  }
  const bool oversubscribed = is_oversubscribed(concurrency);
  struct Sum {
    double own = 0, late = 0, count = 0;
  };
  std::map<std::tuple<Kind, std::int32_t, std::int64_t>, Sum> sums;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (mesh.axes[axis].ranks < 2) continue;
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
      if (mesh.coordinate(rank, axis) != 0) continue;  // visit each group once
      const std::vector<std::int32_t> group = mesh.group(rank, axis);
      const auto first = static_cast<std::size_t>(rank);
      for (std::size_t number = 0; number < meetings[first][axis].size(); ++number) {
        const program::Exchange& exchange = exchange_of(*ranks[first].program, meetings[first][axis][number]);
        const Found found = look_at(ranks, group, meetings, axis, number, oversubscribed);
        // As in the simulator, the member that moves the most bytes determines the size.
        std::int64_t bytes = 0;
        for (const std::int32_t member : group) {
          const auto m = static_cast<std::size_t>(member);
          bytes = std::max(bytes, message_bytes(exchange_of(*ranks[m].program, meetings[m][axis][number])));
        }
        Sum& sum = sums[{exchange.kind, mesh.axes[axis].ranks, bytes}];
        sum.own += found.own;
        sum.late += found.late;
        sum.count += 1;
      }
    }
  }
  std::vector<OperatorTime> rows;
  const std::int64_t now = seconds_since_1970();
  const std::string end = ending(transport, concurrency);
  for (const auto& [what, sum] : sums) {
    const auto& [kind, members, bytes] = what;
    if (!(sum.own > 0)) continue;
    rows.push_back({key(kOwn, kind, members, bytes, end), sum.own / sum.count, now});
    // Always write a row, so that an old `late` does not stay beside a new `own`. A time of zero is
    // not valid.
    constexpr double kLeast = 1e-12;
    rows.push_back({key(kLate, kind, members, bytes, end), std::max(sum.late / sum.count, kLeast), now});
  }
  return statistics.add(rows);
}

ExchangeTimes::ExchangeTimes(std::span<const OperatorTime> rows, std::string_view transport,
                             const Concurrency& concurrency) {
  const std::string end = ending(transport, concurrency);
  double sum = 0, count = 0;
  for (const OperatorTime& row : rows) {
    const bool is_own = row.unit.starts_with(kOwn);
    if ((!is_own && !row.unit.starts_with(kLate)) || !row.unit.ends_with(end)) continue;
    for (const Kind kind : kKinds) {
      const std::string start = fmt::format("{} {} ", is_own ? kOwn : kLate, name(kind));
      if (!row.unit.starts_with(start)) continue;
      std::size_t at = start.size();
      const auto ranks = number_at(row.unit, at);
      const auto bytes = ranks ? number_at(row.unit, ++at) : std::nullopt;
      if (!bytes || at + end.size() != row.unit.size() || *ranks < 2 || *ranks > concurrency.ranks) continue;
      Time& time = times_[{kind, static_cast<std::int32_t>(*ranks)}][*bytes];
      (is_own ? time.own : time.late) = row.seconds;
      if (!is_own) sum += row.seconds, count += 1;
    }
  }
  for (auto& [setting, sizes] : times_)
    std::erase_if(sizes, [](const auto& one) { return !(one.second.own > 0); });
  std::erase_if(times_, [](const auto& one) { return one.second.empty(); });
  if (count > 0) late_ = sum / count;
}

std::optional<ExchangeTimes::Price> ExchangeTimes::price(Kind kind, std::int32_t ranks, std::int64_t bytes,
                                                         const Formula& formula) const {
  if (times_.empty()) return std::nullopt;
  const double as_formula = formula(kind, ranks, static_cast<double>(bytes));
  const auto ratio = [&](Kind of, std::int32_t members, const Sizes::value_type& seen) {
    const double expected = formula(of, members, static_cast<double>(seen.first));
    return expected > 0 && std::isfinite(expected) ? seen.second.own / expected : 1;
  };
  const auto found = times_.find({kind, ranks});
  if (found == times_.end()) {
    std::vector<double> ratios;
    for (const auto& [setting, sizes] : times_)
      for (const auto& seen : sizes) ratios.push_back(ratio(setting.first, setting.second, seen));
    return Price{as_formula * median(std::move(ratios)), late_, Source::calibrated};
  }
  const Sizes& sizes = found->second;
  const auto above = sizes.lower_bound(bytes);
  if (above != sizes.end() && above->first == bytes) return Price{above->second.own, above->second.late};
  if (above == sizes.begin()) return Price{as_formula * ratio(kind, ranks, *above), late_};
  const auto below = std::prev(above);
  if (above == sizes.end()) return Price{as_formula * ratio(kind, ranks, *below), late_};
  // Linear interpolation between the two in log bytes.
  const double low = std::log(1.0 + static_cast<double>(below->first)),
               high = std::log(1.0 + static_cast<double>(above->first));
  const double part = (std::log(1.0 + static_cast<double>(bytes)) - low) / (high - low);
  return Price{as_formula * std::pow(ratio(kind, ranks, *below), 1 - part) *
                   std::pow(ratio(kind, ranks, *above), part),
               late_};
}

}  // namespace weft::cost
