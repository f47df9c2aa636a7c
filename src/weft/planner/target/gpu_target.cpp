#include "weft/planner/target/gpu_target.h"

#include <cstdlib>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/device/cuda/api.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/target/find_target.h"
#include "weft/planner/target/machine.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {

namespace {

// Ranks that share a GPU each get a part of its rates, and exchange data through its memory.
cluster::Cluster shared_by(cluster::Device device, std::int64_t ranks) {
  // Seconds until the last rank arrives. Measured when the host still synchronized the ranks (about
  // 1.5 ms for the 15 exchanges of a GPT-2 step on two ranks). With it, steps on two and four ranks
  // that only slice the batch are predicted 8 % too long.
  constexpr double kMeeting = 100e-6;
  const auto parts = static_cast<double>(ranks);
  cluster::Axis axis{"rank", ranks, {}};
  axis.link.name = "memory";
  axis.link.bytes_per_second = device.memory_bytes_per_second / 2 / parts;
  axis.link.latency_seconds = kMeeting;
  for (double& rate : device.flops_per_second) rate /= parts;
  for (double& rate : device.kernels) rate /= parts;
  device.memory_bytes /= parts;
  device.memory_bytes_per_second /= parts;
  return {device.name, device, {std::move(axis)}};
}

}  // namespace

bool is_gpu(const language::Catalog& catalog, const language::syntax::Target& target) {
  return !target.local && same_word(target.cluster.text, "GPU") &&
         !catalog.clusters.contains(target.cluster.text) && !catalog.devices.contains(target.cluster.text);
}

Result<Target> find_gpu(const language::Catalog& catalog, const language::syntax::Target& target) {
  // TF32 is the usual precision of f32 training on these devices. WEFT_TF32=0 is for comparisons.
  const char* const tf32 = std::getenv("WEFT_TF32");
  const bool exact = tf32 != nullptr && std::string_view(tf32) == "0";
  auto opened = device::open_device(exact ? "cuda:0 exact" : "cuda:0");
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    error.span = target.span;
    return error;
  }
  // "NVIDIA H200" matches h200. Of several matching names, the longest is the most specific.
  const std::string model = lower((*opened)->model());
  const cluster::Device* best = nullptr;
  for (const auto& [name, device] : catalog.devices)
    if (model.find(lower(name)) != std::string::npos && (best == nullptr || name.size() > best->name.size()))
      best = &device;
  if (best == nullptr)
    return user_error(fmt::format("no device in the catalog matches this GPU: {}", (*opened)->model()),
                      "CREATE DEVICE with a name that contains part of it", target.span);
  const std::int64_t ranks = target.ranks ? target.ranks->whole : 1;
  if (ranks > run::kMostLocalRanks)
    return user_error(fmt::format("expected 1 to {} ranks on a GPU, found {}", run::kMostLocalRanks, ranks),
                      {}, target.span);
  Target found(ranks > 1 ? shared_by(*best, ranks) : one_of(*best), TargetKind::gpu);
  found.name = ranks > 1 ? fmt::format("GPU RANKS {}", ranks) : "GPU";
  found.gpu = std::move(*opened);
  return found;
}

Status check_libraries(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (&graph.view(plan::NodeId(n)).op() == &ops::conv2d())
      if (const auto library = device::cuda::dnn(); !library.ok()) return library.error();
  return {};
}

}  // namespace weft::planner
