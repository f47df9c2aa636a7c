#include "weft/planner/target/find_target.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/planner/target/gpu_target.h"
#include "weft/planner/target/job_cluster.h"
#include "weft/planner/target/machine.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {

Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target) {
  if (!target || target->local) {
    const std::int64_t ranks = target && target->ranks ? target->ranks->whole : 1;
    constexpr std::int64_t kMost = 4096;
    if (ranks > kMost)
      return user_error(fmt::format("LOCAL supports at most {} ranks, found {}", kMost, ranks),
                        "to plan for more ranks, name a cluster: ON pod", target->span);
    const auto core = catalog.devices.find("cpu_core");
    if (core == catalog.devices.end())
      return user_error("LOCAL needs the device cpu_core, which was dropped", "CREATE DEVICE cpu_core (...)",
                        target ? target->span : Span{});
    return cluster::Cluster{fmt::format("LOCAL {}", ranks), core->second, {cluster::Axis{"rank", ranks, {}}}};
  }
  if (target->ranks)
    return user_error(
        fmt::format("the number of ranks of {} is fixed: RANKS is only for GPU", target->cluster.text),
        "ON GPU RANKS 4, or ON LOCAL 4", target->span);
  if (const auto found = catalog.clusters.find(target->cluster.text); found != catalog.clusters.end())
    return found->second;
  if (const auto found = catalog.devices.find(target->cluster.text); found != catalog.devices.end())
    return one_of(found->second);
  std::vector<std::string_view> names = language::names_of(catalog.clusters);
  for (const std::string_view device : language::names_of(catalog.devices)) names.push_back(device);
  Error error = language::unknown("cluster or device", target->cluster, names);
  if (error.hint.starts_with("SHOW ")) error.hint = "SHOW CLUSTERS and SHOW DEVICES list them";
  return error;
}

language::syntax::Target named_target(std::string_view name, Span span) {
  return {.local = false, .ranks = {}, .cluster = {name, span}, .span = span};
}

// Without a link name it would count as a rank of this machine, with measurements made here.
cluster::Cluster one_of(const cluster::Device& device) {
  cluster::Axis alone{"rank", 1, {}};
  alone.link.name = "none";
  return {device.name, device, {std::move(alone)}};
}

Result<Target> find_target(const language::Catalog& catalog,
                           const std::optional<language::syntax::Target>& on, const Settings& settings,
                           Intent intent, Span at) {
  if (on && is_job(catalog, *on)) return find_job(catalog, *on, settings);
  if (on && is_gpu(catalog, *on)) {
    WEFT_TRY(gpu, find_gpu(catalog, *on));
    gpu.threads = threads_of(settings);
    return gpu;
  }
  const bool by_setting = !on && intent == Intent::plan && !settings.device.empty();
  auto named = target_of(catalog, by_setting ? named_target(settings.device, at) : on);
  if (!named.ok()) {
    Error error = std::move(named).error();
    if (by_setting) error.message = fmt::format("the setting device names an {}", error.message);
    return error;
  }
  const bool local = cost::is_local(*named);
  Target found(std::move(*named), local ? TargetKind::local : TargetKind::described);
  found.threads = threads_of(settings);
  return found;
}

bool asks_for_ranks(const language::Catalog& catalog, const std::optional<language::syntax::Target>& on) {
  if (!on) return false;
  if (is_job(catalog, *on)) return true;
  return (on->local || is_gpu(catalog, *on)) && on->ranks && on->ranks->whole > 1;
}

}  // namespace weft::planner
