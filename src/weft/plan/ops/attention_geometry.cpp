#include "weft/plan/ops/attention_geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/plan/ops/sequences.h"

namespace weft::ops {

using plan::AttributeKind;
using plan::Dim;
using plan::NodeView;
using plan::Type;

constexpr double kEndless = std::numeric_limits<double>::infinity();

const std::array<plan::AttributeSpec, 9> kAttentionAttributes = {
    {{"over", AttributeKind::index},
     {"along", AttributeKind::index},
     {"inner", AttributeKind::indices},
     {"scale", AttributeKind::real, false, 1},
     {"divisor", AttributeKind::real, false, 1},
     {"causal", AttributeKind::integer, false},
     {"window", AttributeKind::real, false, kEndless},
     {"begin", AttributeKind::integer, false},
     {"keys", AttributeKind::integer, false}}};

namespace {

bool has_dim(std::span<const Dim> dims, Symbol index) {
  return std::ranges::find(dims, index, &Dim::index) != dims.end();
}

// The sum of min(max(first + i, 0), limit) over i of [0, count).
double clamped_sum(std::int64_t first, std::int64_t count, std::int64_t limit) {
  const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count),
                     high = std::clamp<std::int64_t>(limit - first, low, count);
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  return real(high - low) * real(first) + (real(high) * real(high - 1) - real(low) * real(low - 1)) / 2 +
         real(count - high) * real(limit);
}

std::string text(std::span<const Dim> dims, const NodeView& node) {
  return print_indices(dims, node.graph().symbols());
}

}  // namespace

double AttentionGeometry::pairs() const {
  const double all = static_cast<double>(row_count()) * static_cast<double>(over.size);
  if (all == 0) return 0;
  const auto whole = static_cast<double>(along.size) * static_cast<double>(over.size);
  double seen = causal ? clamped_sum(begin + 1, along.size, over.size) : whole;
  if (has_window()) seen -= clamped_sum(begin + 1 - reach(), along.size, over.size);
  return all * (std::max(seen, 0.0) / whole);
}

std::int64_t AttentionGeometry::reach() const {
  constexpr double kFar = 1e15;
  return static_cast<std::int64_t>(std::ceil(std::clamp(window, -kFar, kFar)));
}

std::int64_t AttentionGeometry::first_key(std::int64_t query) const {
  return has_window() ? std::clamp<std::int64_t>(begin + query + 1 - reach(), 0, over.size) : 0;
}

std::int64_t AttentionGeometry::end_key(std::int64_t query) const {
  return causal ? std::clamp<std::int64_t>(begin + query + 1, 0, over.size) : over.size;
}

AttentionGeometry attending(const NodeView& node) {
  const Type q = node.input_type(0), k = node.input_type(1), v = node.input_type(2);
  AttentionGeometry of;
  of.over = {node.symbol(kAttentionOver), k.size_of(node.symbol(kAttentionOver))};
  of.along = {node.symbol(kAttentionAlong), q.size_of(node.symbol(kAttentionAlong))};
  of.rows = without(q.dims, node.indices(kAttentionInner));
  for (const Symbol index : node.indices(kAttentionInner)) of.inner.push_back({index, q.size_of(index)});
  for (const Dim& dim : v.dims)
    if (dim.index != of.over.index && !has_dim(of.rows, dim.index)) of.values.push_back(dim);
  of.scale = node.real(kAttentionScale);
  of.divisor = node.real(kAttentionDivisor);
  of.causal = node.integer(kAttentionCausal) != 0;
  of.window = node.real(kAttentionWindow);
  of.keys = node.integer(kAttentionKeys);
  of.begin = node.integer(kAttentionBegin) - of.keys;
  return of;
}

bool is_attention_operator(const plan::Operator& op) {
  return &op == &attention() || &op == &attention_gradient();
}

std::size_t mask_of(const plan::Operator& op) { return &op == &attention() ? 3 : 6; }

Result<AttentionGeometry> check_attention_geometry(const NodeView& node, std::size_t mask) {
  const Type q = node.input_type(0), k = node.input_type(1), v = node.input_type(2);
  const Symbol over = node.symbol(kAttentionOver), along = node.symbol(kAttentionAlong);
  for (std::size_t i = 0; i < 3; ++i) {
    WEFT_TRY_STATUS(expect(node, i, Elements::real));
    if (node.input_type(i).dtype != q.dtype)
      return user_error(fmt::format("q, k and v differ in dtype: {}, {}", plan::name(q.dtype),
                                    plan::name(node.input_type(i).dtype)));
  }
  WEFT_TRY_STATUS(pick(q.dims, node.indices(kAttentionInner), node));
  WEFT_TRY_STATUS(pick(k.dims, node.indices(kAttentionInner), node));
  WEFT_TRY_STATUS(pick(q.dims, {&along, 1}, node));
  WEFT_TRY_STATUS(pick(k.dims, {&over, 1}, node));
  WEFT_TRY_STATUS(pick(v.dims, {&over, 1}, node));
  if (q.has(over) || k.has(along) || v.has(along) || contains(node.indices(kAttentionInner), along))
    return user_error(fmt::format("queries and keys need two different indices: found q{}, k{}, v{}",
                                  text(q.dims, node), text(k.dims, node), text(v.dims, node)));
  const AttentionGeometry of = attending(node);
  const auto belongs = [&](const Type& type, std::string_view what, bool has_inner) -> Status {
    for (const Dim& dim : type.dims) {
      const bool summed = contains(node.indices(kAttentionInner), dim.index);
      if (dim.index == over             ? dim.size == of.over.size
          : has_dim(of.rows, dim.index) ? q.size_of(dim.index) == dim.size
                                        : has_inner && summed && q.size_of(dim.index) == dim.size)
        continue;
      return user_error(fmt::format("{} does not match q: found q {}, {} {}", what,
                                    print(q, node.graph().symbols()), what,
                                    print(type, node.graph().symbols())));
    }
    return {};
  };
  WEFT_TRY_STATUS(belongs(k, "k", true));
  for (const Dim& dim : v.dims)
    if (has_dim(of.rows, dim.index) ? q.size_of(dim.index) != dim.size
                                    : dim.index == over && dim.size != of.over.size)
      return user_error(fmt::format("v does not match q and k: found q {}, k {}, v {}",
                                    print(q, node.graph().symbols()), print(k, node.graph().symbols()),
                                    print(v, node.graph().symbols())));
  if (mask < node.input_count()) {
    WEFT_TRY_STATUS(expect(node, mask, Elements::boolean));
    WEFT_TRY_STATUS(belongs(node.input_type(mask), "mask", false));
  }
  WEFT_TRY_STATUS(expect_between("causal", node.integer(kAttentionCausal), 0, 1));
  WEFT_TRY_STATUS(expect_between("begin", node.integer(kAttentionBegin), 0, kLargestStep));
  WEFT_TRY_STATUS(expect_between("keys", node.integer(kAttentionKeys), 0, kLargestStep));
  return of;
}

DimList attention_result_dims(const AttentionGeometry& of) {
  DimList dims(of.rows);
  for (const Dim& dim : of.values) dims.push_back(dim);
  return dims;
}

plan::DType log_sum_dtype(plan::DType dtype) {
  return dtype == plan::DType::f64 ? plan::DType::f64 : plan::DType::f32;
}

}  // namespace weft::ops
