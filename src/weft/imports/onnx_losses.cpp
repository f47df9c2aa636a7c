// Losses: the one number that an ONNX graph for training gives.
#include <algorithm>

#include <fmt/format.h>

#include "weft/imports/onnx_resolver.h"

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
  if (given(2)) return user_error("expected no weights of classes");
  if (node_->outputs.size() > 1 && !node_->outputs[1].empty())
    return user_error("expected the loss alone, found log probabilities besides");
  if (node_->attributes.contains("ignore_index")) return user_error("ignore_index: expected none");
  const auto reduction = node_->attributes.find("reduction");
  if (reduction != node_->attributes.end() && reduction->second.word != "mean")
    return user_error(
        fmt::format("reduction: expected mean, found '{}'", formats::shown(reduction->second.word)));
  ModelShape rows = shape(scores);
  if (rows.size() >= 2) rows.erase(rows.begin() + 1);
  const bool is_input = labels < model_.file.inputs && !model_.positions.contains(labels);
  if (shape(scores).size() < 2 || !is_input || rows != shape(labels))
    return user_error(fmt::format("expected scores [n, classes, ..] and labels [n, ..], found {} and {}",
                                  formats::print_shape(shape(scores)), formats::print_shape(shape(labels))),
                      "labels are an input of whole numbers, and no positions of Gather");
  model_.loss = OnnxLoss{labels};
  return add_loss(scores);
}

Status OnnxResolver::add_mean() {
  WEFT_TRY(x, operand(0));
  const std::size_t rank = shape(x).size();
  std::vector<std::int64_t> axes = wholes("axes");
  if (given(1)) {
    if (known(1) == nullptr) return user_error("expected axes that are known");
    axes = known(1)->wholes;
  }
  std::set<std::size_t> along;
  for (const std::int64_t place : axes) {
    WEFT_TRY(at, axis(place, rank));
    along.insert(at);
  }
  const bool all = axes.empty() ? whole("noop_with_empty_axes", 0) == 0 : along.size() == rank;
  if (!all || whole("keepdims", 1) != 0)
    return user_error("expected the mean of a norm, or the loss: a mean of all that keeps no dims");
  model_.loss = OnnxLoss{};
  return add_loss(x);
}

}  // namespace weft::imports
