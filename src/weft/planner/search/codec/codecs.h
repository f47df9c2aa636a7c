// weft/planner/search/codec/codecs.h -- the codecs that a user allows for communication.
//
//   codecs = 'gradients: int8, weights: int8'           default: none
//            'gradients: int8 or int4'                  whichever is faster
//            'gradients: top_k(0.01), weights: int8'    1 % of the numbers
//            'gradients: low_rank(4)'                   matrices as two of 4 columns, if that is smaller
//            'gradients: int4(32)'                      one scale per 32 numbers: more bytes, less error
//            'gradients: int8 with feedback'            the error is added to the next message
//            'gradients: int4 always'                   wherever possible, even if slower
//            'activations: int8'                        values between stages, in both directions
//
// one_bit, top_k and low_rank always use feedback, since they are useless without it. Weights and
// activations have no feedback: their error affects one step only.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/codec.h"

namespace weft::search {

struct AllowedCodec {
  ops::CodecKind kind = ops::CodecKind::int8;
  double kept = 0;         // top_k: share of numbers; low_rank: rank
  std::int64_t block = 0;  // numbers that share a scale; 0: the kind's default
  bool feedback = false;   // error feedback: the error is added to the next message

  // The codec for a segment of `numbers` numbers, in rows of `columns`. `block_unasked`: default
  // number of numbers that share a scale.
  ops::Codec of(std::int64_t block_unasked, std::int64_t numbers, std::int64_t columns) const;
  friend bool operator==(const AllowedCodec&, const AllowedCodec&) = default;
};

struct CodecChoice {
  std::vector<AllowedCodec> codecs;  // one of these is used, or none if none pays
  bool always = false;               // even if none pays

  bool any() const { return !codecs.empty(); }
  friend bool operator==(const CodecChoice&, const CodecChoice&) = default;
};

struct Codecs {
  CodecChoice gradients;    // of parameters, summed over ranks
  CodecChoice weights;      // sharded, and gathered before use
  CodecChoice activations;  // of micro-batches, and their gradients, sent between stages

  bool any() const { return gradients.any() || weights.any() || activations.any(); }
  friend bool operator==(const Codecs&, const Codecs&) = default;
};

Result<Codecs> read_codecs(std::string_view text);
std::string print(const AllowedCodec& codec);  // "int8 with feedback"
std::string print(const Codecs& codecs);       // '' for none

}  // namespace weft::search
