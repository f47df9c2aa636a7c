#include "weft/app/command/synthesize_time.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/program_file.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/sketched.h"
#include "weft/app/session/synthesized.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/time_search.h"
#include "weft/collectives/synthesis/without.h"
#include "weft/planner/settings/duration.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::command {
namespace {

using Clock = std::chrono::steady_clock;

// Tries all protocols, since the best one depends on the size.
Result<session::Synthesized> best_of_protocols(const collective::Moves& moves,
                                               const cluster::Topology& topology, std::int64_t bytes) {
  WEFT_TRY(made, session::compile_for(moves, topology, bytes));
  for (const collective::Protocol protocol : {collective::Protocol::ll, collective::Protocol::ll128})
    if (auto other = session::compile_for(moves, topology, bytes, {}, protocol);
        other.ok() && other->attained > made.attained)
      made = std::move(*other);
  return made;
}

Result<std::string> answer_in_time(const SynthesizeTime& request) {
  if (request.size.empty())
    return user_error("the fastest program depends on the message size", "add --size 1MB");
  WEFT_TRY(sizes, sim::parse_sizes(request.size));
  if (sizes.size() != 1) return user_error(fmt::format("expected one size, found {}", request.size));
  if (request.turns < 1) return user_error(fmt::format("turns must be at least 1: {}", request.turns));
  if (request.chunks < 0 || request.chunks > 64)
    return user_error(fmt::format("a block has 1 to 64 chunks: {}", request.chunks));
  synthesis::StepClock clock;
  clock.stop = request.interrupted;
  const Clock::time_point start = Clock::now();
  double grow_seconds = 10;  // time limit for the trees
  if (!request.time_limit.empty()) {
    const std::optional<double> seconds = planner::read_duration(request.time_limit);
    if (!seconds || !(*seconds > 0) || *seconds > 1e7)
      return user_error(fmt::format("expected a time limit, found {}", request.time_limit),
                        "for example: '10 s'");
    clock.end = start + std::chrono::microseconds(std::llround(*seconds * 1e6));
    grow_seconds = std::min(grow_seconds, *seconds);
  }
  WEFT_TRY(kind, collective::parse_kind(request.collective));
  std::int32_t chunks = 0;
  WEFT_TRY(topology, session::find_sketched(request.topology, request.sketch, chunks));
  if (request.chunks > 0) chunks = request.chunks;
  for (const std::string& lost : request.without) {
    WEFT_TRY(left, synthesis::without(topology, lost));
    topology = std::move(left);
  }
  WEFT_TRY(network, synthesis::step_network(topology));
  const auto bytes = static_cast<double>(sizes.front());
  synthesis::TimeEffort effort;
  effort.most_turns = request.turns;
  effort.seed = request.seed;
  // For collectives made of trees, cuts of the topology give a tighter bound than the network of
  // devices. For long messages trees finish first.
  const auto forest =
      synthesis::grow_forest(topology, kind, request.root, synthesis::Deadline::after(grow_seconds));
  if (forest.ok()) effort.forest = &*forest;
  effort.progress = [&](std::int32_t turns, double best, double bound) {
    if (!request.on_progress) return;
    explain::Progress now;
    now.model = std::string(collective::name(kind));
    now.step = turns;
    now.steps = request.turns;
    now.has_loss = false;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    now.search = explain::SearchProgress{best, bound, seconds};
    request.on_progress(now);
  };
  WEFT_TRY(found, synthesis::search_in_time(network, {kind, request.root, bytes, chunks}, effort, clock));
  if (forest.ok() && forest->optimum > 0)
    found.bound = std::max(found.bound, bytes / forest->optimum + *std::ranges::min_element(network.latency));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Result<session::Synthesized> best =
      found.tree_pieces > 0
          ? session::synthesize_program(topology, *forest, synthesis::Deadline::after(grow_seconds),
                                        sizes.front())
          : best_of_protocols(synthesis::time_moves(network, found), topology, sizes.front());
  if (!best.ok()) return std::move(best).error();
  const session::Synthesized& made = *best;
  const collective::Program& program = made.program;
  const double simulated = bytes / made.attained;
  if (!request.to.empty()) WEFT_TRY_STATUS(session::write_program(request.to, program));
  if (!request.plot.empty()) {
    WEFT_TRY(drawing, session::draw_program(program, topology, sizes.front()));
    WEFT_TRY_STATUS(write_file_atomically(request.plot, drawing));
  }

  if (request.format == session::Format::text) {
    std::string text = fmt::format("{} of {} on {}, {} ranks\n", collective::name(kind), print_bytes(bytes),
                                   topology.name, network.devices);
    text += fmt::format("finish     {} ({:.3f} GB/s), in chunks of {:.0f} bytes\n",
                        print_seconds(found.finish), bytes / found.finish / 1e9, found.chunk_bytes);
    text += fmt::format("bound      {}, {:.2f} % below\n", print_seconds(found.bound),
                        100 * (1 - found.bound / found.finish));
    text += fmt::format("simulated  {} as a program, with what messages cost besides\n",
                        print_seconds(simulated));
    text += fmt::format("{} turns in {}{}\n", found.turns, print_seconds(seconds),
                        found.stopped ? ", stopped" : "");
    if (!request.to.empty()) return text + fmt::format("{}: written, checked\n", request.to);
    return request.plot.empty() ? text + "\n" + collective::print(program) : text;
  }
  nlohmann::ordered_json json;
  json["collective"] = collective::name(kind);
  json["ranks"] = network.devices;
  json["bytes"] = sizes.front();
  json["finish"] = found.finish;
  json["bound"] = found.bound;
  json["gap"] = std::max(0.0, found.finish / found.bound - 1);
  json["bandwidth"] = bytes / found.finish / 1e9;
  json["unit"] = "GB/s";
  json["chunks"] = found.question.chunks;
  json["turns"] = found.turns;
  json["seconds"] = seconds;
  json["stopped"] = found.stopped;
  json["simulated"] = simulated;
  json["checked"] = true;
  json["program"] = request.to.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(request.to);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

session::Reply run(const SynthesizeTime& request) { return session::to_reply(answer_in_time(request)); }

}  // namespace weft::command
