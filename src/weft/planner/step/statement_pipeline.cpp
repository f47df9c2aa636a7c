#include "weft/planner/step/statement_pipeline.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "weft/parallel/distribute/index_roles.h"
#include "weft/parallel/pipeline/cut_parts.h"
#include "weft/planner/step/plan_for.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {
namespace {

// The request without stages and micro-batches. `norm_shares`: number of shares of a micro-batch
// over which batch norms compute their statistics.
PlanRequest without_pipeline(const Prepared& prepared, std::int64_t norm_shares) {
  PlanRequest like = prepared.request();
  like.settings.micro_batches = 1;
  like.settings.distribution.clear();
  // The distribution's recomputation is a property of the plan, so it stays.
  if (auto asked = recompute_of(prepared.settings); asked.ok() && !asked->is_nothing())
    like.settings.recompute = std::move(*asked);
  if (prepared.norm_shares > 1) {
    like.settings.local_norms = norm_shares > 1;
    like.ranks = norm_shares;
  }
  return like;
}

}  // namespace

std::optional<Batch> batch_of(const Prepared& prepared) {
  const std::vector<std::string> batch = distribute::index_roles(prepared.plan.graph).batch;
  for (const auto& [name, size] : prepared.named_sizes())
    if (!batch.empty() && name == batch.front()) return Batch{name, size};
  return std::nullopt;
}

Result<Batch> needed_batch_of(const Prepared& prepared) {
  if (auto batch = batch_of(prepared)) return *std::move(batch);
  return user_error("micro-batches split the batch, but the model has no index for it",
                    "name its size: CREATE MODEL m (b = 64, ..)", prepared.run->span);
}

StatementPipeline::StatementPipeline(const Knowledge& state, const Observer* context,
                                     const Prepared& prepared, const Batch& batch, std::int64_t micro_batches)
    : state_(state),
      cluster_(prepared.ranks == 1 ? alone(prepared.target) : cluster::Cluster(prepared.target)),
      machine_(machine_of(prepared.settings, cluster_)),
      like_(without_pipeline(prepared, std::max<std::int64_t>(prepared.norm_shares / micro_batches, 1))),
      batch_(batch.name) {
  problem_.plan = &prepared.plan.graph;
  problem_.batch = batch.name;
  problem_.rows = batch.rows;
  problem_.plan_of = [this](std::int64_t rows) -> Result<const plan::Graph*> {
    WEFT_TRY(found, at_rows(rows));
    return &found->plan.graph;
  };
  problem_.cluster = &cluster_;
  problem_.machine = &machine_;
  problem_.machine_with = [this](const cluster::Device& device) -> const search::Machine* {
    const auto [found, is_new] = kinds_.try_emplace(device.name);
    OfOneKind& kind = found->second;
    if (is_new) {
      kind.cluster = {cluster_.name, device, cluster_.axes};
      kind.cluster.stack = cluster_.stack;
      kind.machine = machine_of(like_.settings, kind.cluster);
    }
    return &kind.machine;
  };
  problem_.memory_is_asked = prepared.settings.memory_limit > 0;
  problem_.memory_reserve = memory_reserve(prepared.settings, prepared.target);
  problem_.memory_bytes = memory_per_rank(prepared.settings, prepared.target);
  problem_.fixed = prepared.fixed;
  problem_.off = prepared.settings.optimizer_off;
  problem_.slice_sends = prepared.settings.slice_sends;
  problem_.recomputed = like_.settings.recompute;
  if (context != nullptr) problem_.watching = watching_by(*context, prepared);
  if (prepared.settings.seconds > 0)
    problem_.until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(std::min(prepared.settings.seconds, 1e9)));
  // Ranks of a launcher each plan, with different measurements. Flops are the same on all of them.
  if (const auto job = run::launched_job(); job.ok() && *job != nullptr)
    problem_.work = pipeline::flops_of_parts(prepared.plan.graph);
}

Result<Prepared> without_recompute(const Knowledge& state, const Prepared& prepared) {
  PlanRequest like = without_pipeline(prepared, prepared.norm_shares);
  like.settings.recompute.reset();
  WEFT_TRY(made, prepare_again(state, like, {}));
  made.ranks = prepared.ranks;
  return made;
}

Result<const Prepared*> StatementPipeline::at_rows(std::int64_t rows) {
  if (const auto found = made_.find(rows); found != made_.end()) return &found->second;
  const language::SizeOverride size{batch_, rows, {}};
  WEFT_TRY(again, prepare_again(state_, like_, {&size, 1}));
  return &made_.emplace(rows, std::move(again)).first->second;
}

Result<Prepared> StatementPipeline::recomputed(std::int64_t rows, const train::Recompute& what) const {
  const language::SizeOverride size{batch_, rows, {}};
  WEFT_TRY(made, prepare_again(state_, like_, {&size, 1}));
  if (what == like_.settings.recompute.value_or(train::Recompute())) return made;
  WEFT_TRY(plan, train::with_recomputation(std::move(made.plan), what));
  made.plan = std::move(plan);
  made.settings.recompute = what;
  return made;
}

distribute::Distribution StatementPipeline::as_priced(distribute::Distribution distribution) const {
  if (distribution.mesh.axes.empty()) {
    distribution.mesh = {{{"rank", 1}}};
    distribution.axes.resize(1);
  }
  if (!cost::is_local(cluster_) || cluster_.axes.size() > 1) return distribution;
  for (plan::MeshAxis& axis : distribution.mesh.axes) {
    if (cost::axis_under(cluster_, axis.name) != nullptr) continue;
    const std::string name = fmt::format("{}_{}", cluster_.axes.front().name, axis.name);
    for (distribute::Exception& exception : distribution.exceptions)
      if (exception.axis == axis.name) exception.axis = name;
    axis.name = name;
  }
  return distribution;
}

}  // namespace weft::planner
