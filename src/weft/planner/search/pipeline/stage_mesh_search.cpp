#include "weft/planner/search/pipeline/stage_mesh_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/planner/search/pipeline/cut_unequal.h"
#include "weft/planner/search/pipeline/stage_estimator.h"

namespace weft::search {
namespace {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::StageUse;

constexpr double kWorthMeshes = 0.99;  // of the seconds with one mesh: several are harder to understand

// Runs of stages at either end, and at both ends.
std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> stage_sets(std::int32_t stages) {
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> sets = {{{0, 0}},
                                                                          {{stages - 1, stages - 1}}};
  if (stages > 2) sets.push_back({{0, 0}, {stages - 1, stages - 1}});
  if (stages > 2) sets.push_back({{1, stages - 2}});
  for (const std::int32_t from : {stages / 4, stages / 2, stages - stages / 4})
    if (from > 0 && from < stages - 1) {
      sets.push_back({{from, stages - 1}});
      sets.push_back({{0, from - 1}});
    }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

class StageMeshSearch {
 public:
  StageMeshSearch(const PipelineProblem& problem, const ChosenPipeline& found,
                  const std::vector<std::string>& model)
      : problem_(problem),
        found_(found),
        model_(model),
        stages_(distribute::stage_axis(found.distribution)) {}

  std::optional<ChosenPipeline> run() {
    if (!may_differ()) return {};
    make_variants();
    auto pricer =
        StageEstimator::of(problem_, found_.distribution, found_.distribution.micro_batches, nullptr);
    if (!pricer.ok()) return {};
    std::vector<const Distribution*> all;
    for (const Distribution& one : variants_) all.push_back(&one);
    pricer->simulate(all);
    const Distribution* best = nullptr;
    double seconds = kWorthMeshes * found_.priced.seconds;
    for (const Distribution& one : variants_)
      if (const auto priced = price(*pricer, one); priced && priced->fits && priced->seconds < seconds) {
        best = &one;
        seconds = priced->seconds;
      }
    if (best == nullptr) return {};
    auto exact = estimate_given(problem_, *best);
    if (!exact.ok() || !exact->fits || exact->priced.seconds >= kWorthMeshes * found_.priced.seconds)
      return {};
    return *std::move(exact);
  }

 private:
  bool may_differ() const {
    const Distribution& base = found_.distribution;
    return stages_ && found_.fits && problem_.fixed.empty() && base.exceptions.empty() && !base.offload &&
           !model_.empty() && found_.priced.schedule.route != pipeline::Route::both_ways &&
           std::ranges::none_of(base.axes, [](const AxisUse& use) { return !use.takes.empty(); });
  }

  std::optional<PipelineEstimate> price(const StageEstimator& pricer, const Distribution& one) const {
    const auto costs = pricer.costs(one);
    const auto wire = wire_of(problem_, one);
    if (!costs.ok() || !wire.ok()) return {};
    auto priced =
        estimate_pipeline(*costs, pricer.order(), cut_unequal(*costs, pricer.order()), *wire, Detail::sums);
    return priced.ok() ? std::optional(*std::move(priced)) : std::nullopt;
  }

  void make_variants() {
    const Distribution& base = found_.distribution;
    const std::int32_t count = base.mesh.axes[*stages_].ranks;
    for (std::size_t axis = 0; axis < base.axes.size(); ++axis) {
      if (axis == *stages_ || base.axes[axis].slice.empty()) continue;
      const bool cuts_batch = base.axes[axis].slice.front() == problem_.batch;
      const std::int32_t ranks = base.mesh.axes[axis].ranks;
      for (const std::int32_t factor : std::set<std::int32_t>{2, ranks}) {
        if (ranks % factor != 0 || (!cuts_batch && !divides(factor))) continue;
        const auto [split, at] =
            factor == ranks ? std::pair(base, axis) : split_axis(axis, factor, cuts_batch);
        for (const AxisUse& other : others(cuts_batch, factor == ranks))
          for (const auto& set : stage_sets(count)) {
            Distribution& made = variants_.emplace_back(split);
            for (const auto& [first, last] : set)
              made.axes[at].in_stages.push_back({first, last, other.slice, other.shard, false});
          }
      }
    }
  }

  // Alternative uses of an axis. If only one model index is sliced, such as the vocabulary of a
  // head, everything else is sliced by batch.
  std::vector<AxisUse> others(bool cuts_batch, bool whole_axis) const {
    if (!cuts_batch) return {{.slice = {problem_.batch}, .shard = shard_of_batch()}};
    std::vector<AxisUse> found = {{.slice = model_}};
    for (std::size_t i = 0; whole_axis && model_.size() > 1 && i < model_.size(); ++i)
      found.push_back({.slice = {model_[i], problem_.batch}, .shard = shard_of_batch()});
    return found;
  }

  // Splits an axis in two and returns which one changes its use: the inner axis, which has faster
  // links, if the axis slices the batch, else the outer one.
  std::pair<Distribution, std::size_t> split_axis(std::size_t axis, std::int32_t factor, bool inner) const {
    Distribution made = found_.distribution;
    const plan::MeshAxis whole = made.mesh.axes[axis];
    const auto at = static_cast<std::ptrdiff_t>(axis);
    made.mesh.axes[axis] = {whole.name + "_1", inner ? whole.ranks / factor : factor};
    made.mesh.axes.insert(made.mesh.axes.begin() + at + 1,
                          {whole.name + "_2", inner ? factor : whole.ranks / factor});
    made.axes.insert(made.axes.begin() + at, made.axes[axis]);
    return {std::move(made), inner ? axis + 1 : axis};
  }

  // Whether a micro-batch on a replica still has whole rows.
  bool divides(std::int32_t factor) const {
    std::int64_t shares = found_.distribution.micro_batches * factor;
    for (std::size_t a = 0; a < found_.distribution.axes.size(); ++a)
      if (const auto& slice = found_.distribution.axes[a].slice;
          !slice.empty() && slice.front() == problem_.batch)
        shares *= found_.distribution.mesh.axes[a].ranks;
    return problem_.rows % shares == 0;
  }

  distribute::Shard shard_of_batch() const {
    for (const AxisUse& use : found_.distribution.axes)
      if (!use.slice.empty() && use.slice.front() == problem_.batch) return use.shard;
    return distribute::Shard::nothing;
  }

  const PipelineProblem& problem_;
  const ChosenPipeline& found_;
  const std::vector<std::string>& model_;
  const std::optional<std::size_t> stages_;
  std::vector<Distribution> variants_;
};

}  // namespace

std::optional<ChosenPipeline> with_stage_meshes(const PipelineProblem& problem, const ChosenPipeline& found,
                                                const std::vector<std::string>& model) {
  return StageMeshSearch(problem, found, model).run();
}

}  // namespace weft::search
