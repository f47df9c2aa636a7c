// weft/parallel/train/precision.h -- in which types a model computes, learns and remembers: a policy with a name.
//
//               weights, activations   gradients are       master    moments   loss, statistics
//               and products           summed in           weights             of norms, softmax
//   f32         f32                    f32                 -         f32       f32
//   bf16        bf16, sums in f32      f32, or bf16        f32       f32       f32
//   f16         f16, likewise          f32, or f16         f32       f32       f32; the loss is scaled
//   f8          as bf16, and products with weights of numbers that eight bits hold: see f8_products.h
//   pure_bf16   bf16, likewise         bf16                -         bf16      bf16
//
// Bytes a parameter by adam: 16, 18 (or 16), 18 (or 16), as bf16, and 8. The policy is in the plan, as types and casts: a
// parameter is of the narrow type, its master weight is a state beside its moments, the optimizer renews that,
// and the parameter is what it rounds to. Products, norms and softmax of narrow numbers compute in f32 inside.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

struct Precision {
  std::string_view name = "f32";
  plan::DType compute = plan::DType::f32;  // of what is declared without a type of its own
  bool mixed = false;                      // master weights, moments and losses are f32
  bool scales_loss = false;
  bool f8_products = false;

  friend bool operator==(const Precision&, const Precision&) = default;
};

std::span<const std::string_view> precision_names();
std::optional<Precision> find_precision(std::string_view name);

// bf16 and f16: what sums are not kept in.
constexpr bool is_narrow(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16;
}
constexpr plan::DType wide(plan::DType dtype) { return is_narrow(dtype) ? plan::DType::f32 : dtype; }

// The same model with its losses in f32: every output that is one narrow number, and what leads from the last
// products to it alone. The running statistics of batch norms are f32 as well.
Result<plan::Graph> with_wide_losses(const plan::Graph& forward);

// Has the backward pass widen once more what the forward pass widened: so the narrow numbers are what is kept.
Result<plan::Graph> with_widening_again(const plan::Graph& learning);

}  // namespace weft::train
