// weft/communication/comm/chunk/program_store.h -- the shipped algorithms as programs, each
// compiled once per process.
//
//   program_for("all_reduce_ring(channels=2)", 8, 0)     all_reduce_ring(channels=2, ranks=8), proven correct
//   program_for("all_reduce_trees(shape=ring)", 8, 0)    synthesized trees, see synthesis/named_trees.h
//   programs_for(Kind::all_gather, 5)                    "all_gather_ring", ... but no neighbor exchange,
//                                                        which is for even numbers of ranks
//
// Thread-safe: communicators and thread ranks share the compiled programs.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::comm {

// `name` is an algorithm with its non-default parameters; `ranks`, and `root` if it has one, are
// added. Fails for an unknown name, invalid parameters (including a different `ranks`), or moves
// that cannot be compiled. If messages take long, threadblocks that send are better kept apart from
// those that receive: see AssignLimits::join.
Result<std::shared_ptr<const collective::Program>> program_for(std::string_view name, std::int32_t ranks,
                                                               std::int32_t root, bool join_blocks = true);

// The algorithms that can run a collective of `ranks` ranks with default parameters, sorted by
// name.
std::vector<std::string> programs_for(collective::Kind kind, std::int32_t ranks);

}  // namespace weft::comm
