// weft/formats/msccl_rules.h -- requirements on a program before it is loaded: peers exist, slots
// are inside the buffers that the file declares, waits name existing steps, and no two threadblocks
// share a connection.
//
// Both the reader and the writer apply it. Unlike check_form() of check/check.h it uses the
// declared sizes, the only ones that a loader knows.
#pragma once
#include <optional>
#include <string>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program.h"

namespace weft::formats {

struct BrokenRule {
  collective::Where where;
  std::string text;       // without the location
  std::string attribute;  // the attribute at fault, if any
};

std::optional<BrokenRule> broken_rule(const collective::Program& program);

// Whether `rank` declares the `count` chunks that begin at the slot.
bool declared(const collective::RankProgram& rank, collective::Slot slot, std::int32_t count);

}  // namespace weft::formats
