// weft/formats/inductor_operations.h -- kernels of a program as the operations that PyTorch calls.
//
//   aten::mm    [m, k] x [k, n]
//   attention   q[b, h, s, e], k[b, g, t, e], v[b, g, t, f]: g heads of keys are shared by h of queries
//
// Included by inductor_trace.cpp only.
#pragma once
#include <compare>
#include <cstdint>
#include <string_view>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/matrix_product.h"

namespace weft::formats {

// The types as the profiler names those of operands, and those of collectives.
struct ProfilerTypeName {
  plan::DType dtype;
  std::string_view operand, message;
};
const ProfilerTypeName& profiler_name(plan::DType dtype);

// [batch, m, k] x [batch, k, n] as torch.compile sees it.
struct ProfiledProduct {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  plan::DType dtype = plan::DType::f32;
  auto operator<=>(const ProfiledProduct&) const = default;
};
ProfiledProduct product_of(const program::MatrixProduct& product);

// q[batch, heads, queries, width], k[batch, key_heads, keys, width], v[.., value_width]
struct ProfiledAttention {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  plan::DType dtype = plan::DType::f32;
  auto operator<=>(const ProfiledAttention&) const = default;
};
// REQUIRES: the node is an attention.
ProfiledAttention attention_of(const plan::NodeView& node);

}  // namespace weft::formats
