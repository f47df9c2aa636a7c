// weft/search/codec/place_codecs.h -- encode before what sends, decode after what receives.
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
// A gradient is coded twice on its way, however many ranks there are: a ring would code it again at every hop. A
// reduce-scatter is the first half of that. All ranks decode the same codes, so they go on with the same bits.
//
// Gradients are sums that nobody but updates reads; weights are gathered from a parameter's shards, which stay as
// they are, or are what master weights round to, which do. What is smaller than a block, cannot be cut evenly, or
// would not become smaller goes as it is.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/distribute/distribute.h"
#include "weft/search/codec/codecs.h"

namespace weft::search {

// What became of the exchanges of one kind.
struct CodedExchanges {
  std::string_view what;  // "gradients"
  ops::CodecKind codec = ops::CodecKind::int8;
  std::size_t coded = 0, exact = 0;     // exchanges
  std::int64_t numbers = 0, bytes = 0;  // of those that are coded, and their bytes as they were
  std::int64_t code_bytes = 0;          // and as codes
  std::int64_t exact_bytes = 0;         // of the others
  int times = 1;                        // a number is coded, on its way along one axis

  friend bool operator==(const CodedExchanges&, const CodedExchanges&) = default;
};

struct CodedPlan {
  distribute::DistributedPlan plan;
  std::vector<CodedExchanges> exchanges;

  bool any() const;
};

// REQUIRES: the plan is not cut in time.
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               std::int64_t block = ops::Codec().block);

// "gradients int8: 12 of 20 exchanges, 1.02 bytes a number for 4, off by at most m / 254 each of 2 times"
std::string print(const CodedExchanges& exchanges);

}  // namespace weft::search
