#include "weft/planner/exchange/collective_estimate.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/collectives/algorithm/claims.h"
#include "weft/formats/collective_source.h"
#include "weft/planner/exchange/collective_measured.h"
#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::exchange {
namespace {

// The displayed name: the reference without the parameters that the cluster determines.
std::string label(const std::string& reference, collective::Protocol protocol, std::int32_t instances) {
  const std::string times = instances > 1 ? fmt::format(" x{}", instances) : "";
  return fmt::format("{}{} {}", reference, times, collective::name(protocol));
}

CollectiveFacts facts_of(const collective::Moves& moves) {
  const collective::Measure measured = collective::measure(moves);
  CollectiveFacts facts;
  facts.steps = static_cast<double>(measured.steps);
  facts.wire =
      static_cast<double>(measured.wire) / static_cast<double>(collective::loop_chunks(moves.collective));
  return facts;
}

}  // namespace

Result<EstimatedProgram> prepare(const std::string& reference, const sim::CollectiveCluster& cluster,
                                 collective::Protocol protocol, std::int32_t instances) {
  WEFT_TRY(source, formats::read_collective(reference, {.complete =
                                                            [&](const auto& algorithm, auto& arguments) {
                                                              sim::fill_parameters(algorithm, cluster,
                                                                                   instances, arguments);
                                                            },
                                                        .ranks = cluster.topology.devices}));
  EstimatedProgram priced;
  priced.name = reference;
  if (source.one_sided) {
    // One-sided plans (put and signal) are estimated without compilation.
    WEFT_TRY_STATUS(formats::expect_correct(collective::check(*source.one_sided), reference + " is"));
    priced.actions = collective::to_actions(*source.one_sided, collective::Grain::step);
    priced.facts.protocol = source.one_sided->protocol;
  } else {
    collective::CompileOptions options;
    options.protocol = protocol;
    options.instances = instances;
    WEFT_TRY(program, formats::to_program(source, options));
    if (source.moves) {
      priced.name = label(reference, protocol, instances);
      priced.facts = facts_of(*source.moves);
      priced.facts.slots = collective::fifo_slots(protocol);
    } else {
      const collective::Report report = collective::check(program);
      WEFT_TRY_STATUS(formats::expect_correct(report, reference + " is"));
      priced.facts.slots = report.slots;
    }
    priced.facts.channels = program.channels;
    priced.facts.protocol = program.protocol;
    priced.actions =
        collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  }
  priced.collective = priced.actions.collective;
  priced.parameters = sim::run_parameters(priced.facts.protocol);
  if (priced.collective.ranks > cluster.topology.devices)
    return user_error(
        fmt::format("{} ranks do not fit on {} devices", priced.collective.ranks, cluster.topology.devices),
        "use fewer ranks or a larger cluster");
  return priced;
}

Result<EstimatedProgram> prepare(const collective::Program& program, const sim::CollectiveCluster& cluster) {
  EstimatedProgram priced;
  priced.name = program.name;
  priced.facts.slots = collective::fifo_slots(program.protocol);
  priced.facts.channels = program.channels;
  priced.facts.protocol = program.protocol;
  priced.actions =
      collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  priced.collective = priced.actions.collective;
  priced.parameters = sim::run_parameters(program.protocol);
  if (priced.collective.ranks != cluster.topology.devices)
    return user_error(fmt::format("a program of {} ranks on {} devices", priced.collective.ranks,
                                  cluster.topology.devices));
  return priced;
}

Status calibrate(const std::string& path, EstimatedProgram& program, sim::CollectiveCluster& cluster) {
  WEFT_TRY(points, read_measurements(path));
  const std::array ends = {points.front(), points.back()};
  const std::array sizes = {ends[0].bytes, ends[1].bytes};
  if (points.size() < 2)
    return user_error(fmt::format("{} has one size", path), "calibration needs at least two sizes");
  // Rates slightly affect the small message, and launch time the large one: three rounds converge.
  for (int round = 0; round < 3; ++round) {
    WEFT_TRY(rows, price_at(program, cluster, sizes));
    const double simulated = rows[1].seconds - rows[0].seconds, measured = ends[1].seconds - ends[0].seconds;
    if (simulated > 0 && measured > 0)
      for (cluster::DirectedLink& link : cluster.topology.links)
        link.bytes_per_second *= simulated / measured;
    program.parameters.launch_seconds =
        std::max(0.0, program.parameters.launch_seconds + ends[0].seconds - rows[0].seconds);
  }
  return {};
}

Result<std::vector<sim::CostRow>> price_at(const EstimatedProgram& program,
                                           const sim::CollectiveCluster& cluster,
                                           std::span<const std::int64_t> sizes) {
  return sim::cost_table(program.actions, cluster.topology, sizes, program.parameters);
}

}  // namespace weft::exchange
