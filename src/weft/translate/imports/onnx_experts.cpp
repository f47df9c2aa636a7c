// TopK, and the operators of mixtures of experts that python -m weft.export writes.
//
//   weft.ExpertSlots(experts, capacity; positions [b, s, k])   a slot for each choice, per b
//   weft.ExpertSend(x [b, s, d], slots [b, s, k])              [b, experts * capacity, d]
//   weft.ExpertMix(weights [b, s, k], slots, done)             [b, s, d]
#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Status OnnxResolver::add_top_k() {
  WEFT_TRY(x, operand(0));
  const ModelShape from = shape(x);
  WEFT_TRY(along, axis(whole("axis", -1), from.size()));
  if (along + 1 != from.size() || whole("largest", 1) != 1)
    return user_error("expected the largest of the last dim");
  const Folded* const k = known(1);
  if (k == nullptr || k->wholes.size() != 1) return user_error("expected a constant k");
  if (k->wholes[0] < 1 || k->wholes[0] > from.back())
    return user_error(fmt::format("k: expected 1 to {}, found {}", from.back(), k->wholes[0]));
  ModelShape to = from;
  to.back() = k->wholes[0];
  std::vector<std::size_t> labels = own_labels(x);
  labels.back() = from.size();
  if (!node_->outputs[0].empty()) WEFT_TRY_STATUS(push(labelled({x}, {labels}, "top_k"), to, "chosen"));
  if (node_->outputs.size() < 2 || node_->outputs[1].empty()) return {};
  WEFT_TRY_STATUS(push(labelled({x}, {labels}, "top_k_positions"), to, "position", 1));
  whole_.insert(model_.file.result(model_.file.nodes.size() - 1));
  return {};
}

Status OnnxResolver::add_expert_slots() {
  WEFT_TRY(positions, operand(0));
  const ModelShape to = shape(positions);
  const std::int64_t experts = whole("experts", 0), capacity = whole("capacity", 0);
  if (to.size() != 3 || !whole_.contains(positions))
    return user_error(
        fmt::format("expected positions [b, s, k] from TopK, found {}", formats::print_shape(to)));
  if (experts < 1 || capacity < 1 || experts > formats::kMostModelSize / capacity)
    return user_error(
        fmt::format("expected experts and capacity of 1 or more, found {} and {}", experts, capacity));
  WEFT_TRY_STATUS(
      push(labelled({positions}, {{0, 1, 2}}, fmt::format("slot {} {}", experts, capacity)), to, "slot"));
  const std::uint32_t made = model_.file.result(model_.file.nodes.size() - 1);
  whole_.insert(made);
  slots_[made] = experts * capacity;
  return {};
}

Result<std::uint32_t> OnnxResolver::slots(std::size_t i) const {
  WEFT_TRY(value, operand(i));
  if (!slots_.contains(value))
    return user_error(fmt::format("operand {}: expected the result of weft.ExpertSlots", i + 1));
  return value;
}

Status OnnxResolver::add_expert_send() {
  WEFT_TRY(x, operand(0));
  WEFT_TRY(place, slots(1));
  const ModelShape rows = shape(x), to = shape(place);
  if (rows.size() != 3 || rows[0] != to[0] || rows[1] != to[1])
    return user_error(fmt::format("expected rows [b, s, d] for slots {}, found {}", formats::print_shape(to),
                                  formats::print_shape(rows)));
  // The result's dims are b, p and d.
  return push(labelled({x, place}, {{0, 3, 2}, {0, 3, 4}}, "send"), {rows[0], slots_.at(place), rows[2]},
              "sent");
}

Status OnnxResolver::add_expert_mix() {
  WEFT_TRY(weight, operand(0));
  WEFT_TRY(place, slots(1));
  WEFT_TRY(done, operand(2));
  const ModelShape to = shape(place), from = shape(done);
  if (shape(weight) != to || from.size() != 3 || from[0] != to[0] || from[1] != slots_.at(place))
    return user_error(fmt::format("expected weights {} and results [{}, {}, d], found {} and {}",
                                  formats::print_shape(to), to[0], slots_.at(place),
                                  formats::print_shape(shape(weight)), formats::print_shape(from)));
  return push(labelled({weight, place, done}, {{0, 1, 3}, {0, 1, 3}, {0, 4, 2}}, "mix"),
              {to[0], to[1], from[2]}, "mixed");
}

}  // namespace weft::imports
