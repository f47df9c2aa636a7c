#include "weft/plan/ops/communication.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {

using plan::Monoid;

Status Communication::infer(const plan::NodeView& node, plan::ResultTypes& results) const {
  const Exchange exchange = this->exchange(node);
  if (axis(node).empty()) return user_error(fmt::format("{} needs the name of a mesh axis", name()));
  if (exchange.take == Exchange::Take::combined) {
    if (exchange.monoid == Monoid::none)
      return user_error(fmt::format("{} kind must be sum, max or min", name()));
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      WEFT_TRY_STATUS(expect(node, i, Elements::number));
      if (node.input_type(i).dtype != node.input_type(0).dtype)
        return user_error(fmt::format("values in one bucket must have the same dtype, found {} and {}",
                                      plan::name(node.input_type(0).dtype),
                                      plan::name(node.input_type(i).dtype)));
    }
  }
  if (exchange.take == Exchange::Take::root)
    WEFT_TRY_STATUS(expect_between("root", exchange.rank, 0, plan::kMostRanks - 1));
  if (exchange.take == Exchange::Take::shifted)
    WEFT_TRY_STATUS(expect_between("by", exchange.rank, -plan::kMostRanks, plan::kMostRanks));
  if (exchange.take == Exchange::Take::bordered) {
    WEFT_TRY_STATUS(expect_between("before", exchange.before, 0, plan::kMaxBorder));
    WEFT_TRY_STATUS(expect_between("after", exchange.after, 0, plan::kMaxBorder));
  }
  for (const Symbol index : {exchange.join, exchange.keep})
    if (index.valid()) WEFT_TRY_STATUS(pick(node.input_type(0).dims, {&index, 1}, node));
  if (exchange.join.valid() && exchange.join == exchange.keep)
    return user_error(
        fmt::format("{} needs two different indices, found {} twice", name(), node.text(exchange.join)));
  for (std::size_t i = 0; i < node.input_count(); ++i) WEFT_TRY_STATUS(results.add(node.input_type(i)));
  return {};
}

// Members of a bucket may have equal index names with different sizes, so a bucket is not sliced.
plan::Signature Communication::signature(const plan::NodeView& node) const {
  return node.input_count() == 1 ? parallel_loops(node) : plan::Signature();
}

plan::Work Communication::work(const plan::NodeView& node) const { return bytes_of(node); }

std::optional<plan::ExchangeKind> collective_of(const Exchange& exchange) {
  using enum plan::ExchangeKind;
  switch (exchange.take) {
    case Exchange::Take::combined: return exchange.keep.valid() ? reduce_scatter : all_reduce;
    case Exchange::Take::joined: return exchange.keep.valid() ? all_to_all : all_gather;
    default: return std::nullopt;
  }
}

// Called for every node, often: comparing addresses is faster than a dynamic cast.
const Communication* find_communication(const plan::Operator& op) {
  static const std::array<const Operator*, 9> all = {&all_reduce(),   &all_gather(),     &reduce_scatter(),
                                                     &all_to_all(),   &broadcast_from(), &permute_ranks(),
                                                     &slice_across(), &halo(),           &addends()};
  return std::ranges::find(all, &op) != all.end() ? static_cast<const Communication*>(&op) : nullptr;
}

}  // namespace weft::ops
