#include "weft/program/tasks/fetch.h"

#include <algorithm>
#include <map>

#include "weft/program/tasks/cut.h"
#include "weft/program/tasks/share.h"

namespace weft::program {
namespace {

bool reads_again(const Program& program, const Unit& unit) {
  if (std::holds_alternative<MatrixProduct>(unit.kernel)) return true;
  const auto* const call = std::get_if<OperatorCall>(&unit.kernel);
  if (call == nullptr) return false;
  const plan::NodeView node = program.graph->view(call->node);
  return node.op().work(node).multiply_adds > 0;
}

// A whole buffer as contiguous elements.
Place all_of(const Program& program, BufferId buffer, plan::DType dtype) {
  Place place{buffer, 0, dtype, {}};
  place.axes.push_back({Symbol(), program.buffer(buffer).bytes / plan::size_in_bytes(dtype), 1});
  return place;
}

void rename_reads(Unit& unit, const std::map<BufferId, BufferId>& fetched) {
  const auto rename = [&](BufferId& buffer) {
    if (const auto found = fetched.find(buffer); found != fetched.end()) buffer = found->second;
  };
  for (Place& place : unit.reads) rename(place.buffer);
  if (auto* const product = std::get_if<MatrixProduct>(&unit.kernel)) {
    rename(product->a.buffer);
    rename(product->b.buffer);
  } else if (auto* const call = std::get_if<OperatorCall>(&unit.kernel)) {
    for (Place& place : call->operands) rename(place.buffer);
  }
}

}  // namespace

void fetch_spilled(Program& program) {
  std::vector<Unit> units;
  for (Unit& unit : program.units) {
    std::map<BufferId, BufferId> fetched;
    if (reads_again(program, unit))
      for (const Place& place : unit.reads) {
        const BufferId from = place.buffer;
        const bool is_written = std::ranges::count(unit.writes, from, &Place::buffer) > 0;
        if (!program.buffer(from).spilled || is_written || fetched.contains(from)) continue;
        const BufferId to(program.buffers.size());
        Buffer buffer;
        buffer.bytes = program.buffer(from).bytes;
        program.buffers.push_back(std::move(buffer));
        fetched.emplace(from, to);
        Unit copy;
        copy.kernel = Copy{all_of(program, from, place.dtype), all_of(program, to, place.dtype)};
        copy.reads = {all_of(program, from, place.dtype)};
        copy.writes = {all_of(program, to, place.dtype)};
        copy.turn = unit.turn;
        units.push_back(std::move(copy));
      }
    rename_reads(unit, fetched);
    units.push_back(std::move(unit));
  }
  program.units = std::move(units);
  program.tasks.clear();
  find_lifetimes(program);
  make_whole_tasks(program);
}

}  // namespace weft::program
