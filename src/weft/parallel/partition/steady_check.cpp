#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/partition/steady.h"

namespace weft::partition {
namespace {

class SteadyCheck {
 public:
  SteadyCheck(const Profile& profile, const std::vector<Level>& levels)
      : profile_(profile), levels_(levels), done_(profile.nodes.size()) {}

  // Seconds of the stages of a level, which together must hold `nodes`; earlier stages have been
  // checked.
  Result<double> seconds(std::size_t level, const std::vector<SteadyStage>& stages,
                         const std::vector<std::int32_t>& nodes) {
    const double bandwidth = levels_[level].bandwidth;
    std::int32_t machines = 0;
    std::size_t held = 0;
    double slowest = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const SteadyStage& stage = stages[i];
      const double m = stage.replicas;
      const std::vector<bool> before = done_;
      double compute = 0, parameters = 0;
      for (const std::int32_t node : stage.nodes) {
        const ProfileNode& layer = profile_.nodes.at(slot(node));
        if (!std::ranges::binary_search(nodes, node) || before[slot(node)])
          return user_error(fmt::format("expected every node in one stage, found {} elsewhere", layer.id));
        compute += (layer.forward + layer.backward) / 1000;
        parameters += layer.parameters;
      }
      if (level > 0) {
        WEFT_TRY(inner, seconds(level - 1, stage.inner, stage.nodes));
        compute = inner;
      }
      for (const std::int32_t node : stage.nodes) done_[slot(node)] = true;
      const double links = i == 0 && level > 0 ? levels_[level - 1].machines : 1.0;
      slowest = std::max(slowest, (compute + 4 * (m - 1) * parameters / (bandwidth * m) / links) / m);
      if (i > 0)
        slowest = std::max(
            {slowest, 2 * crossing(before) / (bandwidth * m), 2 * crossing(done_) / (bandwidth * m)});
      machines += stage.replicas;
      held += stage.nodes.size();
    }
    if (machines != levels_[level].machines || held != nodes.size())
      return user_error(fmt::format("expected {} machines and {} nodes, found {} and {}",
                                    levels_[level].machines, nodes.size(), machines, held));
    return slowest;
  }

  Status check_order(const std::vector<SteadyStage>& stages) const {
    std::vector<std::size_t> stage_of(profile_.nodes.size());
    for (std::size_t i = 0; i < stages.size(); ++i)
      for (const std::int32_t node : stages[i].nodes) stage_of.at(slot(node)) = i;
    for (const auto& [from, to] : profile_.edges)
      if (stage_of[slot(from)] > stage_of[slot(to)])
        return user_error(fmt::format("expected edges to go forward, found {} -- {}",
                                      profile_.nodes[slot(from)].id, profile_.nodes[slot(to)].id));
    return {};
  }

 private:
  double crossing(const std::vector<bool>& done) const {
    std::vector<bool> sent(done.size());
    double bytes = 0;
    for (const auto& [from, to] : profile_.edges) {
      if (!done[slot(from)] || done[slot(to)] || sent[slot(from)]) continue;
      sent[slot(from)] = true;
      bytes += profile_.nodes[slot(from)].activations;
    }
    return bytes;
  }

  const Profile& profile_;
  const std::vector<Level>& levels_;
  std::vector<bool> done_;
};

// The stages of the first level, in pipeline order.
void innermost(const std::vector<SteadyStage>& stages, std::vector<SteadyStage>& flat) {
  for (const SteadyStage& stage : stages) {
    if (stage.inner.empty())
      flat.push_back(stage);
    else
      innermost(stage.inner, flat);
  }
}

}  // namespace

Result<double> judge(const Profile& profile, const std::vector<Level>& levels,
                     const std::vector<SteadyStage>& stages) {
  std::vector<std::int32_t> all(profile.nodes.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  SteadyCheck judge(profile, levels);
  WEFT_TRY(seconds, judge.seconds(levels.size() - 1, stages, all));
  std::vector<SteadyStage> flat;
  innermost(stages, flat);
  WEFT_TRY_STATUS(judge.check_order(flat));
  return seconds;
}

}  // namespace weft::partition
