// weft/formats/msccl_rules.h -- what a program must be before it is worth loading: peers exist, slots lie in
// the buffers that the file declares, waits name steps, and no two threadblocks share a connection.
//
// The reader applies it to what it has read and the writer to what it is to write. Unlike check_form() of
// check/check.h it goes by the sizes that are declared: a loader knows no others.
#pragma once
#include <optional>
#include <string>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program.h"

namespace weft::formats {

struct BrokenRule {
  collective::Where where;
  std::string text;       // without the place
  std::string attribute;  // the one to blame, where it is one
};

std::optional<BrokenRule> broken_rule(const collective::Program& program);

// Whether `count` chunks from the slot on are ones that `rank` declares.
bool declared(const collective::RankProgram& rank, collective::Slot slot, std::int32_t count);

}  // namespace weft::formats
