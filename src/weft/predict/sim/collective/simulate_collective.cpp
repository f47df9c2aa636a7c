#include "weft/predict/sim/collective/simulate_collective.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/predict/sim/collective/collective_run.h"

namespace weft::sim {
namespace {

Status check_parameters(const RunParameters& p) {
  const bool positive = p.slots > 0 && p.slot_bytes >= 1 && p.copy_bytes_per_second > 0 &&
                        p.reduce_bytes_per_second > 0 && p.efficiency > 0 && p.packet_efficiency > 0;
  const bool sane = p.launch_seconds >= 0 && p.step_seconds >= 0 && p.message_seconds >= 0 &&
                    p.max_slices >= 8 && p.max_slices <= 1 << 20;
  if (positive && sane) return {};
  return user_error(
      "runtime parameters: expected positive sizes and rates, times of at least 0, and 8 slices or more",
      "use at most 1048576 slices and slots of at least one byte");
}

// Limits on the simulation's work, checked before it starts. Packets are simulated chunk by chunk
// and transfers slot by slot, and a malicious program has billions of either.
constexpr std::int64_t kMostPackets = 1 << 24, kMostTransfers = 1 << 28;

Status check_work(const collective::Actions& actions, const RunParameters& parameters, double slice_bytes,
                  std::int64_t slices) {
  std::int64_t packets = 0, transfers = 0;
  for (const collective::Action& action : actions.actions) {
    transfers += messages_of(action, parameters, slice_bytes) * slices;
    for (std::int32_t i = 0; i < action.sources + action.targets; ++i)
      if (actions.cells[static_cast<std::size_t>(action.first_cell + i)].packet) packets += action.count;
    if (packets > kMostPackets || transfers > kMostTransfers)
      return user_error("the program is too long to simulate",
                        fmt::format("at most {} packets and {} transfers", kMostPackets, kMostTransfers));
  }
  return {};
}

}  // namespace

Result<CollectiveTime> simulate(const collective::Actions& actions, const cluster::Topology& topology,
                                std::int64_t message_bytes, const RunParameters& parameters,
                                Timeline timeline) {
  WEFT_TRY_STATUS(check_parameters(parameters));
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
  if (message_bytes < 0 || message_bytes > kMostBytes)
    return user_error(fmt::format("expected a message of 0 to 2^60 bytes, found {}", message_bytes));
  const bool silent = actions.collective.kind == collective::Kind::barrier;
  const double chunk =
      silent ? 0 : static_cast<double>(message_bytes) / static_cast<double>(loop_chunks(actions.collective));

  CollectiveTime answer;
  // Only connections have slots to fill.
  if (!actions.connections.empty())
    answer.slices =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(chunk / parameters.slot_bytes)));
  answer.simulated_slices = std::min<std::int64_t>(answer.slices, parameters.max_slices);

  const double slice = chunk / static_cast<double>(answer.slices);
  WEFT_TRY_STATUS(check_work(actions, parameters, slice, answer.simulated_slices));

  Network network(topology);
  WEFT_TRY(ways, find_ways(actions, topology, network));
  CollectiveRun run(actions, ways, network, parameters, slice,
                    static_cast<std::int32_t>(answer.simulated_slices), timeline);
  run.run();
  if (std::string why = run.standstill(); !why.empty())
    return user_error(fmt::format("the program deadlocks: {}", why),
                      "run weft collective check: it reports whether more slots fix it");

  const std::vector<double>& ends = run.slice_ends();
  const double walked = ends.back();
  double seconds = walked;
  if (answer.slices > answer.simulated_slices) {
    const std::size_t quarter = ends.size() / 4, three = 3 * ends.size() / 4;
    const double pace = (ends[three - 1] - ends[quarter - 1]) / static_cast<double>(three - quarter);
    seconds += pace * static_cast<double>(answer.slices - answer.simulated_slices);
  }
  answer.seconds = parameters.launch_seconds + seconds;
  answer.events = run.events();
  answer.link_busy.reserve(topology.links.size());
  for (std::size_t l = 0; l < topology.links.size(); ++l)
    answer.link_busy.push_back(walked > 0 ? network.bytes_carried(static_cast<std::int32_t>(l)) /
                                                (topology.links[l].bytes_per_second * walked)
                                          : 0);
  answer.timeline = run.take_timeline();
  std::stable_sort(answer.timeline.begin(), answer.timeline.end(),
                   [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  return answer;
}

}  // namespace weft::sim
