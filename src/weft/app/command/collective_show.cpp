// weft collective show and list: a program as a table or a drawing; the shipped algorithms.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/explain/program_table.h"
#include "weft/app/explain/space_time.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/collectives/algorithm/claims.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/formats/collective_source.h"
#include "weft/predict/sim/collective/collective_cluster.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace weft::command {
namespace {

// When each step ran on the cluster, by rank and threadblock: from the start of its first slice to
// the end of its last slice.
Result<std::vector<explain::StepTime>> timeline(const collective::Program& program,
                                                const CollectiveShow& request) {
  WEFT_TRY(cluster, session::find_collective_cluster(request.cluster));
  WEFT_TRY(sizes, sim::parse_sizes(request.size.empty() ? "1MiB" : request.size));
  const collective::Actions actions =
      collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  WEFT_TRY(run, sim::simulate(actions, cluster.topology, sizes.front(), sim::run_parameters(program.protocol),
                              sim::Timeline::yes));
  std::vector<explain::StepTime> times(actions.actions.size(), {-1, -1});
  for (const sim::Stretch& stretch : run.timeline) {
    explain::StepTime& time = times[stretch.action];
    if (time.begin < 0) time.begin = stretch.begin;
    time.end = std::max(time.end, stretch.end);
  }
  for (explain::StepTime& time : times) time.begin = std::max(time.begin, 0.0);
  return times;
}

Result<std::string> show(const CollectiveShow& request) {
  WEFT_TRY(source, formats::read_collective(request.program, {.effort = request.effort}));
  WEFT_TRY(program, formats::to_program(source));
  if (const auto wrong = collective::check_form(program))
    return user_error(print(*wrong), "run weft collective check for details");
  std::vector<explain::StepTime> times;
  if (!request.cluster.empty()) {
    if (request.to.empty())
      return user_error("--on places the steps of a drawing by time", "name the drawing with -o FILE.svg");
    WEFT_TRY(found, timeline(program, request));
    times = std::move(found);
  }
  nlohmann::ordered_json json = {{"program", request.program},
                                 {"collective", collective::name(source.collective().kind)},
                                 {"ranks", source.collective().ranks}};
  std::string text = explain::program_summary(program);
  if (request.to.empty() && request.format == session::Format::json) {
    json["text"] = collective::print(program);
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (request.to.empty()) {
    explain::ProgramTableOptions options;
    options.width = request.width;
    return explain::wrap(text, request.width, 4) + "\n" + explain::program_table(program, options);
  }
  if (!request.to.ends_with(".svg"))
    return user_error(fmt::format("unknown file format: {}", request.to), "use .svg");
  explain::SpaceTimeOptions options;
  options.timeline = times;
  WEFT_TRY(drawing, explain::draw_space_time(program, options));
  WEFT_TRY_STATUS(write_file_atomically(request.to, drawing));
  json["file"] = request.to;
  if (request.format == session::Format::json)
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return explain::wrap(text, request.width, 4);
}

// The names of the algorithm's parameters; optional ones in brackets.
std::string parameters_of(const collective::Algorithm& algorithm) {
  std::vector<std::string> names;
  for (const auto& parameter : algorithm.parameters())
    names.push_back(parameter.has_default ? fmt::format("[{}]", parameter.name) : parameter.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The first sentence of the comment at the top of the algorithm's text.
std::string about(const collective::Algorithm& algorithm) {
  std::string sentence;
  std::string_view text = algorithm.text();
  while (text.starts_with("--")) {
    const std::string_view line = text.substr(2, text.find('\n') - 2);
    const std::size_t stop = line.find(". ");
    const bool ends = stop != std::string_view::npos || line.ends_with('.');
    sentence += line.substr(0, std::min(stop, line.size()));
    if (ends) break;
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  }
  if (!sentence.empty() && sentence.front() == ' ') sentence.erase(0, 1);
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

Result<std::string> list(const CollectiveList& request) {
  std::optional<collective::Kind> only;
  if (!request.collective.empty()) {
    WEFT_TRY(kind, collective::parse_kind(request.collective));
    only = kind;
  }
  explain::Table table(
      {{"algorithm"}, {"collective"}, {"parameters", explain::Align::left, explain::Fit::wrap}});
  auto json = nlohmann::ordered_json::array();
  for (const std::string_view name : collective::shipped_algorithms().names()) {
    const collective::Algorithm& algorithm = *collective::shipped_algorithms().find(name);
    if (only && algorithm.kind() != *only) continue;
    const std::string kind(collective::name(algorithm.kind()));
    table.add({std::string(name), kind, parameters_of(algorithm)});
    table.add_below(about(algorithm));
    nlohmann::ordered_json one{{"name", name}, {"collective", kind}, {"about", about(algorithm)}};
    one["parameters"] = nlohmann::ordered_json::array();
    for (const auto& parameter : algorithm.parameters())
      one["parameters"].push_back({{"name", parameter.name}, {"required", !parameter.has_default}});
    json.push_back(std::move(one));
  }
  if (request.format == session::Format::json) return json.dump() + "\n";
  return table.print(request.width);
}

}  // namespace

session::Reply run(const CollectiveShow& request) { return session::to_reply(show(request)); }

session::Reply run(const CollectiveList& request) { return session::to_reply(list(request)); }

}  // namespace weft::command
