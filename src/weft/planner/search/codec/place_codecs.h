// weft/planner/search/codec/place_codecs.h -- encode before what sends, decode after what receives.
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
// With feedback what each rank's encode loses, of what it sends and of its block of the sum, is kept on that rank and
// added to what it encodes in the next step (distribute/feedback.h): states "w1.lost.gpu", of which row r is rank r's,
// and "w1.lost.gpu.sum".
//
// Gradients are sums that nobody but updates reads; weights are gathered from a parameter's shards, which stay as
// they are, or are what master weights round to, which do. What is smaller than a block, cannot be cut evenly, or
// would not become smaller goes as it is.
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

// What became of the exchanges of one kind, by one of its codecs.
struct CodedExchanges {
  std::string_view what;  // "gradients"
  AllowedCodec codec;
  std::size_t coded = 0, exact = 0;       // exchanges; the latter of all codecs of the kind
  std::size_t unworthy = 0;               // of these, that could be coded
  std::int64_t numbers = 0, bytes = 0;    // of those that are coded, and their bytes as they were
  std::int64_t code_bytes = 0;            // and as codes
  std::int64_t exact_bytes = 0;           // of the others
  std::int64_t lost_bytes = 0;            // what the first rank keeps of what was lost
  std::vector<std::string> tensors = {};  // whose gradients are coded
  int times = 1;                          // a number is coded, on its way along one axis

  friend bool operator==(const CodedExchanges&, const CodedExchanges&) = default;
};

struct CodedPlan {
  distribute::DistributedPlan plan;
  std::vector<CodedExchanges> exchanges;  // of each kind that is allowed, one at least

  bool any() const;
};

// Which of the codecs of its kind an exchange is coded by, by node; none: it goes as it is.
using CodecPicks = std::vector<std::optional<std::size_t>>;

// An exchange that some codec of its kind could make smaller.
struct CodableExchange {
  plan::NodeId node;
  bool is_gradient = false;
  std::int64_t bytes = 0;
};
std::vector<CodableExchange> codable_exchanges(const distribute::DistributedPlan& plan, const Codecs& codecs,
                                               std::int64_t block = ops::Codec().block);

// Of a plan that is cut in time what is the same for all micro-batches is coded, once a step. What goes from stage to
// stage is not of these (code_crossings.h).
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               const CodecPicks& picks, std::int64_t block = ops::Codec().block);
// By the first codec of its kind, wherever it can be.
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const Codecs& codecs,
                               std::int64_t block = ops::Codec().block);

// "gradients int8: 12 of 20 exchanges, 1.02 bytes a number for 4, off by at most m / 254 each of 2 times"
std::string print(const CodedExchanges& exchanges);

}  // namespace weft::search
