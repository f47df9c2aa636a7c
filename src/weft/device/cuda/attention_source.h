// weft/device/cuda/attention_source.h -- CUDA sources of attention: tiles of keys go past tiles of queries.
//
//   weft_attend          a block a tile of queries: keys pass, softmax goes along with them
//   weft_dots            a warp a query: the sum of dy y, which the gradient wants
//   weft_queries_back    a block a tile of queries: keys pass, dq grows
//   weft_keys_back       a block a tile of keys: the queries of all heads that share them pass, dk and dv grow
//
// On Hopper (see takes_hopper), by TMA, mbarriers and wgmma:
//
//   weft_attend_hopper     a block goes on from tile to tile of queries
//   weft_dots_hopper       levels and sums of dy y
//   weft_keys_back_hopper  a block a tile of keys: dk and dv grow, and dq in memory, one block after the other
//   weft_queries_hopper    dq as it is wanted, from where it grew
//
// Each result is summed by one thread in one order: the same bits on every run. bf16 and f16 are multiplied by tensor
// cores (mma.sync or wgmma, sums in f32), f32 by plain multiply-adds, which lose nothing.
#pragma once
#include <string>

#include "weft/plan/graph/dtype.h"

namespace weft::device::cuda {

// Where rows lie: by how much they go on from query to query or key to key, and whether 16 bytes can be read at once.
struct AttentionShape {
  plan::DType dtype = plan::DType::f32;
  std::int64_t queries = 0, keys = 0, inner = 0, values = 0;
  std::int64_t heads = 1, sharing = 1;  // heads that share keys are one after the other
  bool causal = false, windowed = false, masked = false;
  std::int64_t begin = 0, reach = 0;
  double factor = 1;         // of the scores
  bool is_aligned = false;   // every row begins at a multiple of 16 bytes
  std::string heads_text;    // "long long q0 = 0, ..": where the rows of `head` begin
  std::string strides_text;  // "constexpr long long kQ = .., kK = ..": from one to the next
  bool hopper = false;       // by the kernels for Hopper
  std::string
      corners_text;  // "int q_1 = 0, q_2 = 0, q_3 = 0, ..": the coordinates of `head`'s rows in each tensor
};

// Whether the kernels for Hopper have this shape; the others have every one.
bool takes_hopper(const AttentionShape& shape, bool gradient);

// How a block is cut; the same numbers for the source and for the launch.
struct AttentionTiles {
  int threads = 128;
  std::int64_t queries = 64, keys = 64;  // of a tile
  std::int64_t shared_bytes = 0;
};
AttentionTiles forward_tiles(const AttentionShape& shape);
AttentionTiles queries_back_tiles(const AttentionShape& shape);
AttentionTiles keys_back_tiles(const AttentionShape& shape);

// What the gradient on Hopper keeps beside its results: levels, sums of dy y, who has added to dq, and dq as it grows.
struct HopperRoom {
  std::int64_t rows = 0;    // with those that fill tiles up
  std::int64_t blocks = 0;  // of weft_dots_hopper
  std::int64_t bytes = 0;
};
HopperRoom hopper_room(const AttentionShape& shape);

// Widths up to this have kernels.
constexpr std::int64_t kWidestHead = 256;

std::string forward_source(const AttentionShape& shape);
std::string gradient_source(const AttentionShape& shape);

}  // namespace weft::device::cuda
