// weft/communication/comm/chunk/chunk_classes.h -- which chunks of a program always have the same
// length.
//
//   all_reduce of 10 elements in 4 chunks      class 0   class 1   class 2   class 3
//                                              3         3         2         2 elements
//
// If the count is not divisible, chunks differ in length, and a message is as long as its chunks. A
// chunk of class k keeps its class wherever a program stores it. So one run of the program on
// classes instead of data tells what every step moves. Some programs violate this: they store a
// chunk in place of a longer or shorter one. Those run on chunks padded to the longest.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"

namespace weft::comm {

// What identifies a class: the position of a chunk in its block, which suffices if all blocks are
// equal, or the block as well.
enum class ClassGrain : std::uint8_t { place, block };

// The class of each chunk that the steps of `rank` move, by threadblock and step (one entry for a
// nop). Empty if chunks of different classes mix. REQUIRES: check(program) has found nothing.
std::optional<std::vector<std::int32_t>> classify(const collective::Program& program, std::int32_t rank,
                                                  ClassGrain grain);

// The number of elements of each class in a call. Fails if a block without chunks would have
// elements.
Result<std::vector<std::int64_t>> class_sizes(const collective::Collective& collective, ClassGrain grain,
                                              const Call& call);

// The initial class of each chunk of a buffer of `rank`.
std::vector<std::int32_t> home_classes(const collective::Collective& collective, ClassGrain grain,
                                       collective::Buffer buffer, std::int32_t rank);

}  // namespace weft::comm
