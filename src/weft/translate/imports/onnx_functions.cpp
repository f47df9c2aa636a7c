// Operators that are functions of WeftQL and refer to indices by name.
//
//   RMSNormalization(x, scale)
//   weft.Rotary(base; x [.., s, e])          rotary positions along s
//   weft.Band(lowest, highest; x [.., s, t]) x where lowest <= s - t <= highest, elsewhere minus infinity
#include <numeric>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

// A node whose dims are labels, as those of an Einsum; OnnxPrinter::function prints the form.
OnnxResolver::ModelNode OnnxResolver::labelled(std::vector<std::uint32_t> operands,
                                               std::vector<std::vector<std::size_t>> labels,
                                               std::string form) {
  ModelNode node = made(Operation::einsum, std::move(operands));
  node.labels = std::move(labels);
  model_.functions[model_.file.nodes.size()] = std::move(form);
  return node;
}

std::vector<std::size_t> OnnxResolver::own_labels(std::uint32_t value) const {
  std::vector<std::size_t> labels(shape(value).size());
  std::iota(labels.begin(), labels.end(), std::size_t{0});
  return labels;
}

// Positions, of an input or from TopK, as numbers.
Status OnnxResolver::number_of(std::uint32_t x) {
  ModelShape to = shape(x);
  std::vector<std::size_t> labels = own_labels(x);
  if (model_.positions.contains(x)) to.pop_back();
  return push(labelled({x}, {std::move(labels)}, "number"), std::move(to), "number");
}

Status OnnxResolver::add_rms_norm() {
  WEFT_TRY(x, operand(0));
  const ModelShape to = shape(x);
  WEFT_TRY(along, axis(whole("axis", -1), to.size()));
  if (along + 1 != to.size()) return user_error("axis: expected the last dim");
  WEFT_TRY(epsilon, epsilon_of());
  ModelNode norm = labelled({x}, {own_labels(x)}, fmt::format("rms_norm {}", epsilon));
  if (!given(1)) return push(std::move(norm), to, "norm");
  WEFT_TRY(inner, push_inner(std::move(norm), to, "norm"));
  WEFT_TRY(scale, operand(1));
  if (shape(scale) != ModelShape{to.back()})
    return user_error("expected a scale with one number per feature");
  model_.infixes[model_.file.nodes.size()] = " * ";
  return push(made(Operation::mul, {inner, scale}), to, "scaled");
}

Status OnnxResolver::add_rotary() {
  WEFT_TRY(x, operand(0));
  const ModelShape to = shape(x);
  const double base = real("base", 10000);
  if (to.size() < 2 || to.back() % 2 != 0)
    return user_error(fmt::format("expected [.., s, e] with an even e, found {}", formats::print_shape(to)));
  if (!(base > 0)) return user_error(fmt::format("base: expected a number above 0, found {}", base));
  return push(labelled({x}, {own_labels(x)}, fmt::format("rotary {}", base)), to, "rotated");
}

Status OnnxResolver::add_band() {
  WEFT_TRY(x, operand(0));
  const ModelShape to = shape(x);
  if (to.size() < 2)
    return user_error(fmt::format("expected scores [.., s, t], found {}", formats::print_shape(to)));
  std::string form = "band";
  for (const std::string_view key : {"lowest", "highest"}) {
    if (!node_->attributes.contains(std::string(key))) continue;
    const std::int64_t bound = whole(key, 0);
    if (bound <= -formats::kMostModelSize || bound >= formats::kMostModelSize)
      return user_error(fmt::format("{}: expected a distance of positions, found {}", key, bound));
    form += fmt::format(" {} {}", key, bound);
  }
  if (form == "band") return alias();
  return push(labelled({x}, {own_labels(x)}, std::move(form)), to, "inside");
}

}  // namespace weft::imports
