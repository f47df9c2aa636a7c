// weft/device/cuda/attention_source.h -- CUDA sources of attention: key tiles against query tiles.
//
//   weft_attend          one block per query tile: iterates over keys with online softmax
//   weft_dots            one warp per query: the sum of dy y, which the gradient needs
//   weft_attention_dq    one block per query tile: iterates over keys and accumulates dq
//   weft_attention_dk_dv       one block per key tile: iterates over the queries of all heads that share it
//                        and accumulates dk and dv
//
// On Hopper (see supports_hopper), with TMA, mbarriers and wgmma:
//
//   weft_attend_hopper     persistent blocks iterate over query tiles
//   weft_dots_hopper       levels (scaled log-sums) and sums of dy y
//   weft_attention_gradient_hopper  one block per key tile: accumulates dk and dv, and dq in memory, in block order
//   weft_convert_dq_hopper    converts the accumulated dq to its final layout and type
//
// Every result is summed in one fixed order: the same bits on every run. bf16 and f16 use tensor
// cores (mma.sync or wgmma with f32 sums). f32 uses plain multiply-adds, without loss of precision.
#pragma once
#include <string>

#include "weft/plan/graph/dtype.h"

namespace weft::device::cuda {

// The problem's sizes and layout: strides between queries or keys, and whether 16-byte loads are
// possible.
struct AttentionShape {
  plan::DType dtype = plan::DType::f32;
  std::int64_t queries = 0, keys = 0, inner = 0, values = 0;
  std::int64_t heads = 1, sharing = 1;  // heads that share keys are consecutive
  bool causal = false, windowed = false, masked = false;
  std::int64_t begin = 0, reach = 0;
  double factor = 1;               // scale of the scores
  bool is_aligned = false;         // every row is aligned to 16 bytes
  std::string heads_source;        // "long long q0 = 0, ..": offsets of the rows of `head`
  std::string strides_source;      // "constexpr long long kQ = .., kK = ..": row strides
  bool hopper = false;             // use the Hopper kernels
  std::string coordinates_source;  // "int q_1 = 0, q_2 = 0, q_3 = 0, ..": TMA coordinates of `head`'s rows
};

// Whether the Hopper kernels support this shape; the others support all.
bool supports_hopper(const AttentionShape& shape, bool gradient);

// Tile sizes of a block, for both the source and the launch.
struct AttentionTiles {
  int threads = 128;
  std::int64_t queries = 64, keys = 64;  // per tile
  std::int64_t shared_bytes = 0;
};
AttentionTiles forward_tiles(const AttentionShape& shape);
AttentionTiles dq_tiles(const AttentionShape& shape);
AttentionTiles dk_dv_tiles(const AttentionShape& shape);

// Scratch memory of the Hopper gradient: levels, sums of dy y, counters of blocks that added to dq,
// and dq's sums.
struct HopperScratch {
  std::int64_t rows = 0;    // including padding to whole tiles
  std::int64_t blocks = 0;  // of weft_dots_hopper
  std::int64_t bytes = 0;
};
HopperScratch hopper_scratch(const AttentionShape& shape);

// The widest head that has kernels.
constexpr std::int64_t kWidestHead = 256;

std::string forward_source(const AttentionShape& shape);
std::string gradient_source(const AttentionShape& shape);

}  // namespace weft::device::cuda
