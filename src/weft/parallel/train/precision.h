// weft/parallel/train/precision.h -- precision policies.
//
//               weights, activations   gradients are       master    moments   loss, norm
//               and products           summed in           weights             statistics, softmax
//   f32         f32                    f32                 -         f32       f32
//   bf16        bf16, sums in f32      f32, or bf16        f32       f32       f32
//   f16         f16, likewise          f32, or f16         f32       f32       f32; the loss is scaled
//   f8          like bf16, but products with weights in f8: see f8_products.h
//   pure_bf16   bf16, likewise         bf16                -         bf16      bf16
//
// Bytes per parameter with Adam, in this order: 16, 18 (or 16), 18 (or 16), as bf16, and 8. The
// policy is in the plan, as types and casts. A parameter has the narrow type; its master weight is
// a state beside its moments. The optimizer updates the master weight, and the parameter is its
// rounded value. Products, norms and softmax of narrow numbers compute in f32 internally.
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
  plan::DType compute = plan::DType::f32;  // of declarations without a type
  bool mixed = false;                      // master weights, moments and losses are f32
  bool scales_loss = false;
  bool f8_products = false;

  friend bool operator==(const Precision&, const Precision&) = default;
};

std::span<const std::string_view> precision_names();
std::optional<Precision> find_precision(std::string_view name);

// bf16 and f16: sums are not accumulated in them.
constexpr bool is_narrow(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16;
}
constexpr plan::DType wide(plan::DType dtype) { return is_narrow(dtype) ? plan::DType::f32 : dtype; }

// The same model with its losses in f32: every narrow scalar output, and the nodes between the last
// products and it that serve nothing else. The running statistics of batch norms become f32 as
// well.
Result<plan::Graph> with_wide_losses(const plan::Graph& forward);

// Makes the backward pass repeat the widening casts of the forward pass, so that the narrow values
// are kept.
Result<plan::Graph> with_repeated_widening(const plan::Graph& learning);

}  // namespace weft::train
