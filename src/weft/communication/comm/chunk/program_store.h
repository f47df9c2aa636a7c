// weft/communication/comm/chunk/program_store.h -- the shipped algorithms as programs, each compiled once in a process.
//
//   program_for("all_reduce_ring(channels=2)", 8, 0)     all_reduce_ring(channels=2, ranks=8), proved right
//   program_for("all_reduce_trees(shape=ring)", 8, 0)    synthesized trees, see synthesis/named_trees.h
//   programs_for(Kind::all_gather, 5)                    "all_gather_ring", ... but no neighbor exchange,
//                                                        which is for even numbers of ranks
//
// Thread-safe: several communicators, or thread ranks, share what was compiled.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::comm {

// `name` is an algorithm, with parameters where they are not to be its defaults; `ranks`, and `root` where it
// has one, are given to it. Fails for a name that does not exist, parameters that do not fit (a `ranks`
// of its own that is another number among them), or moves that cannot be compiled. Where a message takes long
// on its way, blocks that send are better kept apart from those that receive: see AssignLimits::join.
Result<std::shared_ptr<const collective::Program>> program_for(std::string_view name, std::int32_t ranks,
                                                               std::int32_t root, bool join_blocks = true);

// The algorithms that can run a collective of that many ranks as they are, sorted by name.
std::vector<std::string> programs_for(collective::Kind kind, std::int32_t ranks);

}  // namespace weft::comm
