// weft/device/cpu/attention.h -- attention tile by tile: no more than a tile of scores is ever held.
//
//           keys ->              A tile of queries goes past the tiles of keys that it sees. Each row keeps its
//   queries . . # #              largest score so far and the sum of exp(score - largest); where a larger one
//      |    . . . #              turns up, what was summed before is scaled down to it. Tiles that lie wholly
//      v    . . . .              above the diagonal, or before the window, are not computed.
//
// Rows lie anywhere, each with its elements side by side. f32, on the calling thread; the same bits every time,
// whichever items are computed together.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/ops/attending.h"

namespace weft::device::cpu {

// Where an operand's rows begin: those of a head, and from one query or key to the next.
struct AttentionRows {
  std::vector<std::int64_t> heads;
  std::int64_t step = 0;
};

struct Attention {
  ops::Attending of;  // who sees whom, and the factor of the scores
  std::int64_t queries = 0, keys = 0, inner = 0, values = 0;
  std::int64_t sharing =
      1;  // so many heads, one after the other, add to the same keys' and values' gradients
  AttentionRows q, k, v, y, log_sum;
  AttentionRows mask;            // by query
  std::int64_t mask_step = 0;    // from one key to the next
  AttentionRows dy, dq, dk, dv;  // of the gradient

  std::int64_t heads() const { return static_cast<std::int64_t>(q.heads.size()); }
};

// Items are tiles of queries, head by head.
std::size_t attention_scratch_bytes();
void attend(const Attention& how, std::int64_t begin, std::int64_t end, const float* q, const float* k,
            const float* v, const std::uint8_t* mask, float* y, float* log_sum, void* scratch);

// Items are the heads that share keys and values.
struct AttentionGradients {
  float *dq, *dk, *dv;
};
void attend_back(const Attention& how, std::int64_t begin, std::int64_t end, const float* q, const float* k,
                 const float* v, const float* y, const float* log_sum, const float* dy,
                 const std::uint8_t* mask, const AttentionGradients& to, void* scratch);

}  // namespace weft::device::cpu
