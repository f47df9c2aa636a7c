// The choice of a group, whose ranks know only their own buffers.
#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/communication/comm/choice/choice.h"

namespace weft::comm {
namespace {

// Candidates with this handicap must beat a direct algorithm by more than the measurement noise.
// Programs have it, because only direct algorithms detect mismatched calls before any data is used.
// "direct" has it, because it changes its algorithm between sizes, so that interpolating its times
// is unreliable. (But no other name lets private and allocated buffers go together.)
constexpr double kHandicap = 1.03;

using Times = std::map<std::string, double, std::less<>>;  // seconds, by algorithm

std::optional<double> find(const Times& times, std::string_view algorithm) {
  const auto found = times.find(algorithm);
  return found != times.end() ? std::optional(found->second) : std::nullopt;
}

// Times measured in exactly this setting, for calls of this size.
Times times_of(const ChoiceTable& table, const Setting& setting, std::int64_t bytes) {
  Times times;
  const auto found = table.settings().find(setting);
  if (found == table.settings().end()) return times;
  const std::vector<std::string> allowed = candidates_for(setting, bytes);
  std::int64_t largest = 0;
  for (const Candidate& each : found->second) largest = std::max(largest, each.largest());
  for (const Candidate& each : found->second)
    if (!each.times.empty() && !each.left_out(bytes, largest) &&
        std::ranges::binary_search(allowed, each.name))
      times[each.name] = each.seconds(bytes);
  return times;
}

struct Scored {
  Choice choice;
  double from_allocated = 0;  // seconds; 0: not measured
  double score = 0;
};

std::string times(const Scored& one) {
  std::string text = print_seconds(one.choice.seconds);
  if (one.from_allocated > 0) text += fmt::format(", allocated {}", print_seconds(one.from_allocated));
  return text;
}

// Scores a direct algorithm or a program for both kinds of buffers; nothing if it was far behind
// for one of them.
std::optional<Scored> score(Kind kind, const std::string& algorithm, double from_private,
                            const Times& allocated) {
  Scored one{{algorithm, from_private, {}, {}}, 0, 0};
  const auto way = find_direct_algorithm(algorithm);
  const double handicap = way ? 1 : kHandicap;
  if (!allocated.empty()) {
    const std::optional<double> staged = find(allocated, algorithm);
    const bool goes_in_place = way == beside_in_place(kind) || way == DirectAlgorithm::single_copy;
    const std::optional<double> in_place =
        goes_in_place ? find(allocated, name(DirectAlgorithm::in_place)) : std::nullopt;
    if (!staged && !in_place) return std::nullopt;
    const bool faster_in_place = in_place && (!staged || *in_place < *staged);
    if (way) one.choice.in_place = faster_in_place;
    one.from_allocated = faster_in_place ? *in_place : *staged;
  }
  one.score = from_private * handicap * (one.from_allocated > 0 ? one.from_allocated * handicap : 1);
  return one;
}

}  // namespace

Choice ChoiceTable::choose_for_group(const Setting& setting, std::int64_t bytes) const {
  Setting with_private = setting, with_allocated = setting;
  with_private.allocated = false;
  with_allocated.allocated = true;
  const Times from_private = times_of(*this, with_private, bytes);
  if (!from_private.contains(kDirect)) {
    Choice choice = choose(with_private, bytes, candidates_for(with_private, bytes));
    if (choice.algorithm.starts_with(kDirect)) choice.algorithm = kDirect;
    return choice;
  }
  const Times allocated = times_of(*this, with_allocated, bytes);
  std::vector<Scored> scored;
  for (const auto& [algorithm, seconds] : from_private)
    if (auto one = score(setting.kind, algorithm, seconds, allocated)) scored.push_back(std::move(*one));
  if (scored.empty())
    return {std::string(kDirect),
            0,
            "no other candidate was measured for both private and allocated buffers",
            {}};
  std::ranges::stable_sort(scored, {}, &Scored::score);
  Choice best = scored.front().choice;
  best.why = fmt::format("{}: {}", this->find(with_private, best.algorithm)->source, times(scored.front()));
  if (scored.size() > 1)
    best.why += fmt::format("; next {} {}", scored[1].choice.algorithm, times(scored[1]));
  return best;
}

}  // namespace weft::comm
