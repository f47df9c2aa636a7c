#include "weft/session/collective_price.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/collective/claims.h"
#include "weft/collective/library.h"
#include "weft/session/collective_measured.h"
#include "weft/session/collective_source.h"
#include "weft/sim/run_parameters.h"

namespace weft::session {
namespace {

// What people see: the reference without what the cluster decided.
std::string label(const std::string& reference, collective::Protocol protocol, std::int32_t instances) {
  const std::string times = instances > 1 ? fmt::format(" x{}", instances) : "";
  return fmt::format("{}{} {}", reference, times, collective::name(protocol));
}

search::CollectiveFacts facts_of(const collective::Moves& moves, const collective::Program& program,
                                 std::int32_t slots) {
  const collective::Measure measured = collective::measure(moves);
  search::CollectiveFacts facts;
  facts.steps = static_cast<double>(measured.steps);
  facts.wire =
      static_cast<double>(measured.wire) / static_cast<double>(collective::loop_chunks(moves.collective));
  facts.slots = slots;
  facts.channels = program.channels;
  facts.protocol = program.protocol;
  return facts;
}

collective::Placement first_placement(collective::Placement placement) {
  return placement == collective::Placement::either ? collective::Placement::in_place : placement;
}

}  // namespace

Result<PricedProgram> prepare(const std::string& reference, const CollectiveCluster& cluster,
                              collective::Protocol protocol, std::int32_t instances) {
  WEFT_TRY(named, find_named_algorithm(reference));
  PricedProgram priced;
  std::optional<collective::Program> program;
  if (named) {
    fill_parameters(named->algorithm, cluster, named->arguments);
    WEFT_TRY(moves, collective::trace(named->algorithm, named->arguments, collective::shipped_algorithms()));
    collective::CompileOptions options;
    options.protocol = protocol;
    options.instances = instances;
    WEFT_TRY(compiled, collective::compile(moves, options));
    priced.facts = facts_of(moves, compiled, collective::fifo_slots(protocol));
    priced.name = label(reference, protocol, instances);
    program = std::move(compiled);
  } else {
    WEFT_TRY(source, read_collective(reference));
    priced.name = reference;
    if (source.one_sided) {
      // A plan that puts and signals is priced as it is.
      if (const auto report = collective::check(*source.one_sided); report.finding)
        return user_error(fmt::format("{} is wrong: {}", reference, report.finding->text),
                          "weft collective check says more");
      priced.actions = collective::to_actions(*source.one_sided, collective::Grain::step);
      priced.facts.protocol = source.one_sided->protocol;
    } else {
      WEFT_TRY(read, to_program(source));
      const collective::Report report = collective::check(read);
      if (report.finding)
        return user_error(
            fmt::format("{} is wrong: {}: {}", reference, print(report.finding->where), report.finding->text),
            "weft collective check says more");
      priced.facts.slots = report.slots;
      priced.facts.channels = read.channels;
      priced.facts.protocol = read.protocol;
      program = std::move(read);
    }
  }
  if (program)
    priced.actions =
        collective::to_actions(*program, first_placement(program->placement), collective::Grain::step);
  priced.collective = priced.actions.collective;
  priced.parameters = sim::run_parameters(priced.facts.protocol);
  if (priced.collective.ranks > cluster.topology.devices)
    return user_error(
        fmt::format("{} ranks do not fit on {} devices", priced.collective.ranks, cluster.topology.devices),
        "give the algorithm fewer ranks, or a larger cluster");
  return priced;
}

Status calibrate(const std::string& path, PricedProgram& program, CollectiveCluster& cluster) {
  WEFT_TRY(points, read_measurements(path));
  const std::array ends = {points.front(), points.back()};
  const std::array sizes = {ends[0].bytes, ends[1].bytes};
  if (points.size() < 2)
    return user_error(fmt::format("{} has one size", path), "calibrating needs two sizes at least");
  // Rates change the small message's time a little and the launch the large one's: three rounds settle both.
  for (int round = 0; round < 3; ++round) {
    WEFT_TRY(rows, price(program, cluster, sizes));
    const double simulated = rows[1].seconds - rows[0].seconds, measured = ends[1].seconds - ends[0].seconds;
    if (simulated > 0 && measured > 0)
      for (cluster::DirectedLink& link : cluster.topology.links)
        link.bytes_per_second *= simulated / measured;
    program.parameters.launch_seconds =
        std::max(0.0, program.parameters.launch_seconds + ends[0].seconds - rows[0].seconds);
  }
  return {};
}

Result<std::vector<sim::CostRow>> price(const PricedProgram& program, const CollectiveCluster& cluster,
                                        std::span<const std::int64_t> sizes) {
  return sim::cost_table(program.actions, cluster.topology, sizes,
                         sim::run_parameters(program.facts.protocol));
}

}  // namespace weft::session
