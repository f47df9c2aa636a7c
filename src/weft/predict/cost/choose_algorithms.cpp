#include "weft/predict/cost/choose_algorithms.h"

#include <fmt/format.h>

namespace weft::cost {
namespace {

using program::Exchange;

std::vector<Exchange*> exchanges_of(program::Program& program) {
  std::vector<Exchange*> found;
  for (program::Unit& unit : program.units)
    if (auto* const exchange = std::get_if<Exchange>(&unit.kernel)) found.push_back(exchange);
  return found;
}

}  // namespace

Result<std::vector<program::Program>> choose_algorithms(std::vector<program::Program> programs,
                                                        const plan::Mesh& mesh, const StepCosts& costs) {
  std::vector<std::vector<Exchange*>> sides;  // one list per program
  for (program::Program& program : programs) {
    sides.push_back(exchanges_of(program));
    if (sides.back().size() != sides.front().size())
      return user_error(fmt::format("the ranks do not run the same collectives: {} against {}",
                                    sides.front().size(), sides.back().size()));
  }
  for (std::size_t i = 0; !sides.empty() && i < sides.front().size(); ++i) {
    const Exchange& first = *sides.front()[i];
    const Exchange* most = nullptr;
    for (const std::vector<Exchange*>& side : sides) {
      if (side[i]->kind != first.kind || side[i]->axis != first.axis)
        return user_error(
            fmt::format("the ranks do not run the same collectives: number {} is {} over {} and {} over {}",
                        i, name(first.kind), first.axis, name(side[i]->kind), side[i]->axis));
      if (most == nullptr || message_bytes(*side[i]) > message_bytes(*most)) most = side[i];
    }
    const int axis = mesh.find(most->axis);
    if (axis < 0)
      return user_error(
          fmt::format("the programs communicate along axis {}, which the mesh lacks", most->axis),
          fmt::format("it has {}", plan::print(mesh)));
    if (!most->algorithm.name.empty() || mesh.axes[static_cast<std::size_t>(axis)].ranks < 2) continue;
    const ExchangeCost price = costs.exchange(*most, static_cast<std::size_t>(axis), message_bytes(*most));
    for (const std::vector<Exchange*>& side : sides) {
      side[i]->algorithm.name = price.algorithm;
      side[i]->algorithm.protocol = price.protocol;
    }
  }
  return programs;
}

std::vector<program::ChosenAlgorithm> algorithms_of(const program::Program& program) {
  std::vector<program::ChosenAlgorithm> found;
  for (const program::Unit& unit : program.units)
    if (const auto* const exchange = std::get_if<Exchange>(&unit.kernel))
      found.push_back(exchange->algorithm);
  return found;
}

Result<program::Program> with_algorithms(program::Program program,
                                         std::span<const program::ChosenAlgorithm> algorithms) {
  const std::vector<Exchange*> exchanges = exchanges_of(program);
  if (exchanges.size() != algorithms.size())
    return user_error(fmt::format("algorithms are chosen for {} collectives, the program has {}",
                                  algorithms.size(), exchanges.size()));
  for (std::size_t i = 0; i < exchanges.size(); ++i) exchanges[i]->algorithm = algorithms[i];
  return program;
}

}  // namespace weft::cost
