// Losses: the scalar output of an ONNX graph for training.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Status OnnxResolver::add_loss(std::uint32_t of) {
  if (!loss_.empty()) return user_error("expected one loss, found two");
  loss_ = node_->outputs[0];
  loss_of_ = of;
  return {};
}

// Classes are the second dim of the scores.
Status OnnxResolver::add_cross_entropy() {
  WEFT_TRY(scores, operand(0));
  WEFT_TRY(labels, operand(1));
  if (given(2)) return user_error("class weights are not supported");
  if (node_->outputs.size() > 1 && !node_->outputs[1].empty())
    return user_error("expected only the loss, found a log_prob output");
  const auto reduction = node_->attributes.find("reduction");
  if (reduction != node_->attributes.end() && reduction->second.word != "mean")
    return user_error(
        fmt::format("reduction: expected mean, found '{}'", formats::shown(reduction->second.word)));
  ModelShape rows = shape(scores);
  if (rows.size() >= 2) rows.erase(rows.begin() + 1);
  if (shape(scores).size() < 2 || !whole_.contains(labels) || rows != shape(labels))
    return user_error(fmt::format("expected scores [n, classes, ..] and labels [n, ..], found {} and {}",
                                  formats::print_shape(shape(scores)), formats::print_shape(shape(labels))),
                      "labels must be an integer input that Gather does not use");
  // A label that is not a class contributes nothing, as in ONNX.
  const std::int64_t classes = shape(scores)[1], ignored = whole("ignore_index", -1);
  if (ignored >= 0 && ignored < classes)
    return user_error(
        fmt::format("ignore_index: expected a value that is not a class, found {} of {}", ignored, classes));
  std::size_t at = 1;
  const auto flat_from = [&](std::uint32_t value) -> std::optional<std::uint32_t> {
    const std::uint32_t first = model_.file.inputs + model_.file.weights;
    if (value < first || model_.file.nodes[value - first].operation != Operation::reshape)
      return std::nullopt;
    return model_.file.nodes[value - first].operands[0];
  };
  // If both were flattened from [b, s, classes] and [b, s], the original values are used.
  if (const auto all = flat_from(scores), words = flat_from(labels); rows.size() == 1 && all && words) {
    ModelShape before = shape(*all);
    if (before.size() > 1 && before.back() == classes && (before.pop_back(), before == shape(*words))) {
      scores = *all;
      labels = *words;
      at = before.size();
    }
  }
  model_.loss = OnnxLoss{labels, at};
  return add_loss(scores);
}

Status OnnxResolver::add_mean() {
  WEFT_TRY(x, operand(0));
  WEFT_TRY(along, reduced_axes(shape(x).size()));
  const bool is_output = std::ranges::find(graph_.outputs, node_->outputs[0]) != graph_.outputs.end();
  if (!is_output || along.size() != shape(x).size() || whole("keepdims", 1) != 0) return reduce("mean");
  model_.loss = OnnxLoss{};
  return add_loss(x);
}

}  // namespace weft::imports
