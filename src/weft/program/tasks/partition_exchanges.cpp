#include "weft/program/tasks/partition_exchanges.h"

#include <algorithm>
#include <cstdlib>

#include "weft/plan/ops/local_exchange.h"

namespace weft::program {
namespace {

std::int64_t calls_of(const Program& program, const Unit& unit) {
  const auto* const exchange = std::get_if<Exchange>(&unit.kernel);
  if (exchange == nullptr || exchange->kind != Exchange::Kind::all_reduce) return 1;
  return ops::read_local_exchange(program.graph->view(exchange->node)).calls;
}

// Elements [begin, end) of a dense place; an empty place if there are none.
Place stretch_of(const Place& place, std::int64_t begin, std::int64_t end) {
  if (!place.buffer.valid() || begin == end) return {};
  Place part{place.buffer, place.offset + begin, place.dtype, {}};
  part.axes.push_back({Symbol(), end - begin, 1});
  return part;
}

std::vector<Unit> parts_of_unit(const Unit& unit, std::int64_t calls) {
  constexpr std::int64_t kLine = 64;
  const auto& whole = std::get<Exchange>(unit.kernel);
  const std::int64_t elements = whole.counts.at(0);
  std::vector<std::int64_t> tensors;  // where tensors end
  if (whole.operand.buffer.valid())
    for (const Place& place : unit.reads)
      tensors.push_back(place.offset - whole.operand.offset + place.elements());
  std::vector<Unit> parts;
  std::int64_t begin = 0;
  for (const std::int64_t end :
       part_ends(elements, kLine / plan::size_in_bytes(whole.dtype), tensors, calls)) {
    Exchange part = whole;
    part.operand = stretch_of(whole.operand, begin, end);
    part.result = stretch_of(whole.result, begin, end);
    part.counts = {end - begin};
    Unit made = unit;
    made.reads.clear();
    made.writes.clear();
    if (part.operand.buffer.valid()) made.reads = {part.operand};
    if (part.result.buffer.valid()) made.writes = {part.result};
    made.kernel = std::move(part);
    parts.push_back(std::move(made));
    begin = end;
  }
  return parts;
}

}  // namespace

std::vector<std::int64_t> part_ends(std::int64_t elements, std::int64_t line,
                                    std::span<const std::int64_t> ends, std::int64_t parts) {
  // Members of a bucket begin on cache lines: the end of one stands for the start of the next one's
  // line.
  const auto on_line = [&](std::int64_t at) { return std::min((at + line - 1) / line * line, elements); };
  const std::int64_t nearby = std::max(elements / parts / 8 - line, std::int64_t{0});
  std::vector<std::int64_t> found;
  for (std::int64_t p = 1; p < parts; ++p) {
    const auto even = static_cast<std::int64_t>(static_cast<double>(elements) / static_cast<double>(parts) *
                                                static_cast<double>(p));
    const auto away = [&](std::int64_t tensor) { return std::abs(on_line(tensor) - even); };
    const auto nearest = std::ranges::min_element(ends, {}, away);
    const bool is_near = nearest != ends.end() && away(*nearest) <= nearby;
    found.push_back(std::max(on_line(is_near ? *nearest : even), found.empty() ? 0 : found.back()));
  }
  found.push_back(elements);
  return found;
}

bool partition_exchanges(Program& program) {
  std::vector<Unit> units;
  units.reserve(program.units.size());
  for (Unit& unit : program.units) {
    const std::int64_t calls = calls_of(program, unit);
    if (calls == 1) {
      units.push_back(std::move(unit));
      continue;
    }
    for (Unit& part : parts_of_unit(unit, calls)) units.push_back(std::move(part));
  }
  const bool any = units.size() != program.units.size();
  program.units = std::move(units);
  return any;
}

}  // namespace weft::program
