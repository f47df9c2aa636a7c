#include "weft/program/memory/recompute_polish.h"

#include <algorithm>

namespace weft::memory {
namespace {

using Kind = RecomputeStep::Kind;

// An interval between a drop and the recomputation of x.
struct Absence {
  std::size_t drop = 0, again = 0;
  double worth = 0;  // time per byte and step
};

// Bytes held during each step.
std::vector<std::int64_t> bytes_during(const RecomputeModel& model, const std::vector<RecomputeStep>& steps) {
  std::vector<std::int64_t> during;
  during.reserve(steps.size());
  std::int64_t kept = 0, gradients = 0;
  bool loss_seen = false;
  for (const RecomputeStep& step : steps) {
    const auto node = static_cast<std::size_t>(step.node);
    if (step.kind == Kind::forward) {
      kept += model.size[node];
      if (node + 1 == model.nodes && !loss_seen) gradients = model.gradients[node], loss_seen = true;
      during.push_back(kept + gradients);
    } else if (step.kind == Kind::drop) {
      during.push_back(kept + gradients);
      kept -= model.size[node];
    } else {
      during.push_back(kept + model.gradients_during[node]);
      kept -= model.size[node];
      gradients = node == 0 ? 0 : model.gradients[node - 1];
    }
  }
  return during;
}

std::vector<Absence> absences(const RecomputeModel& model, const std::vector<RecomputeStep>& steps) {
  constexpr std::size_t kHere = ~std::size_t{0};
  std::vector<std::size_t> dropped(model.nodes, kHere);
  std::vector<Absence> found;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const auto node = static_cast<std::size_t>(steps[at].node);
    if (steps[at].kind == Kind::drop) dropped[node] = at;
    if (steps[at].kind != Kind::forward || dropped[node] == kHere) continue;
    const double held = static_cast<double>(std::max<std::int64_t>(model.size[node], 1)) *
                        static_cast<double>(at - dropped[node]);
    found.push_back({dropped[node], at, model.forward[node] / held});
    dropped[node] = kHere;
  }
  return found;
}

// Removes an F that is dropped before it is read, because its readers were removed.
bool remove_unread(const RecomputeModel& model, std::vector<RecomputeStep>& steps) {
  constexpr std::size_t kRead = ~std::size_t{0};
  std::vector<std::size_t> unread(model.nodes, kRead);  // position of its last F
  std::vector<bool> gone(steps.size());
  bool any = false;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const auto node = static_cast<std::size_t>(steps[at].node);
    if (steps[at].kind == Kind::drop) {
      if (unread[node] != kRead) any = gone[unread[node]] = gone[at] = true;
      unread[node] = kRead;
      continue;
    }
    for (const std::int32_t input : model.inputs[node]) unread[static_cast<std::size_t>(input)] = kRead;
    // The last F may be the one that makes the loss gradient.
    unread[node] = steps[at].kind == Kind::forward && node + 1 < model.nodes ? at : kRead;
  }
  std::size_t kept = 0;
  for (std::size_t at = 0; at < steps.size(); ++at)
    if (!gone[at]) steps[kept++] = steps[at];
  steps.resize(kept);
  return any;
}

bool remove_drops(const RecomputeModel& model, std::vector<RecomputeStep>& steps, std::int64_t memory) {
  std::vector<std::int64_t> during = bytes_during(model, steps);
  std::vector<Absence> candidates = absences(model, steps);
  std::ranges::stable_sort(candidates, [](const Absence& a, const Absence& b) { return a.worth > b.worth; });
  std::vector<bool> gone(steps.size());
  bool any = false;
  for (const Absence& absence : candidates) {
    const std::int64_t size = model.size[static_cast<std::size_t>(steps[absence.drop].node)];
    // During its own F it is already counted.
    const auto begin = during.begin() + static_cast<std::ptrdiff_t>(absence.drop) + 1,
               end = during.begin() + static_cast<std::ptrdiff_t>(absence.again);
    if (std::any_of(begin, end, [&](std::int64_t bytes) { return bytes + size > memory; })) continue;
    std::for_each(begin, end, [&](std::int64_t& bytes) { bytes += size; });
    any = gone[absence.drop] = gone[absence.again] = true;
  }
  std::size_t kept = 0;
  for (std::size_t at = 0; at < steps.size(); ++at)
    if (!gone[at]) steps[kept++] = steps[at];
  steps.resize(kept);
  return any;
}

}  // namespace

std::vector<RecomputeStep> without_needless_drops(const RecomputeModel& model,
                                                  std::vector<RecomputeStep> steps, std::int64_t memory) {
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    const bool dropped_less = remove_drops(model, steps, memory);
    if (!remove_unread(model, steps) && !dropped_less) break;
  }
  return steps;
}

}  // namespace weft::memory
