#include "weft/app/command/synthesize_steps.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/program_file.h"
#include "weft/app/session/reply.h"
#include "weft/base/units.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/step_pareto.h"
#include "weft/planner/settings/duration.h"

namespace weft::command {
namespace {

using synthesis::StepPoint;
using synthesis::StepVerdict;

constexpr double kMostSeconds = 1e7;

std::string to_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Writes the program to the requested file, or returns its text.
Result<std::string> program_of(const SynthesizeSteps& request, const synthesis::StepNetwork& network,
                               const StepPoint& point) {
  WEFT_TRY(program, collective::compile(synthesis::step_moves(point.question, network, point.answer)));
  if (request.to.empty()) return collective::print(program);
  WEFT_TRY_STATUS(session::write_program(request.to, program));
  return request.to;
}

nlohmann::ordered_json satisfiable(StepVerdict verdict) {
  if (verdict == StepVerdict::unknown) return nullptr;
  return verdict == StepVerdict::satisfiable;
}

std::string_view in_words(StepVerdict verdict) {
  if (verdict == StepVerdict::unknown) return "unknown";
  return verdict == StepVerdict::satisfiable ? "satisfiable" : "unsatisfiable";
}

nlohmann::ordered_json facts(const StepPoint& point) {
  nlohmann::ordered_json json;
  json["chunks"] = point.question.chunks;
  json["steps"] = point.question.steps;
  json["rounds"] = point.question.rounds;
  json["satisfiable"] = satisfiable(point.answer.verdict);
  json["seconds"] = point.seconds;
  json["why"] = point.answer.why;
  return json;
}

Result<std::string> answer_one(const SynthesizeSteps& request, const synthesis::StepNetwork& network,
                               collective::Kind kind, const synthesis::StepClock& clock) {
  const auto start = std::chrono::steady_clock::now();
  StepPoint point{{kind, request.root, request.chunks, request.steps, request.rounds}, {}, 0};
  WEFT_TRY(found, synthesis::answer_steps(network, point.question, clock));
  point.answer = std::move(found);
  point.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string program;
  if (point.answer.verdict == StepVerdict::satisfiable) {
    WEFT_TRY(made, program_of(request, network, point));
    program = std::move(made);
  }
  if (request.format == session::Format::json) {
    nlohmann::ordered_json json{{"collective", name(kind)}, {"devices", network.devices}};
    json.update(facts(point));
    json["round_bytes_per_second"] = network.round_rate;
    if (!program.empty()) json["program"] = program;
    return to_line(json);
  }
  std::string text = fmt::format(
      "{} of {} chunks in {} steps and {} rounds: {} in {}\n{}\n", name(kind), request.chunks, request.steps,
      request.rounds, in_words(point.answer.verdict), print_seconds(point.seconds), point.answer.why);
  if (!program.empty()) text += request.to.empty() ? "\n" + program : fmt::format("{}: checked\n", program);
  return text;
}

Result<std::string> answer_frontier(const SynthesizeSteps& request, const synthesis::StepNetwork& network,
                                    collective::Kind kind, const synthesis::StepClock& clock) {
  synthesis::StepLimits limits;
  limits.most_steps = request.most_steps;
  limits.most_extra_rounds = request.extra_rounds;
  WEFT_TRY(frontier, synthesis::step_frontier(network, kind, request.root, limits, clock));
  std::string program;
  if (!request.to.empty() && !frontier.points.empty()) {
    WEFT_TRY(made, program_of(request, network, frontier.points.back()));
    program = std::move(made);
  }
  if (request.format == session::Format::json) {
    nlohmann::ordered_json json{{"collective", name(kind)}, {"devices", network.devices}};
    json["least_steps"] = frontier.least_steps;
    json["least_rounds_a_chunk"] = frontier.least_rounds_a_chunk;
    json["reaches_bandwidth"] = frontier.reaches_bandwidth;
    json["frontier"] = nlohmann::ordered_json::array();
    for (const StepPoint& point : frontier.points) {
      json["frontier"].push_back(facts(point));
      json["frontier"].back()["optimal"] = best_in(frontier, point);
    }
    json["refuted"] = nlohmann::ordered_json::array();
    for (const StepPoint& point : frontier.refuted) json["refuted"].push_back(facts(point));
    json["round_bytes_per_second"] = network.round_rate;
    if (!program.empty()) json["program"] = program;
    return to_line(json);
  }
  explain::Table table({{"chunks", explain::Align::right},
                        {"steps", explain::Align::right},
                        {"rounds", explain::Align::right},
                        {"best in"},
                        {"time", explain::Align::right},
                        {"how"}});
  for (const StepPoint& point : frontier.points)
    table.add({fmt::to_string(point.question.chunks), fmt::to_string(point.question.steps),
               fmt::to_string(point.question.rounds), best_in(frontier, point), print_seconds(point.seconds),
               point.answer.why});
  std::string text = table.print();
  std::size_t open = 0;
  for (const StepPoint& point : frontier.refuted)
    open += static_cast<std::size_t>(point.answer.verdict == StepVerdict::unknown);
  text += fmt::format("{} others refuted", frontier.refuted.size() - open);
  text += open == 0 ? "\n" : fmt::format(", {} left open: there may be better ones\n", open);
  if (!frontier.reaches_bandwidth) text += "the program does not reach the network's bandwidth\n";
  if (!program.empty()) text += fmt::format("{}: checked\n", program);
  return text;
}

Result<std::string> answer(const SynthesizeSteps& request) {
  if (!synthesis::can_decide_steps())
    return environment_error("this weft was built without CaDiCaL, which decides chunks, steps and rounds",
                             "install libcadical-dev and build again");
  std::optional<double> seconds;
  if (!request.time_limit.empty()) {
    seconds = planner::read_duration(request.time_limit);
    if (!seconds || !(*seconds > 0) || *seconds > kMostSeconds)
      return user_error(fmt::format("expected a time limit, found {}", request.time_limit),
                        "for example: '10 s'");
  }
  if (request.most_steps < 0)
    return user_error(fmt::format("steps must be at least 1: {}", request.most_steps));
  WEFT_TRY(kind, collective::parse_kind(request.collective));
  WEFT_TRY(cluster, session::find_collective_cluster(request.topology));
  WEFT_TRY(network, synthesis::step_network(cluster.topology));
  synthesis::StepClock clock;
  clock.stop = request.interrupted;
  if (seconds)
    clock.end = std::chrono::steady_clock::now() + std::chrono::microseconds(std::llround(*seconds * 1e6));
  return request.pareto ? answer_frontier(request, network, kind, clock)
                        : answer_one(request, network, kind, clock);
}

}  // namespace

session::Reply run(const SynthesizeSteps& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
