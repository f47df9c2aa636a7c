#include "weft/parallel/distribute/parallelism.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::distribute {
namespace {

bool has(std::span<const std::string> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void add_axis(Degrees& degrees, const AxisUse& use, std::int64_t ranks, const IndexRoles& roles) {
  degrees.differ = degrees.differ || !use.in_stages.empty();
  if (use.stage) {
    degrees.pipeline *= ranks;
    degrees.chunks = use.chunks;
    return;
  }
  const std::string first = use.slice.empty() ? std::string() : use.slice.front();
  const auto slices = [&](std::span<const std::string> some) {
    return std::ranges::any_of(use.slice, [&](const std::string& index) { return has(some, index); });
  };
  const bool by_expert = has(roles.expert, first), with_batch = slices(roles.batch);
  const bool of_model =
      has(roles.model, first) ||
      std::ranges::any_of(roles.further, [&](const FurtherIndex& further) { return further.index == first; });
  if (use.shard == Shard::parameters) degrees.parameters *= ranks;
  if (use.shard == Shard::optimizer) degrees.optimizer *= ranks;
  if (by_expert) degrees.expert *= ranks;
  if (has(roles.batch, first) || (by_expert && with_batch)) {
    degrees.data *= ranks;
  } else if (of_model) {
    degrees.tensor *= ranks;
    degrees.sequence = degrees.sequence || slices(roles.sequence);
    if (!with_batch) return;
    degrees.data_elsewhere *= ranks;
    for (const std::string& index : use.slice)
      if (!has(roles.batch, index) && !has(roles.sequence, index) && !has(degrees.elsewhere, index))
        degrees.elsewhere.push_back(index);
  } else if (has(roles.sequence, first) && use.ring) {
    degrees.context *= ranks;
  } else if (!first.empty() && !by_expert) {
    degrees.others.push_back(fmt::format("{}-way slices of {}", ranks, first));
  } else if (first.empty() && use.shard == Shard::nothing) {
    degrees.copies *= ranks;
  }
}

// "ZeRO-1", "ZeRO-3 over 8": names the number of ranks that share states and parameters, if it is
// not all of DP.
std::string print_sharding(const Degrees& degrees) {
  const bool all = degrees.parameters > 1;
  const std::int64_t shards = all ? degrees.parameters * degrees.optimizer : degrees.optimizer;
  if (shards == 1) return {};
  if (all && degrees.optimizer > 1)
    return fmt::format("ZeRO-3 over {}, ZeRO-1 over {}", degrees.parameters, degrees.optimizer);
  const std::string_view name = all ? "ZeRO-3" : "ZeRO-1";
  return shards == degrees.data ? std::string(name) : fmt::format("{} over {}", name, shards);
}

// Schedule names as in papers and launchers.
std::string_view usual_name(std::string_view schedule) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"", "1F1B"},
      {"one_f_one_b", "1F1B"},
      {"interleaved_one_f_one_b", "interleaved 1F1B"},
      {"gpipe", "GPipe"},
      {"zb_h1", "zero-bubble H1"},
      {"breadth_first", "breadth-first"},
      {"zb_h2", "zero-bubble H2"},
      {"zb_v", "zero-bubble V"},
      {"v_half", "V-half"},
      {"v_min", "V-min"},
      {"dualpipe", "DualPipe"},
      {"dualpipe_v", "DualPipe-V"}};
  if (schedule.starts_with("synthesized_")) return "synthesized schedule";
  const auto* found =
      std::ranges::find(kNames, schedule, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kNames) ? schedule : found->second;
}

// "DP for f0", "w replicated": names the tensors if they are few.
std::string print_exceptions(std::span<const Exception> exceptions, const IndexRoles& roles) {
  constexpr std::size_t kMostNamed = 2;
  if (exceptions.size() > kMostNamed) return fmt::format("{} tensors differ", exceptions.size());
  std::vector<std::string> said;
  for (const Exception& one : exceptions)
    said.push_back(one.index.empty()             ? fmt::format("{} replicated", one.tensor)
                   : has(roles.batch, one.index) ? fmt::format("DP for {}", one.tensor)
                                                 : fmt::format("{} sliced along {}", one.tensor, one.index));
  return fmt::format("{}", fmt::join(said, " · "));
}

std::string print_recomputation(const train::Recompute& what) {
  if (what.names.empty() && what.layers) return "full recomputation";
  if (what.names.empty() && what.selective) return "selective recomputation";
  return "recomputes " + train::print(what);
}

}  // namespace

Degrees degrees_of(const Distribution& distribution, const IndexRoles& roles) {
  Degrees degrees;
  for (std::size_t a = 0; a < distribution.axes.size(); ++a)
    if (const std::int64_t ranks = distribution.mesh.axes[a].ranks; ranks > 1)
      add_axis(degrees, distribution.axes[a], ranks, roles);
  return degrees;
}

std::string print_parallelism(const Distribution& distribution, const IndexRoles& roles, std::int64_t rows) {
  const Degrees degrees = degrees_of(distribution, roles);
  std::vector<std::string> said;
  const bool mixed = degrees.data_elsewhere > 1;
  if (degrees.tensor > 1)
    said.push_back(fmt::format(
        "TP {}{}{}", degrees.tensor,
        mixed ? fmt::format(" (layers with {})", fmt::join(degrees.elsewhere, ", ")) : std::string(),
        degrees.sequence ? " (sequence parallel)" : ""));
  if (degrees.pipeline > 1)
    said.push_back(
        fmt::format("PP {}{} ({})", degrees.pipeline,
                    degrees.chunks > 1 ? fmt::format(" x {} chunks", degrees.chunks) : std::string(),
                    usual_name(distribution.schedule)));
  if (degrees.context > 1) said.push_back(fmt::format("CP {} (ring attention)", degrees.context));
  if (degrees.expert > 1) said.push_back(fmt::format("EP {}", degrees.expert));
  const std::string sharding = print_sharding(degrees);
  if (degrees.data > 1)
    said.push_back(fmt::format("DP {}{}", degrees.data,
                               sharding.empty() ? std::string() : fmt::format(" ({})", sharding)));
  else if (!sharding.empty())
    said.push_back(sharding);
  if (mixed) said.push_back(fmt::format("DP {} (other layers)", degrees.data * degrees.data_elsewhere));
  said.insert(said.end(), degrees.others.begin(), degrees.others.end());
  if (degrees.copies > 1) said.push_back(fmt::format("{} redundant ranks", degrees.copies));
  if (degrees.differ) said.emplace_back("some stages differ");
  if (distribution.micro_batches > 1) {
    const std::int64_t parts = degrees.data * distribution.micro_batches;
    said.push_back(rows > 0 && rows % parts == 0
                       ? fmt::format("micro-batch {} x {}", rows / parts, distribution.micro_batches)
                       : fmt::format("{} micro-batches", distribution.micro_batches));
  }
  if (!distribution.recompute.is_nothing()) said.push_back(print_recomputation(distribution.recompute));
  if (distribution.offload) said.emplace_back("optimizer on the host");
  const std::string exceptions = print_exceptions(distribution.exceptions, roles);
  if (!exceptions.empty()) said.push_back(exceptions);
  return fmt::format("{}", fmt::join(said, " · "));
}

}  // namespace weft::distribute
