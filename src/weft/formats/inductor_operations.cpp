#include "weft/formats/inductor_operations.h"

#include <algorithm>

#include "weft/plan/ops/attention_geometry.h"

namespace weft::formats {
namespace {

constexpr ProfilerTypeName kTypeNames[] = {
    {plan::DType::f32, "float", "Float"},
    {plan::DType::f64, "double", "Double"},
    {plan::DType::bf16, "c10::BFloat16", "BFloat16"},
    {plan::DType::f16, "c10::Half", "Half"},
    {plan::DType::i32, "int", "Int"},
    {plan::DType::i64, "long int", "Long"},
    {plan::DType::boolean, "bool", "Bool"},
    {plan::DType::f8e4m3, "c10::Float8_e4m3fn", "Float8_e4m3fn"},
    {plan::DType::f8e5m2, "c10::Float8_e5m2", "Float8_e5m2"},
};

}  // namespace

const ProfilerTypeName& profiler_name(plan::DType dtype) {
  return *std::ranges::find(kTypeNames, dtype, &ProfilerTypeName::dtype);  // kTypeNames has every type
}

// Loops around a product have a role, too: one that leaves b in place is part of m.
ProfiledProduct product_of(const program::MatrixProduct& product) {
  ProfiledProduct made{1, product.m, product.n, product.k, product.a.dtype};
  for (const program::ProductLoop& loop : product.outer)
    (loop.b == 0 ? made.m : loop.a == 0 ? made.n : made.batch) *= loop.size;
  for (const program::ProductLoop& loop : product.summed) made.k *= loop.size;
  return made;
}

ProfiledAttention attention_of(const plan::NodeView& node) {
  const ops::AttentionGeometry geometry = ops::attending(node);
  const auto points = [](const auto& dims) {
    std::int64_t size = 1;
    for (const plan::Dim& dim : dims) size *= dim.size;
    return size;
  };
  ProfiledAttention made;
  made.queries = geometry.along.size;
  made.keys = geometry.over.size;
  made.width = points(geometry.inner);
  made.value_width = points(geometry.values);
  made.dtype = node.input_type(ops::kAttentionQ).dtype;
  // The first of several indices besides the queries is the batch.
  const std::int64_t sequences = points(geometry.rows) / made.queries;
  made.batch = sequences;
  for (const plan::Dim& dim : geometry.rows)
    if (dim.index != geometry.along.index) {
      made.batch = dim.size;
      break;
    }
  made.heads = sequences / made.batch;
  made.key_heads = points(node.input_type(ops::kAttentionK).dims) / (made.batch * made.keys * made.width);
  return made;
}

}  // namespace weft::formats
