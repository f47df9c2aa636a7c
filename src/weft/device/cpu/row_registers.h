// weft/device/cpu/row_registers.h -- register allocation for row loops.
//
//   single    one float per worker                   values that do not vary along the row
//   memory    the operand's own memory               loaded or stored unchanged: the step is skipped
//   table     positions along the row                written once, when the kernel is made
//   slot      a row of scratch per worker            the rest, in as few slots as live ranges allow
#pragma once
#include <cstdint>
#include <vector>

#include "weft/device/cpu/lanes.h"
#include "weft/program/tasks/program.h"

namespace weft::device::cpu {

struct RowRegister {
  enum class Home : std::uint8_t { single, slot, memory, table };
  Home home = Home::single;
  std::uint16_t operand = 0;  // for Home::memory
  std::uint16_t slot = 0;
  std::vector<float> table = {};
};

struct PlacedStep {
  program::RowInstruction instruction;
  Lane lane = Lane::add;
  bool skip = false;  // a load or store whose register aliases memory
};

struct RowRegisters {
  std::vector<RowRegister> registers;
  std::vector<PlacedStep> steps;
  std::int64_t slots = 0;
};

// Adds registers that it needs to `loop`.
RowRegisters allocate_registers(program::RowLoop& loop);

}  // namespace weft::device::cpu
