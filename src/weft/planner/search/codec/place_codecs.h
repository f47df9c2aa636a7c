// weft/planner/search/codec/place_codecs.h -- encode before sending, decode after receiving.
//
//   %9 = all-gather %8 {axis=gpu, along=d}       %9 = encode %8 {codec=int8, keep=[d], ..}
//     of a weight                            =>  %10 = all-gather %9 {axis=gpu, along=d}
//                                                %11 = decode %10 {codec=int8, ..}
//
//   %9 = all-reduce %8 {axis=gpu}                %9 = addends %8 {axis=gpu, into=gpu_addend, count=8}
//     of a gradient                          =>  %10 = encode %9 {codec=int4, keep=[gpu_addend, d], ..}
//                                                %11 = all-to-all %10 {axis=gpu, from=gpu_addend, to=d}
//                                                %12 = decode %11, %13 = reduce %12: the sum, in f32
//                                                %14 = encode %13, %15 = all-gather %14, %16 = decode %15
//
// A gradient is encoded twice, independent of the number of ranks; a ring would encode it again at
// every hop. A reduce-scatter is the first half of this. All ranks decode the same codes, so their
// results are bitwise equal.
//
// With feedback, each rank keeps the encoding error of the gradient it sends and of its block of
// the sum, and adds it in the next step (distribute/feedback.h). The errors are states:
// "w1.lost.gpu", of which row r belongs to rank r, and "w1.lost.gpu.sum".
//
// Gradients are sums that only updates read. Weights are gathered from the shards of a parameter,
// or are rounded from master weights; shards and master weights stay exact. Values that are smaller
// than a block, cannot be split evenly, or would not get smaller are sent uncoded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/codec/codecs.h"

namespace weft::search {

// Statistics of the exchanges of one kind, for one of its codecs.
struct CodedExchanges {
  std::string_view what;  // "gradients"
  AllowedCodec codec;
  std::size_t coded = 0, exact = 0;       // exchanges; `exact` counts for all codecs of the kind
  std::size_t unworthy = 0;               // of the exact: could be encoded, but are not
  std::int64_t numbers = 0, bytes = 0;    // of encoded exchanges, before encoding
  std::int64_t code_bytes = 0;            // after encoding
  std::int64_t exact_bytes = 0;           // of exact exchanges
  std::int64_t lost_bytes = 0;            // for error feedback, on the first rank
  std::vector<std::string> tensors = {};  // with encoded gradients
  int times = 1;                          // that a number is encoded along one axis

  friend bool operator==(const CodedExchanges&, const CodedExchanges&) = default;
};

struct CodedPlan {
  distribute::DistributedPlan plan;
  std::vector<CodedExchanges> exchanges;  // at least one per allowed kind

  bool any() const;
};

// By node: index of the codec that encodes an exchange; none: sent uncoded.
using CodecPicks = std::vector<std::optional<std::size_t>>;

// An exchange that at least one codec of its kind makes smaller.
struct CodableExchange {
  plan::NodeId node;
  bool is_gradient = false;
  std::int64_t bytes = 0;
};
std::vector<CodableExchange> codable_exchanges(const distribute::DistributedPlan& plan, const Codecs& codecs,
                                               std::int64_t block = ops::Codec().block);

// In a pipeline plan, encodes only exchanges that run once per step and are the same for all
// micro-batches. Stage boundaries are not included (encode_boundaries.h).
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               const CodecPicks& picks, std::int64_t block = ops::Codec().block);
// Uses the first codec of each kind wherever possible.
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               std::int64_t block = ops::Codec().block);

// "gradients int8: 12 of 20 exchanges, 38.6 MB as 9.8 MB, off by at most m / 254 each of 2 times"
std::string print(const CodedExchanges& exchanges);

}  // namespace weft::search
