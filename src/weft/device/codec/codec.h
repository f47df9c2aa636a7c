// weft/device/codec/codec.h -- numbers made small for the wire, and back.
//
// Which there are, their bytes and their errors: ops/codec.h.
//
// With error feedback what a code loses is added to what is encoded next, so that over many steps nothing is lost:
// one_bit, top_k and low_rank are of no use without.
// A block with a number that is not finite decodes to NaN: it must not pass for a gradient.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/plan/ops/codec.h"

namespace weft::device {

using ops::Codec;
using ops::CodecKind;
using ops::encoded_bytes;
using ops::error_bound;

// Writes encoded_bytes() to `codes`. `carried`, where it is not empty, is as long as `values`: it is added to them,
// and holds afterwards what was lost.
Status encode(const Codec& codec, std::span<const float> values, std::span<std::byte> codes,
              std::span<float> carried = {});

// Fails where `codes` is not as long as encode() makes it, or names a place that does not exist.
Status decode(const Codec& codec, std::span<const std::byte> codes, std::span<float> values);

}  // namespace weft::device
