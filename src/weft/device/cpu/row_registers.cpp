#include "weft/device/cpu/row_registers.h"

#include <algorithm>
#include <cmath>

#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::device::cpu {
namespace {

using plan::DType;
using program::RowInstruction;
using program::RowLoop;
using program::RowOperand;
using program::RowStep;

constexpr std::uint16_t kNone = RowInstruction::kNone;

Lane lane_of(const plan::Operator& op) {
  WEFT_CHECK(ops::is_pointwise(op), op.name());
  return static_cast<Lane>(ops::pointwise_place(op));
}

void prepare_steps(RowLoop& loop, RowRegisters& placed) {
  placed.registers.resize(loop.is_run.size());
  std::vector<const RowInstruction*> made(loop.is_run.size());
  for (const RowInstruction& instruction : loop.code) {
    PlacedStep step{instruction};
    if (instruction.result != kNone) made[instruction.result] = &instruction;
    if (instruction.step == RowStep::compute && instruction.op != &ops::cast()) {
      step.lane = lane_of(*instruction.op);
      // Division by a power of two equals multiplication by its reciprocal bit for bit, and that is
      // faster.
      if (step.lane == Lane::div) {
        const RowInstruction* divisor = made[instruction.operands[1]];
        int exponent = 0;
        if (divisor != nullptr && divisor->step == RowStep::number && divisor->number != 0 &&
            std::abs(std::frexp(divisor->number, &exponent)) == 0.5 && std::abs(exponent) < 100) {
          RowInstruction reciprocal{.step = RowStep::number};
          reciprocal.number = 1 / divisor->number;
          reciprocal.result = static_cast<std::uint16_t>(placed.registers.size());
          placed.registers.emplace_back();
          loop.is_run.push_back(false);
          placed.steps.push_back({reciprocal});
          step.instruction.operands[1] = reciprocal.result;
          step.lane = Lane::mul;
        }
      }
    }
    placed.steps.push_back(std::move(step));
  }
}

// Assigns memory to registers that are loaded or stored unchanged, tables to positions, and to the
// rest as few slots as their live ranges allow.
void assign_registers(const RowLoop& loop, RowRegisters& all) {
  std::vector<std::size_t> last(all.registers.size(), 0);
  for (std::size_t i = 0; i < all.steps.size(); ++i)
    for (const std::uint16_t operand : all.steps[i].instruction.operands)
      if (operand != kNone) last[operand] = i;
  std::vector<bool> placed(all.registers.size());
  for (PlacedStep& step : all.steps) {
    const RowInstruction& instruction = step.instruction;
    if (instruction.step == RowStep::load) {
      const RowOperand& operand = loop.operands[instruction.memory];
      if (operand.place.dtype != DType::f32 || operand.along > 1) continue;
      all.registers[instruction.result].home = RowRegister::Home::memory;
      all.registers[instruction.result].operand = instruction.memory;
      placed[instruction.result] = step.skip = true;
    } else if (instruction.step == RowStep::position && instruction.loop < 0) {
      RowRegister& target = all.registers[instruction.result];
      target.home = RowRegister::Home::table;
      target.table.resize(static_cast<std::size_t>(loop.length));
      for (std::int64_t i = 0; i < loop.length; ++i)
        target.table[static_cast<std::size_t>(i)] =
            static_cast<float>(instruction.first + i / instruction.repeat % instruction.size);
      placed[instruction.result] = step.skip = true;
    }
  }
  for (PlacedStep& step : all.steps) {
    const RowInstruction& instruction = step.instruction;
    if (instruction.step != RowStep::store) continue;
    const std::uint16_t stored = instruction.operands[0];
    const RowOperand& operand = loop.operands[instruction.memory];
    if (!loop.is_run[stored] || placed[stored] || operand.place.dtype != DType::f32 || operand.along != 1)
      continue;
    all.registers[stored].home = RowRegister::Home::memory;
    all.registers[stored].operand = instruction.memory;
    placed[stored] = step.skip = true;
  }
  std::vector<std::size_t> busy_until;  // per slot: the last step that reads it
  for (std::size_t i = 0; i < all.steps.size(); ++i) {
    const std::uint16_t result = all.steps[i].instruction.result;
    if (result == kNone || placed[result] || !loop.is_run[result]) continue;
    // A slot last read by this very step may be overwritten: lanes may work in place.
    std::size_t slot = 0;
    while (slot < busy_until.size() && busy_until[slot] > i) ++slot;
    if (slot == busy_until.size()) busy_until.push_back(0);
    busy_until[slot] = std::max(last[result], i + 1);
    all.registers[result].home = RowRegister::Home::slot;
    all.registers[result].slot = static_cast<std::uint16_t>(slot);
    placed[result] = true;
  }
  all.slots = static_cast<std::int64_t>(busy_until.size());
}

}  // namespace

RowRegisters allocate_registers(RowLoop& loop) {
  RowRegisters placed;
  prepare_steps(loop, placed);
  assign_registers(loop, placed);
  return placed;
}

}  // namespace weft::device::cpu
