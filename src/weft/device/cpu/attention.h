// weft/device/cpu/attention.h -- tiled attention: only one tile of scores is in memory at a time.
//
//           keys ->              A tile of queries iterates over the key tiles that it attends
//   queries . . # #              to. Each row keeps its largest score so far and the sum of
//      |    . . . #              exp(score - largest). When a larger score appears, the sums so
//      v    . . . .              far are rescaled. Tiles above the diagonal are skipped, and so
//                                are tiles before the window.
//
// Rows may have any stride, with contiguous elements. bf16 and f16 rows are widened tile by tile
// and rounded once, at the end; scores, softmax and all sums are f32. Where the processor
// multiplies bf16 (see bf16_gemm.h), operands are not widened, and weights and score gradients are
// rounded to bf16 for their products. Runs on the calling thread. Results are bitwise reproducible
// however items are grouped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/device/cpu/bf16_gemm.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/ops/attention_geometry.h"

namespace weft::device::cpu {

// Where an operand's rows are: the offset of each head, and the distance between queries or keys.
struct AttentionRows {
  std::vector<std::int64_t> heads;
  std::int64_t step = 0;
};

struct Attention {
  ops::AttentionGeometry of;  // which keys a query attends to, and the scale of the scores
  std::int64_t queries = 0, keys = 0, inner = 0, values = 0;
  std::int64_t sharing = 1;  // this many consecutive heads add to the same key and value gradients
  AttentionRows q, k, v, y, log_sum;
  AttentionRows mask;            // per query
  std::int64_t mask_step = 0;    // distance between keys
  AttentionRows dy, dq, dk, dv;  // gradient only
  bool narrow = false;           // some operands are bf16 or f16
  Bf16Products products = bf16_products();

  std::int64_t heads() const { return static_cast<std::int64_t>(q.heads.size()); }
};

// f32, bf16 or f16 elements.
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

// Items are query tiles, head by head.
std::size_t attention_scratch_bytes(const Attention& how);
void attend(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q, AttentionInput k,
            AttentionInput v, const std::uint8_t* mask, AttentionOutput y, float* log_sum, void* scratch);

// Items are groups of heads that share keys and values. REQUIRES: if k or v is narrow, heads share
// both or neither.
struct AttentionGradients {
  AttentionOutput dq, dk, dv;
};
void attend_gradient(const Attention& how, std::int64_t begin, std::int64_t end, AttentionInput q,
                     AttentionInput k, AttentionInput v, AttentionInput y, const float* log_sum,
                     AttentionInput dy, const std::uint8_t* mask, const AttentionGradients& to,
                     void* scratch);

// Contiguous rows of `values` elements with one log-sum per row. Merges the results of two sets of
// keys.
struct AttentionPart {
  const float *y, *log_sum;
};
void merge_attention(std::int64_t begin, std::int64_t end, std::int64_t values, AttentionPart first,
                     AttentionPart second, float* y, float* log_sum);

}  // namespace weft::device::cpu
