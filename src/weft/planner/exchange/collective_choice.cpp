#include "weft/planner/exchange/collective_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/base/parallel_for.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"

namespace weft::exchange {
namespace {

// Longer programs are not candidates unless requested: simulating them takes minutes.
constexpr std::size_t kMostActions = 200'000;
// Simulated slices of a long message: half as many as for `cost`, but enough to find the winner.
constexpr std::int32_t kMostSlices = 8;
// Most candidates never win. Every fourth size is simulated first. Candidates that are not within
// kHopeless of the best at any of these are dropped.
constexpr double kHopeless = 2;

bool has_parameter(const collective::Algorithm& algorithm, std::string_view name) {
  return std::ranges::any_of(algorithm.parameters(),
                             [&](const auto& parameter) { return parameter.name == name; });
}

// Whether messages form chains, so that smaller chunks could overlap. If unknown, assume so.
bool has_chains(const collective::Algorithm& algorithm, const sim::CollectiveCluster& cluster) {
  collective::Arguments arguments;
  sim::fill_parameters(algorithm, cluster, 1, arguments);
  const auto claimed = collective::claims(algorithm, arguments);
  return !claimed.ok() || claimed->steps.value_or(3) > 2;
}

// An algorithm with the parameters worth trying: pipelined if possible, and with one channel for
// short messages, some, or enough to fill the links. Channels are a parameter of that name or
// instances.
std::vector<Variant> variants(const collective::Algorithm& algorithm, const sim::CollectiveCluster& cluster) {
  const bool chained = has_chains(algorithm, cluster);
  std::vector<std::int32_t> channels = {1};
  if (chained) channels.insert(channels.end(), {4, 8});
  if (const std::int32_t full = sim::channels_of(cluster);
      std::ranges::find(channels, full) == channels.end())
    channels.push_back(full);
  std::vector<Variant> found;
  const bool has_channels = has_parameter(algorithm, "channels");
  for (const std::int32_t count : channels) {
    if (has_channels)
      found.push_back({fmt::format("{}(channels={})", algorithm.name(), count), 1});
    else if (count != 4)
      found.push_back({algorithm.name(), count});
  }
  if (chained && !has_channels && has_parameter(algorithm, "chunks"))
    found.push_back({algorithm.name() + "(chunks=8)", 1});
  return found;
}

Result<std::vector<Variant>> references(const ChoiceQuestion& question) {
  std::vector<Variant> found;
  for (const std::string& candidate : question.candidates) found.push_back({candidate, 1});
  if (!found.empty()) return found;
  found = shipped_variants(question.kind, question.cluster);
  if (found.empty())
    return user_error(fmt::format("no shipped algorithm for {}", name(question.kind)),
                      "name candidates with --among");
  return found;
}

std::string family_of(const std::string& reference) { return reference.substr(0, reference.find('(')); }

// Adds the variant with every protocol, or records why it is left out.
void add_candidates(EstimatedChoice& made, const Variant& variant, const sim::CollectiveCluster& cluster,
                    bool asked_for, bool first_of_its_kind) {
  using enum collective::Protocol;
  for (const collective::Protocol protocol : {simple, ll, ll128}) {
    Result<EstimatedProgram> program = prepare(variant.reference, cluster, protocol, variant.instances);
    if (program.ok() && program->actions.actions.size() > kMostActions && !asked_for)
      program =
          user_error(fmt::format("{} steps are too many to try by default", program->actions.actions.size()));
    if (!program.ok()) {
      if (first_of_its_kind || asked_for)  // else already recorded
        made.left_out.push_back(fmt::format(
            "{}: {}", asked_for ? variant.reference : family_of(variant.reference), program.error().message));
      return;
    }
    program->parameters.max_slices = kMostSlices;
    made.candidates.push_back({variant.reference, std::move(*program), {}});
  }
}

// Estimates all candidates in parallel. The result does not depend on the number of threads.
Status price_all(std::vector<EstimatedCandidate>& candidates, const sim::CollectiveCluster& cluster,
                 const std::vector<std::int64_t>& sizes) {
  std::vector<Status> outcomes(candidates.size());
  parallel_for(candidates.size(), [&](std::size_t i) {
    auto rows = price_at(candidates[i].program, cluster, sizes);
    if (rows.ok())
      candidates[i].rows = std::move(*rows);
    else
      outcomes[i] = rows.error();
  });
  for (Status& outcome : outcomes) WEFT_TRY_STATUS(std::move(outcome));
  return {};
}

// With `for_tuner`, NCCL's algorithms are kept however slow, since one of them must win its table.
Status drop_hopeless(EstimatedChoice& made, const sim::CollectiveCluster& cluster, bool for_tuner) {
  std::vector<std::int64_t> coarse;
  for (std::size_t i = 0; i < made.sizes.size(); i += 4) coarse.push_back(made.sizes[i]);
  WEFT_TRY_STATUS(price_all(made.candidates, cluster, coarse));
  std::vector<double> best(coarse.size(), std::numeric_limits<double>::infinity());
  for (const EstimatedCandidate& candidate : made.candidates)
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], candidate.rows[i].seconds);
  std::erase_if(made.candidates, [&](const EstimatedCandidate& candidate) {
    if (for_tuner && !nccl_algorithm(made.kind, candidate.family()).empty()) return false;
    for (std::size_t i = 0; i < best.size(); ++i)
      if (candidate.rows[i].seconds <= kHopeless * best[i]) return false;
    return true;
  });
  return {};
}

CollectiveCandidate curve_of(const EstimatedCandidate& candidate, const std::vector<std::int64_t>& sizes) {
  std::vector<double> seconds;
  for (const sim::CostRow& row : candidate.rows) seconds.push_back(row.seconds);
  CollectiveCandidate curve = tabled(candidate.program.name, candidate.program.facts, sizes, seconds);
  curve.family = candidate.family();
  return curve;
}

}  // namespace

std::vector<Variant> shipped_variants(collective::Kind kind, const sim::CollectiveCluster& cluster) {
  std::vector<Variant> found;
  const collective::AlgorithmLibrary& library = collective::shipped_algorithms();
  for (const std::string_view name : library.names()) {
    const collective::Algorithm& algorithm = *library.find(name);
    if (algorithm.kind() != kind) continue;
    const auto is_list = [](const auto& parameter) {
      return parameter.type == collective::ParameterType::list;
    };
    if (std::ranges::any_of(algorithm.parameters(), is_list)) continue;  // uneven blocks: only by name
    for (Variant& variant : variants(algorithm, cluster)) found.push_back(std::move(variant));
  }
  return found;
}

std::string EstimatedCandidate::family() const { return family_of(reference); }

std::string_view nccl_algorithm(collective::Kind kind, std::string_view family) {
  const std::string prefix = fmt::format("{}_", name(kind));
  if (!family.starts_with(prefix)) return "";
  family.remove_prefix(prefix.size());
  if (family == "double_binary_tree") return "tree";
  if (family == "ring") return "ring";
  return family == "pat" ? "pat" : "";
}

Result<CollectiveChoice> choose_among(const std::vector<const EstimatedCandidate*>& candidates,
                                      const std::vector<std::int64_t>& sizes) {
  std::vector<CollectiveCandidate> curves;
  for (const EstimatedCandidate* candidate : candidates) curves.push_back(curve_of(*candidate, sizes));
  return choose_collective(curves, sizes);
}

Result<EstimatedChoice> choose(const ChoiceQuestion& question) {
  EstimatedChoice made;
  made.kind = question.kind;
  made.sizes = question.sizes;
  made.cluster = question.cluster_name;
  const sim::CollectiveCluster& cluster = question.cluster;
  made.ranks = cluster.topology.devices;
  made.nodes = cluster.topology.devices / cluster.local;
  WEFT_TRY(tried, references(question));
  const bool asked_for = !question.candidates.empty();
  std::string_view before;
  for (const Variant& variant : tried) {
    const std::string_view family =
        std::string_view(variant.reference).substr(0, variant.reference.find('('));
    add_candidates(made, variant, cluster, asked_for, family != std::exchange(before, family));
  }
  for (const collective::Program& program : question.synthesized) {
    WEFT_TRY(priced, prepare(program, cluster));
    priced.parameters.max_slices = kMostSlices;
    made.candidates.push_back({program.name, std::move(priced), {}});
  }
  if (made.candidates.empty())
    return user_error(fmt::format("no candidate for {} runs on {}", name(made.kind), made.cluster),
                      made.left_out.empty() ? "" : made.left_out.front());
  if (!asked_for) WEFT_TRY_STATUS(drop_hopeless(made, cluster, question.for_tuner));
  WEFT_TRY_STATUS(price_all(made.candidates, cluster, made.sizes));
  std::vector<const EstimatedCandidate*> all;
  for (const EstimatedCandidate& candidate : made.candidates) all.push_back(&candidate);
  WEFT_TRY(choice, choose_among(all, made.sizes));
  made.choice = std::move(choice);
  return made;
}

}  // namespace weft::exchange
