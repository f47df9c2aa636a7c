// weft/device/codec/codec.h -- lossy compression for communication.
//
// ops/codec.h lists the codecs with their sizes and error bounds.
//
// With error feedback the compression error is added to the next message, so that nothing is lost
// over many steps. one_bit, top_k and low_rank need it. A block with a value that is not finite
// decodes to NaN, so that it does not pass for a gradient.
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

// Writes encoded_bytes() to `codes`. `carried` is empty or as long as `values`: the error carried
// over from the last message, which is added to `values`. It receives the new error.
Status encode(const Codec& codec, std::span<const float> values, std::span<std::byte> codes,
              std::span<float> carried = {});

// Fails if `codes` does not have encode()'s length or contains a position out of range.
Status decode(const Codec& codec, std::span<const std::byte> codes, std::span<float> values);

}  // namespace weft::device
