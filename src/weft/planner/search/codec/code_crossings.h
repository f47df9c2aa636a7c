// weft/planner/search/codec/code_crossings.h -- what goes from stage to stage, as codes.
//
//   stage 0   %9 = add %8, %5                         stage 0   %9 = add %8, %5
//                                                               %10 = encode %9 {codec=int8, keep=[b], ..}
//   stage 1   %10 = layer-norm %9 {over=[d]}    =>    stage 1   %11 = decode %10 {codec=int8, ..}
//                                                               %12 = layer-norm %11 {over=[d]}
//
// Each end is a node at its own place on the way, so what is sent between them is codes. Forward passes send
// activations, backward passes their gradients; a stage keeps its own of both as they are.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/codec/place_codecs.h"

namespace weft::search {

// As CodedExchanges call it.
inline constexpr std::string_view kActivations = "activations";

// Bytes of what could be coded by some of these codecs, of each value that goes from stage to stage.
Result<std::vector<std::int64_t>> codable_crossings(const distribute::DistributedPlan& plan,
                                                    const CodecChoice& choice);

// What is sent of a value of `rows` times `numbers` real numbers; none where codes are no smaller.
std::optional<std::int64_t> coded_bytes(const AllowedCodec& codec, std::int64_t rows, std::int64_t numbers,
                                        std::int64_t number_bytes);

// By the codec of that number, from so many bytes on; none: nothing is coded, and the report says so. REQUIRES: the
// plan is in time.
Result<CodedPlan> code_crossings(const distribute::DistributedPlan& plan, const CodecChoice& choice,
                                 std::optional<std::size_t> codec, std::int64_t least_bytes);

}  // namespace weft::search
