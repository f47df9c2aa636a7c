// weft collective choose: the best algorithm by size, and why.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/base/machine.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/collective/claims.h"
#include "weft/collective/library.h"
#include "weft/explain/plot.h"
#include "weft/explain/table.h"
#include "weft/formats/tuner_csv.h"
#include "weft/search/choose_collective.h"
#include "weft/session/collective.h"
#include "weft/session/collective_price.h"
#include "weft/session/collective_source.h"

namespace weft::session {
namespace {

// Programs longer than this are not among the candidates unless asked for: simulating them takes minutes.
constexpr std::size_t kMostActions = 200'000;
// Slices of a long message that are walked: half of what `cost` walks, which is enough to tell who wins.
constexpr std::int32_t kMostSlices = 8;

struct Candidate {
  std::string reference;
  PricedProgram program;
  std::vector<sim::CostRow> rows;
};

// Without its parameters.
std::string plain_name(const Candidate& candidate) {
  return candidate.reference.substr(0, candidate.reference.find('('));
}

search::CollectiveCandidate curve_of(const Candidate& candidate, std::span<const std::int64_t> sizes) {
  std::vector<double> seconds;
  for (const sim::CostRow& row : candidate.rows) seconds.push_back(row.seconds);
  search::CollectiveCandidate curve =
      search::tabled(candidate.program.name, candidate.program.facts, sizes, seconds);
  curve.family = plain_name(candidate);
  return curve;
}

struct Chosen {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int32_t ranks = 0, nodes = 1;
  std::vector<Candidate> candidates;
  std::vector<std::int64_t> sizes;
  search::CollectiveChoice choice;
  std::vector<std::string> left_out;  // "all_reduce_swing: needs ..."
};

// A reference and how many instances of it are to run side by side.
struct Variant {
  std::string reference;
  std::int32_t instances = 1;
};

// Whether messages follow each other so that smaller ones could overlap. Where it is not known, they might.
bool has_chains(const collective::Algorithm& algorithm, const CollectiveCluster& cluster) {
  collective::Arguments arguments;
  fill_parameters(algorithm, cluster, arguments);
  const auto claimed = collective::claims(algorithm, arguments);
  return !claimed.ok() || claimed->steps.value_or(3) > 2;
}

// An algorithm with the parameters worth trying: pipelined and spread over channels where it can be.
std::vector<Variant> variants(const collective::Algorithm& algorithm, const CollectiveCluster& cluster) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(algorithm.parameters(),
                               [&](const auto& parameter) { return parameter.name == name; });
  };
  std::vector<Variant> found = {{algorithm.name(), 1}};
  if (!has_chains(algorithm, cluster)) return found;
  if (has("channels")) {
    found.push_back({algorithm.name() + "(channels=4)", 1});
    found.push_back({algorithm.name() + "(channels=8)", 1});
  } else {
    if (has("chunks")) found.push_back({algorithm.name() + "(chunks=8)", 1});
    found.push_back({algorithm.name(), 8});
  }
  return found;
}

Result<std::vector<Variant>> references(const CollectiveChoose& request, collective::Kind kind,
                                        const CollectiveCluster& cluster) {
  std::vector<Variant> found;
  for (const std::string& candidate : request.candidates) found.push_back({candidate, 1});
  if (!found.empty()) return found;
  const collective::AlgorithmLibrary& library = collective::shipped_algorithms();
  for (const std::string_view name : library.names()) {
    const collective::Algorithm& algorithm = *library.find(name);
    if (algorithm.kind() != kind) continue;
    const auto is_list = [](const auto& parameter) {
      return parameter.type == collective::ParameterType::list;
    };
    if (std::ranges::any_of(algorithm.parameters(), is_list)) continue;  // uneven blocks: asked for by name
    for (Variant& variant : variants(algorithm, cluster)) found.push_back(std::move(variant));
  }
  if (found.empty())
    return user_error(fmt::format("no shipped algorithm for {}", name(kind)), "name candidates with --among");
  return found;
}

// Prices all candidates, as many at once as the machine has processors; the outcome does not depend on that.
Status price_all(std::vector<Candidate>& candidates, const CollectiveCluster& cluster,
                 const std::vector<std::int64_t>& sizes) {
  std::vector<Status> outcomes(candidates.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < candidates.size(); i = next++) {
      auto rows = price(candidates[i].program, cluster, sizes);
      if (rows.ok())
        candidates[i].rows = std::move(*rows);
      else
        outcomes[i] = rows.error();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 1; i < available_processors(); ++i) workers.emplace_back(work);
    work();
  }
  for (Status& outcome : outcomes) WEFT_TRY_STATUS(std::move(outcome));
  return {};
}

// Most candidates win nowhere. A look at every fourth doubling tells: who is nowhere within kHopeless of the
// best there is not priced at the sizes between.
constexpr double kHopeless = 2;

Result<std::vector<Candidate>> drop_hopeless(std::vector<Candidate> candidates,
                                             const CollectiveCluster& cluster,
                                             const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> coarse;
  for (std::size_t i = 0; i < sizes.size(); i += 4) coarse.push_back(sizes[i]);
  std::vector<double> best(coarse.size(), std::numeric_limits<double>::infinity());
  WEFT_TRY_STATUS(price_all(candidates, cluster, coarse));
  for (const Candidate& candidate : candidates)
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], candidate.rows[i].seconds);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    for (std::size_t i = 0; i < best.size(); ++i)
      if (candidate.rows[i].seconds <= kHopeless * best[i]) return false;
    return true;
  });
  return candidates;
}

Result<Chosen> choose(const CollectiveChoose& request) {
  const auto kind = collective::find_kind(request.collective);
  if (!kind) {
    constexpr std::array<std::string_view, 9> kKinds = {"allreduce", "reducescatter", "allgather",
                                                        "alltoall",  "broadcast",     "reduce",
                                                        "gather",    "scatter",       "barrier"};
    const std::string hint = did_you_mean(request.collective, kKinds);
    return user_error(fmt::format("unknown collective: {}", request.collective),
                      hint.empty() ? fmt::format("collectives are {}", fmt::join(kKinds, ", ")) : hint);
  }
  Chosen chosen;
  chosen.kind = *kind;
  WEFT_TRY(sizes, parse_sizes(request.sizes));
  chosen.sizes = std::move(sizes);
  WEFT_TRY(cluster, find_collective_cluster(request.cluster));
  chosen.ranks = cluster.topology.devices;
  chosen.nodes = cluster.topology.devices / cluster.local;
  WEFT_TRY(names, references(request, *kind, cluster));
  using enum collective::Protocol;
  std::vector<Candidate> prepared;
  for (const auto& [reference, instances] : names) {
    for (const collective::Protocol protocol : {simple, ll, ll128}) {
      Result<PricedProgram> program = prepare(reference, cluster, protocol, instances);
      if (program.ok() && program->actions.actions.size() > kMostActions && request.candidates.empty())
        program =
            user_error(fmt::format("{} steps are too many to try unasked", program->actions.actions.size()));
      if (!program.ok()) {
        if ((reference.ends_with(')') || instances > 1) && request.candidates.empty())
          break;  // said of the plain one
        chosen.left_out.push_back(fmt::format("{}: {}", reference, program.error().message));
        break;
      }
      program->parameters.most_slices = kMostSlices;
      prepared.push_back({reference, std::move(*program), {}});
    }
  }
  WEFT_TRY(able, drop_hopeless(std::move(prepared), cluster, chosen.sizes));
  chosen.candidates = std::move(able);
  std::vector<search::CollectiveCandidate> curves;
  WEFT_TRY_STATUS(price_all(chosen.candidates, cluster, chosen.sizes));
  for (const Candidate& candidate : chosen.candidates) curves.push_back(curve_of(candidate, chosen.sizes));
  if (curves.empty())
    return user_error(fmt::format("no candidate for {} runs on {}", name(*kind), request.cluster),
                      chosen.left_out.empty() ? "" : chosen.left_out.front());
  WEFT_TRY(choice, search::choose_collective(curves, chosen.sizes));
  chosen.choice = std::move(choice);
  return chosen;
}

std::string bytes(std::int64_t count) { return print_bytes(static_cast<double>(count)); }

std::string to_text(const Chosen& chosen, const std::string& cluster) {
  std::string text =
      fmt::format("{} on {}, {} ranks; times are simulated\n\n", name(chosen.kind), cluster, chosen.ranks);
  // Every name begins with the collective, which the first line has said.
  const auto shown_name = [&](std::size_t candidate) {
    const std::string& whole = chosen.candidates[candidate].program.name;
    const std::string prefix = fmt::format("{}_", name(chosen.kind));
    return whole.starts_with(prefix) ? whole.substr(prefix.size()) : whole;
  };
  explain::Table table({{"from", explain::Align::right},
                        {"to", explain::Align::right},
                        {"algorithm"},
                        {"time", explain::Align::right},
                        {"busbw", explain::Align::right},
                        {"next"},
                        {"why"}});
  for (const search::CollectiveRange& range : chosen.choice.ranges) {
    // The time at the range's last size that was looked at.
    const auto& rows = chosen.candidates[range.best].rows;
    const sim::CostRow* shown = &rows.front();
    for (const sim::CostRow& row : rows)
      if (row.bytes <= range.max_bytes) shown = &row;
    std::string next;
    for (const search::RunnerUp& other : range.runners_up)
      next +=
          fmt::format("{}{} ({:.2f}x)", next.empty() ? "" : ", ", shown_name(other.candidate), other.ratio);
    table.add({bytes(range.min_bytes), bytes(range.max_bytes), shown_name(range.best),
               print_seconds(shown->seconds), print_rate(shown->bus_bandwidth), next, range.why});
  }
  text += table.print();
  for (const std::string& reason : chosen.left_out) text += fmt::format("left out: {}\n", reason);
  return text;
}

nlohmann::ordered_json to_json(const Chosen& chosen, const std::string& cluster) {
  nlohmann::ordered_json json;
  json["collective"] = name(chosen.kind);
  json["cluster"] = cluster;
  json["ranks"] = chosen.ranks;
  json["ranges"] = nlohmann::ordered_json::array();
  for (const search::CollectiveRange& range : chosen.choice.ranges) {
    nlohmann::ordered_json one;
    one["min_bytes"] = range.min_bytes;
    one["max_bytes"] = range.max_bytes;
    one["best"] = chosen.candidates[range.best].program.name;
    one["runners_up"] = nlohmann::ordered_json::array();
    for (const search::RunnerUp& other : range.runners_up)
      one["runners_up"].push_back(
          {{"name", chosen.candidates[other.candidate].program.name}, {"ratio", other.ratio}});
    one["why"] = range.why;
    json["ranges"].push_back(std::move(one));
  }
  json["candidates"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : chosen.candidates) {
    nlohmann::ordered_json one;
    one["name"] = candidate.program.name;
    one["steps"] = candidate.program.facts.steps;
    one["wire"] = candidate.program.facts.wire;
    one["seconds"] = nlohmann::ordered_json::array();
    for (const sim::CostRow& row : candidate.rows) one["seconds"].push_back({row.bytes, row.seconds});
    json["candidates"].push_back(std::move(one));
  }
  json["left_out"] = chosen.left_out;
  return json;
}

// Stock NCCL has a ring, a tree and PAT of its own; whatever else won is given as the nearest of them.
std::string_view nccl_algorithm(const Candidate& candidate) {
  const std::string& name = candidate.reference;
  if (name.find("pat") != std::string::npos && name.find("pat") == name.rfind('_') + 1) return "pat";
  if (name.find("tree") != std::string::npos) return "tree";
  return name.find("ring") != std::string::npos ? "ring" : "";
}

// The table says, for every size range, which of NCCL's own algorithms is the fastest of those simulated.
Result<std::string> to_tuner(const Chosen& chosen) {
  std::vector<search::CollectiveCandidate> curves;
  std::vector<const Candidate*> known;
  for (const Candidate& candidate : chosen.candidates) {
    if (nccl_algorithm(candidate).empty()) continue;
    curves.push_back(curve_of(candidate, chosen.sizes));
    known.push_back(&candidate);
  }
  if (curves.empty())
    return user_error(fmt::format("NCCL has none of the algorithms for {}", name(chosen.kind)),
                      "a tuner table needs a ring, a tree or PAT among the candidates");
  WEFT_TRY(choice, search::choose_collective(curves, chosen.sizes));
  std::string plain(name(chosen.kind));
  std::erase(plain, '_');
  std::vector<formats::TunerRow> rows;
  for (const search::CollectiveRange& range : choice.ranges) {
    const Candidate& best = *known[range.best];
    formats::TunerRow row;
    row.coll = plain;
    row.min = rows.empty() ? 0 : range.min_bytes;
    row.max = &range == &choice.ranges.back() ? std::numeric_limits<std::int64_t>::max() : range.max_bytes;
    row.algo = nccl_algorithm(best);
    row.proto = name(best.program.facts.protocol);
    std::ranges::transform(row.proto, row.proto.begin(),
                           [](char letter) { return static_cast<char>(std::tolower(letter)); });
    row.nNodes = chosen.nodes;
    row.nRanks = chosen.ranks;
    rows.push_back(std::move(row));
  }
  return formats::write_tuner_csv(rows);
}

// Each algorithm once, its fastest protocol and parameters at every size.
Result<std::string> to_plot(const Chosen& chosen, const std::string& cluster) {
  std::vector<explain::PlotCurve> curves;
  std::vector<std::size_t> color(chosen.candidates.size());
  for (std::size_t i = 0; i < chosen.candidates.size(); ++i) {
    const Candidate& candidate = chosen.candidates[i];
    const std::string plain = plain_name(candidate);
    auto curve = std::ranges::find(curves, plain, &explain::PlotCurve::name);
    if (curve == curves.end()) {
      curves.push_back({plain, {}, false, curves.size()});
      curve = curves.end() - 1;
      for (const std::int64_t size : chosen.sizes)
        curve->points.push_back({size, std::numeric_limits<double>::infinity()});
    }
    color[i] = curve->color;
    for (std::size_t k = 0; k < candidate.rows.size(); ++k)
      curve->points[k].seconds = std::min(curve->points[k].seconds, candidate.rows[k].seconds);
  }
  std::vector<explain::PlotRange> winners;
  for (const search::CollectiveRange& range : chosen.choice.ranges)
    winners.push_back(
        {range.min_bytes, range.max_bytes, chosen.candidates[range.best].program.name, color[range.best]});
  explain::PlotOptions options;
  options.title = fmt::format("{} on {}, {} ranks (simulated)", name(chosen.kind), cluster, chosen.ranks);
  options.kind = chosen.kind;
  options.ranks = chosen.ranks;
  return explain::plot(curves, winners, options);
}

Result<std::string> render(const Chosen& chosen, const CollectiveChoose& request) {
  if (request.to.ends_with(".svg")) return to_plot(chosen, request.cluster);
  if (request.to.ends_with(".csv")) return to_tuner(chosen);
  if (request.to.ends_with(".json")) return to_json(chosen, request.cluster).dump(2) + "\n";
  return user_error(fmt::format("the ending does not say a format: {}", request.to),
                    ".svg (a plot), .csv (for NCCL's tuner plugin) or .json");
}

Result<std::string> answer(const CollectiveChoose& request) {
  WEFT_TRY(chosen, choose(request));
  if (!request.to.empty()) {
    WEFT_TRY(text, render(chosen, request));
    const std::array<std::string_view, 1> pieces = {text};
    WEFT_TRY_STATUS(write_file_atomically(request.to, pieces));
  }
  if (request.format == Format::json) return to_json(chosen, request.cluster).dump() + "\n";
  return to_text(chosen, request.cluster);
}

}  // namespace

Reply run(const CollectiveChoose& request) { return to_reply(answer(request)); }

}  // namespace weft::session
