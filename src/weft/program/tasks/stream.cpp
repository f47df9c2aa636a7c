#include "weft/program/tasks/stream.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::program {

void assign_streams(Program& program) {
  program.streams.resize(1);
  for (Unit& unit : program.units) {
    unit.stream = 0;
    const auto* const exchange = std::get_if<Exchange>(&unit.kernel);
    if (exchange == nullptr) continue;
    std::string name = exchange->axis;
    if (exchange->algorithm.priority == collective::Priority::low) name += " low";
    if (is_message(exchange->kind)) name += fmt::format(" {}", plan::name(exchange->kind));
    const auto found = std::find(program.streams.begin() + 1, program.streams.end(), name);
    unit.stream = static_cast<std::uint32_t>(found - program.streams.begin());
    if (found == program.streams.end()) program.streams.push_back(std::move(name));
  }
}

std::vector<std::vector<std::uint32_t>> tasks_by_stream(const Program& program) {
  std::vector<std::vector<std::uint32_t>> streams(program.streams.size());
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
    streams[program.units[program.tasks[t].unit].stream].push_back(t);
  return streams;
}

}  // namespace weft::program
