#include "weft/program/tasks/next_values.h"

#include <algorithm>

#include "weft/program/tasks/grouping.h"
#include "weft/program/tasks/share.h"

namespace weft::program {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

struct Use {
  std::uint32_t writer = kNobody;  // the only one
  bool written_twice = false;
  std::uint32_t last_read = 0;  // by a unit, counted from 1; 0: never
};

std::vector<Use> uses_of(const Program& program) {
  std::vector<Use> uses(program.buffers.size());
  for (std::uint32_t u = 0; u < program.units.size(); ++u) {
    for (const Place& place : program.units[u].writes) {
      Use& use = uses[place.buffer.value];
      use.written_twice |= use.writer != kNobody;
      use.writer = u;
    }
    for (const Place& place : program.units[u].reads)
      uses[place.buffer.value].last_read = std::max(uses[place.buffer.value].last_read, u + 1);
  }
  return uses;
}

bool fills(const Program& program, const Place& place) {
  return is_plain(place) && place.offset == 0 && extent(place).end == program.buffer(place.buffer).bytes;
}

// Whether a unit that reads the old value may write the new one over it: elementwise, as optimizers
// do and loops that select between old and new.
bool renews(const Program& program, const Unit& unit, const Place& next, const Place& source) {
  if (const auto* const loop = std::get_if<RowLoop>(&unit.kernel))
    return may_write_over(*loop, source.buffer, next.buffer);
  const auto* const call = std::get_if<OperatorCall>(&unit.kernel);
  if (call == nullptr || !is_optimizer(program.graph->view(call->node).op())) return false;
  for (std::size_t k = 0; k < call->results.size(); ++k) {
    const std::size_t renewed = k == 0 ? 0 : k + 1;  // operand 1 is the gradient and is not updated
    if (call->results[k].buffer != next.buffer) continue;
    return std::ranges::count(call->operands, source.buffer, &Place::buffer) == 1 &&
           call->operands[renewed].buffer == source.buffer;
  }
  return false;
}

// Whether the unit copies a value that could be computed directly in the copy's target.
bool is_needless_copy(const Program& program, const std::vector<Use>& uses, std::uint32_t at) {
  const auto* const copy = std::get_if<Copy>(&program.units[at].kernel);
  if (copy == nullptr) return false;
  const BufferRole role = program.buffer(copy->to.buffer).role;
  if ((role != BufferRole::parameter && role != BufferRole::state) ||
      program.buffer(copy->from.buffer).role != BufferRole::temporary)
    return false;
  if (copy->from.dtype != copy->to.dtype || !fills(program, copy->from) || !fills(program, copy->to) ||
      program.buffer(copy->from.buffer).bytes != program.buffer(copy->to.buffer).bytes)
    return false;
  const Use &next = uses[copy->from.buffer.value], &source = uses[copy->to.buffer.value];
  if (next.writer == kNobody || next.written_twice || source.written_twice) return false;
  const Unit& maker = program.units[next.writer];
  // A skipped unit would leave the target unchanged, contrary to the plan, and an exchange may
  // write at any time.
  if (maker.unless || std::holds_alternative<Exchange>(maker.kernel)) return false;
  if (source.last_read > next.writer + 1) return false;
  return source.last_read <= next.writer || renews(program, maker, copy->from, copy->to);
}

}  // namespace

void write_next_values(Program& program) {
  const std::vector<Use> uses = uses_of(program);
  std::vector<BufferId> home(program.buffers.size());
  for (std::size_t b = 0; b < home.size(); ++b) home[b] = BufferId(b);
  std::vector<bool> is_needless(program.units.size());
  for (std::uint32_t u = 0; u < program.units.size(); ++u) {
    if (!is_needless_copy(program, uses, u)) continue;
    const auto& copy = std::get<Copy>(program.units[u].kernel);
    // If a value is the next value of two sources, it is computed in one of them.
    if (home[copy.from.buffer.value] != copy.from.buffer) continue;
    home[copy.from.buffer.value] = copy.to.buffer;
    is_needless[u] = true;
  }
  std::vector<Unit> kept;
  kept.reserve(program.units.size());
  for (std::size_t u = 0; u < program.units.size(); ++u)
    if (!is_needless[u]) kept.push_back(std::move(program.units[u]));
  program.units = std::move(kept);
  for_each_buffer_id(program, [&](BufferId& id) { id = home[id.value]; });
}

}  // namespace weft::program
