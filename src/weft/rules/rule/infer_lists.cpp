#include "weft/rules/rule/infer_lists.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::rule {
namespace {

using Lists = std::vector<std::optional<IndexList>>;

class Inference {
 public:
  Inference(const Rule& rule, const PatternNode& node, std::span<const std::optional<IndexList>> operands)
      : rule_(rule), node_(node), operands_(operands) {}

  Result<Lists> lists() {
    if (node_.op == nullptr) return Lists{joined()};
    const plan::Operator& op = *node_.op;
    WEFT_TRY_STATUS(check_indices());
    if (ops::is_pointwise(op)) return Lists{joined()};
    if (&op == &ops::contract() || &op == &ops::reduce() || &op == &ops::transpose())
      return Lists{named("to")};
    if (&op == &ops::broadcast()) return Lists{named("type")};
    if (&op == &ops::rename()) return Lists{renamed()};
    if (&op == &ops::split()) return Lists{replaced(named("along"), named("into"))};
    if (&op == &ops::merge()) return Lists{replaced(named("along"), named("into"))};
    if (&op == &ops::constant()) return Lists{IndexList()};
    if (&op == &ops::conv2d()) return Lists{by_place()};
    if (&op == &ops::layer_norm() || &op == &ops::rms_norm())
      return Lists{operands_[0], replaced(named("over"), {})};
    if (&op == &ops::batch_norm())
      return Lists{operands_[0], operands_[1], operands_[2], replaced(named("over"), {})};
    if (&op == &ops::attention()) return attended();
    if (&op == &ops::attention_gradient()) return Lists{operands_[0], operands_[1], operands_[2]};
    if (&op == &ops::cross_entropy()) return Lists{replaced(named("over"), {})};
    if (&op == &ops::linear_cross_entropy()) return Lists{IndexList(), operands_[0], operands_[1]};
    if (keeps_first()) return Lists{operands_[0]};
    return Lists(results_of(op));
  }

 private:
  bool keeps_first() const {
    constexpr std::array kSuch = {
        &ops::concat,         &ops::slice,        &ops::pad,           &ops::cast,
        &ops::softmax,        &ops::dropout,      &ops::rotary,        &ops::max_pool,
        &ops::avg_pool,       &ops::all_reduce,   &ops::all_gather,    &ops::all_to_all,
        &ops::reduce_scatter, &ops::slice_across, &ops::permute_ranks, &ops::broadcast_from};
    return std::ranges::any_of(kSuch, [&](const auto make) { return &make() == node_.op; });
  }

  // The index list that an attribute states.
  IndexList named(std::string_view attribute) const {
    const auto specs = node_.op->attributes();
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (specs[k].name == attribute) return node_.attributes[k].indices;
    return {};
  }

  // Checks attributes that name indices of the operands rather than new ones.
  Status check_indices() const {
    const auto specs = node_.op->attributes();
    const std::optional<IndexList> known = joined();
    if (!known) return {};
    for (std::size_t k = 0; k < specs.size(); ++k) {
      if (node_.attributes[k].kind != AttributeTerm::Kind::indices) continue;
      const bool makes_new = specs[k].kind == plan::AttributeKind::type || specs[k].name == "into" ||
                             (specs[k].name == "to" && node_.op == &ops::rename()) ||
                             node_.op == &ops::position();
      if (makes_new) continue;
      for (const std::uint16_t index : node_.attributes[k].indices)
        if (!has(*known, index))
          return user_error(fmt::format("{}: index {} is not among {}", specs[k].name,
                                        rule_.indices[index].name, print(rule_, *known)));
    }
    return {};
  }

  std::optional<IndexList> joined() const {
    IndexList result;
    for (const std::optional<IndexList>& operand : operands_) {
      if (!operand) return std::nullopt;
      for (const std::uint16_t index : *operand)
        if (!has(result, index)) result.push_back(index);
    }
    return result;
  }

  std::optional<IndexList> renamed() const {
    if (!operands_[0]) return std::nullopt;
    IndexList result = *operands_[0];
    const IndexList from = named("from"), to = named("to");
    for (std::size_t k = 0; k < std::min(from.size(), to.size()); ++k)
      std::ranges::replace(result, from[k], to[k]);
    return result;
  }

  // The first operand's list, with `others` in place of the first of `gone`.
  std::optional<IndexList> replaced(const IndexList& gone, const IndexList& others) const {
    if (!operands_[0]) return std::nullopt;
    IndexList result;
    for (const std::uint16_t index : *operands_[0]) {
      if (!gone.empty() && index == gone[0]) result.insert(result.end(), others.begin(), others.end());
      if (!has(gone, index)) result.push_back(index);
    }
    return result;
  }

  // Two lists: the rows (the queries' indices without the inner ones) plus the indices that the
  // values add; and the rows.
  Lists attended() const {
    if (!operands_[0] || !operands_[2]) return Lists(2);
    IndexList rows;
    const IndexList inner = named("inner"), over = named("over");
    for (const std::uint16_t index : *operands_[0])
      if (!has(inner, index)) rows.push_back(index);
    IndexList result = rows;
    for (const std::uint16_t index : *operands_[2])
      if (!has(rows, index) && !has(over, index)) result.push_back(index);
    return Lists{std::move(result), std::move(rows)};
  }

  std::optional<IndexList> by_place() const {
    const auto four = [&](const std::optional<IndexList>& list) {
      return list && list->size() == 4 &&
             std::ranges::none_of(*list, [&](std::uint16_t index) { return rule_.indices[index].many; });
    };
    if (!four(operands_[0]) || !four(operands_[1])) return std::nullopt;
    const IndexList &x = *operands_[0], &w = *operands_[1];
    return IndexList{x[0], w[0], x[2], x[3]};
  }

  const Rule& rule_;
  const PatternNode& node_;
  std::span<const std::optional<IndexList>> operands_;
};

}  // namespace

std::size_t results_of(const plan::Operator& op) {
  if (&op == &ops::batch_norm()) return 4;
  if (&op == &ops::adam() || &op == &ops::adamw() || &op == &ops::attention_gradient() ||
      &op == &ops::linear_cross_entropy())
    return 3;
  if (&op == &ops::layer_norm() || &op == &ops::rms_norm() || &op == &ops::top_k() ||
      &op == &ops::momentum() || &op == &ops::attention())
    return 2;
  return 1;
}

Result<std::vector<std::optional<IndexList>>> infer_lists(
    const Rule& rule, const PatternNode& node, std::span<const std::optional<IndexList>> operands) {
  return Inference(rule, node, operands).lists();
}

std::string print(const Rule& rule, const IndexList& list) {
  std::string text = "[";
  for (const std::uint16_t index : list) {
    if (text.size() > 1) text += ", ";
    text += rule.indices[index].name;
  }
  return text + "]";
}

}  // namespace weft::rule
