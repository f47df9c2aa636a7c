// weft/planner/search/codec/encode_boundaries.h -- encode values at stage boundaries.
//
//   stage 0   %9 = add %8, %5                         stage 0   %9 = add %8, %5
//                                                               %10 = encode %9 {codec=int8, keep=[b], ..}
//   stage 1   %10 = layer-norm %9 {over=[d]}    =>    stage 1   %11 = decode %10 {codec=int8, ..}
//                                                               %12 = layer-norm %11 {over=[d]}
//
// The encode node is on the sending stage and the decode node on the receiving one, so encoded
// values are sent. This applies to activations in forward passes and their gradients in backward
// passes. A stage keeps its own copies uncoded.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/codec/place_codecs.h"

namespace weft::search {

// The name in CodedExchanges::what.
inline constexpr std::string_view kActivations = "activations";

// Sizes of the values sent between stages that at least one of these codecs can encode.
Result<std::vector<std::int64_t>> encodable_boundaries(const distribute::DistributedPlan& plan,
                                                       const CodecChoice& choice);

// Encoded bytes of `rows` times `numbers` real numbers; none if encoding saves nothing.
std::optional<std::int64_t> coded_bytes(const AllowedCodec& codec, std::int64_t rows, std::int64_t numbers,
                                        std::int64_t number_bytes);

// Encodes values of at least `least_bytes` with codec number `codec`. None: encodes nothing and
// reports that. REQUIRES: the plan has stages or micro-batches.
Result<CodedPlan> encode_boundaries(const distribute::DistributedPlan& plan, const CodecChoice& choice,
                                    std::optional<std::size_t> codec, std::int64_t least_bytes);

}  // namespace weft::search
