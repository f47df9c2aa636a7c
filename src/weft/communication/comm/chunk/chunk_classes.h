// weft/communication/comm/chunk/chunk_classes.h -- which chunks of a program always have the same length.
//
//   all_reduce of 10 elements in 4 chunks      class 0   class 1   class 2   class 3
//                                              3         3         2         2 elements
//
// Where a count does not divide, chunks differ in length, and a message is as long as what it carries. A
// chunk of class k stays one wherever a program keeps it, so one run of the program on classes instead of
// data says for every step what it moves. There are programs for which this is not so: they put a chunk into
// the place of a longer or shorter one; those are run on chunks that are all as long as the longest.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"

namespace weft::comm {

// What tells classes apart: the place of a chunk in its block, which is enough where all blocks are alike, or
// the block as well.
enum class ClassGrain : std::uint8_t { place, block };

// Of each chunk that the steps of `rank` move, block by block, step by step (one for a nop). None where
// chunks of different classes meet. REQUIRES: check(program) has found nothing.
std::optional<std::vector<std::int32_t>> classify(const collective::Program& program, std::int32_t rank,
                                                  ClassGrain grain);

// How many elements each class has in a call. Fails where a block of no chunks would have some.
Result<std::vector<std::int64_t>> class_sizes(const collective::Collective& collective, ClassGrain grain,
                                              const Call& call);

// The class that belongs in each chunk of a buffer of `rank`.
std::vector<std::int32_t> home_classes(const collective::Collective& collective, ClassGrain grain,
                                       collective::Buffer buffer, std::int32_t rank);

}  // namespace weft::comm
