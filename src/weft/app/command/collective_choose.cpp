// weft collective choose: the choice as a table, a plot, a table for NCCL's tuner, or JSON.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/explain/plot.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/synthesized.h"
#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/base/units.h"
#include "weft/formats/collective_source.h"
#include "weft/formats/tuner_csv.h"
#include "weft/planner/exchange/collective_choice.h"

namespace weft::command {
namespace {

std::string bytes(std::int64_t count) { return print_bytes(static_cast<double>(count)); }

std::string to_text(const exchange::EstimatedChoice& chosen, std::size_t width) {
  std::string text = fmt::format("{} on {}, {} ranks; times are simulated\n\n", name(chosen.kind),
                                 chosen.cluster, chosen.ranks);
  // Drops the name of the collective, which the first line already states.
  const auto shown_name = [&](std::size_t candidate) {
    const std::string& whole = chosen.candidates[candidate].program.name;
    const std::string prefix = fmt::format("{}_", name(chosen.kind));
    return whole.starts_with(prefix) ? whole.substr(prefix.size()) : whole;
  };
  explain::Table table({{"from", explain::Align::right},
                        {"to", explain::Align::right},
                        {"algorithm"},
                        {"time", explain::Align::right},
                        {"busbw", explain::Align::right}});
  for (const exchange::CollectiveRange& range : chosen.choice.ranges) {
    // The time at the largest simulated size of the range.
    const auto& rows = chosen.candidates[range.best].rows;
    const sim::CostRow* shown = &rows.front();
    for (const sim::CostRow& row : rows)
      if (row.bytes <= range.max_bytes) shown = &row;
    std::string next;
    for (const exchange::RunnerUp& other : range.runners_up)
      next +=
          fmt::format("{}{} ({:.2f}x)", next.empty() ? "" : ", ", shown_name(other.candidate), other.ratio);
    table.add({bytes(range.min_bytes), bytes(range.max_bytes), shown_name(range.best),
               print_seconds(shown->seconds), print_rate(shown->bus_bandwidth)});
    table.add_below(range.why);
    if (!next.empty()) table.add_below(fmt::format("next: {}", next));
  }
  text += table.print(width);
  for (const std::string& reason : chosen.left_out)
    text += explain::wrap(fmt::format("left out: {}", reason), width);
  return text;
}

std::string to_json(const exchange::EstimatedChoice& chosen, int indent) {
  nlohmann::ordered_json json;
  json["collective"] = name(chosen.kind);
  json["cluster"] = chosen.cluster;
  json["ranks"] = chosen.ranks;
  json["ranges"] = nlohmann::ordered_json::array();
  for (const exchange::CollectiveRange& range : chosen.choice.ranges) {
    nlohmann::ordered_json one;
    one["min_bytes"] = range.min_bytes;
    one["max_bytes"] = range.max_bytes;
    one["best"] = chosen.candidates[range.best].program.name;
    one["runners_up"] = nlohmann::ordered_json::array();
    for (const exchange::RunnerUp& other : range.runners_up)
      one["runners_up"].push_back(
          {{"name", chosen.candidates[other.candidate].program.name}, {"ratio", other.ratio}});
    one["why"] = range.why;
    json["ranges"].push_back(std::move(one));
  }
  json["candidates"] = nlohmann::ordered_json::array();
  for (const exchange::EstimatedCandidate& candidate : chosen.candidates) {
    nlohmann::ordered_json one;
    one["name"] = candidate.program.name;
    one["steps"] = candidate.program.facts.steps;
    one["wire"] = candidate.program.facts.wire;
    one["seconds"] = nlohmann::ordered_json::array();
    for (const sim::CostRow& row : candidate.rows) one["seconds"].push_back({row.bytes, row.seconds});
    json["candidates"].push_back(std::move(one));
  }
  json["left_out"] = chosen.left_out;
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A table that names the fastest of NCCL's own algorithms for each size range.
Result<std::string> to_tuner(const exchange::EstimatedChoice& chosen) {
  std::vector<const exchange::EstimatedCandidate*> known;
  for (const exchange::EstimatedCandidate& candidate : chosen.candidates)
    if (!exchange::nccl_algorithm(chosen.kind, candidate.family()).empty()) known.push_back(&candidate);
  if (known.empty())
    return user_error(fmt::format("NCCL has none of the candidate algorithms for {}", name(chosen.kind)),
                      "a tuner table needs a ring, a tree or PAT among the candidates");
  WEFT_TRY(choice, exchange::choose_among(known, chosen.sizes));
  std::vector<formats::TunerRow> rows;
  for (const exchange::CollectiveRange& range : choice.ranges) {
    const exchange::EstimatedCandidate& best = *known[range.best];
    formats::TunerRow row;
    row.coll = field_name(chosen.kind);
    row.min = rows.empty() ? 0 : range.min_bytes;
    row.max = &range == &choice.ranges.back() ? std::numeric_limits<std::int64_t>::max() : range.max_bytes;
    row.algo = exchange::nccl_algorithm(chosen.kind, best.family());
    row.proto = lower(name(best.program.facts.protocol));
    row.nNodes = chosen.nodes;
    row.nRanks = chosen.ranks;
    rows.push_back(std::move(row));
  }
  return formats::write_tuner_csv(rows);
}

// Each algorithm once, with its fastest protocol and parameters at every size.
Result<std::string> to_plot(const exchange::EstimatedChoice& chosen) {
  std::vector<explain::PlotCurve> curves;
  std::vector<std::size_t> color(chosen.candidates.size());
  for (std::size_t i = 0; i < chosen.candidates.size(); ++i) {
    const exchange::EstimatedCandidate& candidate = chosen.candidates[i];
    const std::string family = candidate.family();
    auto curve = std::ranges::find(curves, family, &explain::PlotCurve::name);
    if (curve == curves.end()) {
      curves.push_back({family, {}, false, curves.size()});
      curve = curves.end() - 1;
      for (const std::int64_t size : chosen.sizes)
        curve->points.push_back({size, std::numeric_limits<double>::infinity()});
    }
    color[i] = curve->color;
    for (std::size_t k = 0; k < candidate.rows.size(); ++k)
      curve->points[k].seconds = std::min(curve->points[k].seconds, candidate.rows[k].seconds);
  }
  std::vector<explain::PlotRange> winners;
  for (const exchange::CollectiveRange& range : chosen.choice.ranges)
    winners.push_back(
        {range.min_bytes, range.max_bytes, chosen.candidates[range.best].program.name, color[range.best]});
  explain::PlotOptions options;
  options.title =
      fmt::format("{} on {}, {} ranks (simulated)", name(chosen.kind), chosen.cluster, chosen.ranks);
  options.kind = chosen.kind;
  options.ranks = chosen.ranks;
  return explain::plot(curves, winners, options);
}

// A table for NCCL's tuner may only contain NCCL's own algorithms.
bool writes_tuner_table(const CollectiveChoose& request) { return request.to.ends_with(".csv"); }

Result<exchange::EstimatedChoice> choice_for(const CollectiveChoose& request) {
  exchange::ChoiceQuestion question;
  question.cluster_name = request.cluster;
  question.candidates = request.candidates;
  WEFT_TRY(kind, collective::parse_kind(request.collective));
  question.kind = kind;
  WEFT_TRY(sizes, sim::parse_sizes(request.sizes));
  question.sizes = std::move(sizes);
  WEFT_TRY(cluster, session::find_collective_cluster(request.cluster));
  question.cluster = std::move(cluster);
  question.for_tuner = writes_tuner_table(request);
  if (request.synthesize) {
    WEFT_TRY(made, session::synthesize_candidates(question.cluster.topology, kind));
    question.synthesized = std::move(made);
  }
  return exchange::choose(question);
}

Result<std::string> render(const exchange::EstimatedChoice& chosen, const CollectiveChoose& request) {
  if (request.to.ends_with(".svg")) return to_plot(chosen);
  if (writes_tuner_table(request)) return to_tuner(chosen);
  if (request.to.ends_with(".json")) return to_json(chosen, 2);
  return user_error(fmt::format("unknown file format: {}", request.to),
                    ".svg (a plot), .csv (for NCCL's tuner plugin) or .json");
}

Result<std::string> answer(const CollectiveChoose& request) {
  WEFT_TRY(chosen, choice_for(request));
  if (!request.to.empty()) {
    WEFT_TRY(text, render(chosen, request));
    WEFT_TRY_STATUS(write_file_atomically(request.to, text));
  }
  if (request.format == session::Format::json) return to_json(chosen, -1);
  return to_text(chosen, request.width);
}

}  // namespace

session::Reply run(const CollectiveChoose& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
