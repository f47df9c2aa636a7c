// weft/device/cpu/attention.h -- attention tile by tile: no more than a tile of scores is ever held.
//
//           keys ->              A tile of queries goes past the tiles of keys that it sees. Each row keeps its
//   queries . . # #              largest score so far and the sum of exp(score - largest); where a larger one
//      |    . . . #              turns up, what was summed before is scaled down to it. Tiles that lie wholly
//      v    . . . .              above the diagonal, or before the window, are not computed.
//
// Rows lie anywhere, each with its elements side by side. Those of bf16 and f16 are widened a tile at a time and
// rounded once, at the end; scores, their softmax and all sums are f32. Where the processor multiplies bf16 (see
// bf16_gemm.h), they are not widened, and weights and slopes of scores are rounded to bf16 for their products. On the
// calling thread; the same bits every time, whichever items are computed together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/device/cpu/bf16_gemm.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/ops/attending.h"

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
  bool narrow = false;           // some of them are bf16 or f16
  Bf16Products products = bf16_products();

  std::int64_t heads() const { return static_cast<std::int64_t>(q.heads.size()); }
};

// Elements of f32, bf16 or f16.
struct AttentionInput {
  AttentionInput(const float* x) : dtype(plan::DType::f32), data(reinterpret_cast<const std::byte*>(x)) {}
  AttentionInput(plan::DType of, const std::byte* at) : dtype(of), data(at) {}

  plan::DType dtype;
  const std::byte* data;
};
struct AttentionOutput {
  AttentionOutput(float* x) : dtype(plan::DType::f32), data(reinterpret_cast<std::byte*>(x)) {}
  AttentionOutput(plan::DType of, std::byte* at) : dtype(of), data(at) {}

  plan::DType dtype;
  std::byte* data;
};

// Items are tiles of queries, head by head.
std::size_t attention_scratch_bytes(const Attention& how);
void attend(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q, AttentionInput k,
            AttentionInput v, const std::uint8_t* mask, AttentionOutput y, float* log_sum, void* scratch);

// Items are the heads that share keys and values. REQUIRES: where k or v is narrow, heads share both or neither.
struct AttentionGradients {
  AttentionOutput dq, dk, dv;
};
void attend_back(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q,
                 AttentionInput k, AttentionInput v, AttentionInput y, const float* log_sum,
                 AttentionInput dy, const std::uint8_t* mask, const AttentionGradients& to, void* scratch);

// Rows of `values` elements, one after the other, with a log-sum each: what two sets of keys gave, as one.
struct AttentionPart {
  const float *y, *log_sum;
};
void merge_attention(std::int64_t begin, std::int64_t end, std::int64_t values, AttentionPart first,
                     AttentionPart second, float* y, float* log_sum);

}  // namespace weft::device::cpu
