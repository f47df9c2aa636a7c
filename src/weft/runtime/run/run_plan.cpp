#include "weft/runtime/run/run_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "weft/device/element_access.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/feed.h"

namespace weft::run {
namespace {

using program::Port;

Result<std::unique_ptr<exec::Rank>> start(const plan::Graph& graph, const PlanRunOptions& options) {
  WEFT_TRY(program,
           program::compile(std::make_shared<plan::Graph>(graph.clone()), {.workers = options.workers}));
  return exec::Rank::start(std::move(program),
                           {.workers = options.workers, .memory_limit = options.memory_limit});
}

// Calls visit(port) for every input, parameter and state.
template <class Rank, class Visit>
Status for_sources(Rank& rank, Visit visit) {
  const program::Program& program = rank.program();
  for (const auto* ports : {&program.inputs, &program.parameters, &program.states})
    for (const Port& port : *ports) WEFT_TRY_STATUS(visit(port));
  return {};
}

Result<double> timed_step(exec::Rank& rank) {
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY_STATUS(rank.step());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Status make_up(exec::Rank& rank, std::uint64_t seed) {
  WEFT_TRY_STATUS(write_initial(rank, seed));
  made_up_feed(*rank.program().graph, seed)->fill(rank, 0);
  return {};
}

const Port* find(std::span<const Port> ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  return found == ports.end() ? nullptr : &*found;
}

bool same_type(const Port& a, const Port& b) {
  return a.place.dtype == b.place.dtype && shape_of(a.place) == shape_of(b.place);
}

std::string print_type(const program::Program& program, const Port& port) {
  return plan::print(program.graph->type(port.value), program.graph->symbols());
}

Result<OutputAgreement> compare_outputs(const exec::Rank& a, const Port& of_a, const exec::Rank& b,
                                        const Port& of_b) {
  WEFT_TRY(in_a, a.read(of_a));
  WEFT_TRY(in_b, b.read(of_b));
  OutputAgreement found{of_a.name};
  for (std::int64_t i = 0; i < of_a.place.elements(); ++i) {
    const double x = device::load_element(of_a.place.dtype, in_a.data(), i);
    const double y = device::load_element(of_b.place.dtype, in_b.data(), i);
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(x)) found.largest = std::max(found.largest, std::abs(x));
    } else if (std::isfinite(x) && std::isfinite(y)) {
      found.largest = std::max(found.largest, std::abs(x));
      found.difference = std::max(found.difference, std::abs(x - y));
    } else {
      found.difference = std::numeric_limits<double>::infinity();
    }
  }
  return found;
}

}  // namespace

Result<PlanRun> run_plan(const plan::Graph& graph, const Tensors& given, const PlanRunOptions& options) {
  WEFT_TRY(rank, start(graph, options));
  WEFT_TRY_STATUS(make_up(*rank, options.seed));
  std::size_t used = 0;
  WEFT_TRY_STATUS(for_sources(*rank, [&](const Port& port) -> Status {
    const auto found = given.find(port.name);
    if (found == given.end()) return {};
    const Tensor& tensor = found->second;
    const auto bytes = static_cast<std::size_t>(port.place.elements() * size_in_bytes(port.place.dtype));
    if (tensor.dtype != port.place.dtype || tensor.shape != shape_of(port.place) ||
        tensor.bytes.size() != bytes)
      return user_error(fmt::format("the value given for {} does not match {}", port.name,
                                    print_type(rank->program(), port)));
    ++used;
    return rank->write(port, tensor.bytes);
  }));
  if (used != given.size())
    for (const auto& [name, tensor] : given) {
      const program::Program& program = rank->program();
      if (!find(program.inputs, name) && !find(program.parameters, name) && !find(program.states, name))
        return user_error(fmt::format("{} has no source named {}", graph.name, name));
    }
  PlanRun run;
  WEFT_TRY(seconds, timed_step(*rank));
  run.seconds = seconds;
  for (const Port& port : rank->program().outputs) {
    WEFT_TRY(held, rank->read(port));
    const std::span<const std::byte> bytes = held.bytes();
    run.outputs[port.name] = {port.place.dtype, shape_of(port.place), {bytes.begin(), bytes.end()}};
  }
  return run;
}

double Agreement::largest() const {
  double most = 0;
  for (const OutputAgreement& output : outputs) most = std::max(most, output.relative());
  return most;
}

Result<Agreement> compare_runs(const plan::Graph& a, const plan::Graph& b, const PlanRunOptions& options) {
  WEFT_TRY(first, start(a, options));
  WEFT_TRY(second, start(b, options));
  const program::Program &of_a = first->program(), &of_b = second->program();
  WEFT_TRY_STATUS(make_up(*first, options.seed));
  WEFT_TRY_STATUS(for_sources(*second, [&](const Port& port) -> Status {
    const Port* same = nullptr;
    for (const auto* ports : {&of_a.inputs, &of_a.parameters, &of_a.states})
      if (same == nullptr) same = find(*ports, port.name);
    if (same == nullptr || !same_type(*same, port))
      return user_error(fmt::format("{} reads {} of {}, {} has {}", b.name, port.name, print_type(of_b, port),
                                    a.name, same == nullptr ? "none" : print_type(of_a, *same)));
    WEFT_TRY(held, first->read(*same));
    return second->write(port, held.bytes());
  }));

  Agreement agreement;
  WEFT_TRY(seconds_a, timed_step(*first));
  WEFT_TRY(seconds_b, timed_step(*second));
  agreement.seconds_a = seconds_a;
  agreement.seconds_b = seconds_b;
  for (const Port& output : of_a.outputs) {
    const Port* same = find(of_b.outputs, output.name);
    if (same == nullptr || !same_type(output, *same))
      return user_error(fmt::format("{} gives {} of {}, {} gives {}", a.name, output.name,
                                    print_type(of_a, output), b.name,
                                    same == nullptr ? "none" : print_type(of_b, *same)));
    WEFT_TRY(found, compare_outputs(*first, output, *second, *same));
    agreement.outputs.push_back(std::move(found));
  }
  return agreement;
}

}  // namespace weft::run
