// weft/planner/search/codec/codecs.h -- what a user allows to be made small on the wires, and by what.
//
//   codecs = 'gradients: int8, weights: int8'           default: none
//            'gradients: int8 or int4'                  whichever is quicker
//            'gradients: top_k(0.01), weights: int8'    one number of a hundred
//            'gradients: low_rank(4)'                   matrices as two of 4 columns, where those are smaller
//            'gradients: int4(32)'                      a scale for each 32 numbers: more bytes, less lost
//            'gradients: int8 with feedback'            what is lost is added to what is encoded next
//            'gradients: int4 always'                   wherever it can be, whether it pays or not
//            'activations: int8'                        what goes from one stage to another, both ways
//
// Feedback goes without saying for one_bit, top_k and low_rank, which are of no use without it. Weights and activations
// have none: what is lost of them is lost in one step and not in the next.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/codec.h"

namespace weft::search {

struct AllowedCodec {
  ops::CodecKind kind = ops::CodecKind::int8;
  double kept = 0;         // by top_k, of all numbers; of low_rank the rank
  std::int64_t block = 0;  // numbers that share a scale; 0: as many as the kind has unasked
  bool feedback = false;   // what is lost is added to what is encoded next

  // Of a segment of so many numbers, rows of `columns` each; `block_unasked` of them share a scale where nothing else
  // is said.
  ops::Codec of(std::int64_t block_unasked, std::int64_t numbers, std::int64_t columns) const;
  friend bool operator==(const AllowedCodec&, const AllowedCodec&) = default;
};

struct CodecChoice {
  std::vector<AllowedCodec> codecs;  // one of these, or none where none pays
  bool always = false;               // also where none pays

  bool any() const { return !codecs.empty(); }
  friend bool operator==(const CodecChoice&, const CodecChoice&) = default;
};

struct Codecs {
  CodecChoice gradients;    // of parameters, summed over ranks
  CodecChoice weights;      // sharded, and gathered to be used
  CodecChoice activations;  // of micro-batches, and their gradients, sent from stage to stage

  bool any() const { return gradients.any() || weights.any() || activations.any(); }
  friend bool operator==(const Codecs&, const Codecs&) = default;
};

Result<Codecs> read_codecs(std::string_view text);
std::string print(const AllowedCodec& codec);  // "int8 with feedback"
std::string print(const Codecs& codecs);       // '' for none

}  // namespace weft::search
