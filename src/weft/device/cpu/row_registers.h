// weft/device/cpu/row_registers.h -- where the registers of a row loop live while it runs.
//
//   single    one float of a worker's own            what does not run along the row
//   memory    where an operand lies already          loaded or stored as it is: the step itself is skipped
//   table     positions along the row                written once, when the kernel is made
//   slot      a stretch of a worker's own            the rest, in as few as their lives allow
#pragma once
#include <cstdint>
#include <vector>

#include "weft/device/cpu/lanes.h"
#include "weft/program/tasks/program.h"

namespace weft::device::cpu {

struct RowRegister {
  enum class Home : std::uint8_t { single, slot, memory, table };
  Home home = Home::single;
  std::uint16_t operand = 0;  // memory
  std::uint16_t slot = 0;
  std::vector<float> table = {};
};

struct PlacedStep {
  program::RowInstruction instruction;
  Lane lane = Lane::add;
  bool skip = false;  // a load or store of what is memory already
};

struct RowRegisters {
  std::vector<RowRegister> registers;
  std::vector<PlacedStep> steps;
  std::int64_t slots = 0;
};

// Adds to `loop` the registers that it needs beyond its own.
RowRegisters place_registers(program::RowLoop& loop);

}  // namespace weft::device::cpu
