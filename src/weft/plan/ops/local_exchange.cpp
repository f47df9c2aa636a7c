#include "weft/plan/ops/local_exchange.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 15> kExchangeAttributes = {
    {{"kind", AttributeKind::word},
     {"axis", AttributeKind::word},
     {"ranks", AttributeKind::integer},
     {"type", AttributeKind::type},
     {"along", AttributeKind::word, false, 0, ""},
     {"to", AttributeKind::word, false, 0, ""},
     {"monoid", AttributeKind::word, false, 0, "sum"},
     {"by", AttributeKind::integer, false},
     {"takes", AttributeKind::integer, false, 1},
     {"size", AttributeKind::integer, false},
     {"before", AttributeKind::integer, false},
     {"after", AttributeKind::integer, false},
     {"tag", AttributeKind::integer, false},
     {"parts", AttributeKind::integer, false, 1},
     {"priority", AttributeKind::word, false, 0, kNormalPriority}}};
constexpr std::size_t kExchangeKind = 0, kExchangeAxis = 1, kExchangeRanks = 2, kExchangeType = 3,
                      kExchangeAlong = 4, kExchangeTo = 5, kExchangeMonoid = 6, kExchangeBy = 7,
                      kExchangeTakes = 8, kExchangeSize = 9, kExchangeBefore = 10, kExchangeAfter = 11,
                      kExchangeTag = 12, kExchangeParts = 13, kExchangePriority = 14;

bool is_block(std::int64_t size, std::int64_t whole, std::int32_t ranks) {
  const std::int64_t first = plan::share_of(whole, ranks, 0).size;
  return size == first || (whole % first != 0 && size == whole % first);
}

class Exchanging final : public OperatorOf<Exchanging> {
 public:
  std::string_view name() const override { return "exchange"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kExchangeAttributes; }
  std::size_t min_inputs() const override { return 0; }
  std::size_t max_inputs() const override { return Communication::kMostMembers; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    if (!plan::find_exchange_kind(node.word(kExchangeKind)))
      return user_error(fmt::format("unknown kind of exchange '{}'", node.word(kExchangeKind)),
                        did_you_mean(node.word(kExchangeKind), plan::kExchangeKinds));
    if (node.word(kExchangeAxis).empty()) return user_error("exchange needs the name of a mesh axis");
    if (plan::find_monoid(node.word(kExchangeMonoid)) == plan::Monoid::none)
      return user_error(fmt::format("monoid must be sum, max or min, found {}", node.word(kExchangeMonoid)));
    WEFT_TRY_STATUS(expect_between("ranks", node.integer(kExchangeRanks), 1, plan::kMostRanks));
    WEFT_TRY_STATUS(expect_between("by", node.integer(kExchangeBy), -plan::kMostRanks, plan::kMostRanks));
    WEFT_TRY_STATUS(expect_between("takes", node.integer(kExchangeTakes), 0, 1));
    WEFT_TRY_STATUS(expect_between("size", node.integer(kExchangeSize), 0, kLargestStep));
    WEFT_TRY_STATUS(expect_between("before", node.integer(kExchangeBefore), 0, plan::kMaxBorder));
    WEFT_TRY_STATUS(expect_between("after", node.integer(kExchangeAfter), 0, plan::kMaxBorder));
    const LocalExchange what = read_local_exchange(node);
    WEFT_TRY_STATUS(expect_between("tag", what.tag, 0, plan::kLargestTag));
    WEFT_TRY_STATUS(expect_between("parts", what.calls, 1, kMostParts));
    if (what.calls > 1 && what.kind != ExchangeKind::all_reduce)
      return user_error(fmt::format("only an all-reduce may have parts, found {}", name_of(node)));
    WEFT_TRY_STATUS(check_priority(what.priority));
    if (what.priority != kNormalPriority && what.kind != ExchangeKind::all_reduce)
      return user_error(
          fmt::format("only an all-reduce may have {} priority, found {}", what.priority, name_of(node)));
    if (what.kind == ExchangeKind::broadcast_from || what.kind == ExchangeKind::halo || is_message(what.kind))
      WEFT_TRY_STATUS(expect_between("by", what.by, 0, what.ranks - 1));
    WEFT_TRY_STATUS(check_sides(node, what));
    WEFT_TRY_STATUS(results.add(node.type(kExchangeType)));
    for (std::size_t i = 1; i < node.input_count(); ++i) {
      const plan::Type type = node.input_type(i);
      if (what.kind != ExchangeKind::all_reduce || !what.takes)
        return user_error(
            fmt::format("only an all-reduce may have several operands, found {}", name_of(node)));
      if (type.dtype != node.input_type(0).dtype)
        return user_error(fmt::format("values in one bucket must have the same dtype, found {} and {}",
                                      plan::name(node.input_type(0).dtype), plan::name(type.dtype)));
      WEFT_TRY_STATUS(results.add(type));
    }
    return {};
  }

  // The result depends on the other ranks, so the node cannot be sliced further.
  plan::Signature signature(const NodeView&) const override { return {}; }
  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  template <class T>
  void evaluate(Evaluation<T>&) const {
    WEFT_CHECK(false, "an exchange needs the other ranks");
  }

 private:
  static std::string_view name_of(const NodeView& node) { return node.word(kExchangeKind); }

  // A halo must send and receive what its blocks imply, or nothing if it is empty along other
  // indices.
  static Status check_halo(const NodeView& node, const LocalExchange& what) {
    if (!what.gives && !what.takes) return {};
    if (what.gives) WEFT_TRY_STATUS(pick(node.input_type(0).dims, {&what.joins, 1}, node));
    if (what.takes) WEFT_TRY_STATUS(pick(node.type(kExchangeType).dims, {&what.joins, 1}, node));
    std::int64_t given = 0, taken = 0;
    for (std::int64_t rank = 0; rank < what.ranks; ++rank) {
      given += halo_between(what, what.by, rank).size;
      taken += halo_between(what, rank, what.by).size;
    }
    const std::int64_t gives = what.gives ? node.input_type(0).size_of(what.joins) : 0,
                       takes = what.takes ? node.type(kExchangeType).size_of(what.joins) : 0;
    if (gives == given && takes == taken) return {};
    return user_error(
        fmt::format("by its blocks, rank {} of a halo sends {} and receives {} elements, found {} and {}",
                    what.by, given, taken, gives, takes));
  }

  // Operand and result agree on every index that is neither joined nor scattered. Along those, one
  // side has the whole index and the other a block.
  static Status check_sides(const NodeView& node, const LocalExchange& what) {
    const plan::Type to = node.type(kExchangeType);
    const bool uses_along = what.joins.valid() || what.parts.valid();
    const bool is_halo = what.kind == ExchangeKind::halo;
    const bool is_gather =
        what.kind == ExchangeKind::all_gather || what.kind == ExchangeKind::all_to_all || is_halo;
    const bool is_scatter =
        what.kind == ExchangeKind::reduce_scatter || what.kind == ExchangeKind::all_to_all;
    if (uses_along && (node.text(is_gather ? what.joins : what.parts).empty() ||
                       (is_gather && is_scatter && node.text(what.parts).empty())))
      return user_error(fmt::format("{} needs the index to communicate along", node.word(kExchangeKind)));
    if (what.joins.valid() && what.joins == what.parts)
      return user_error(
          fmt::format("all-to-all needs two different indices, found {} twice", node.text(what.joins)));
    if (is_halo) WEFT_TRY_STATUS(check_halo(node, what));
    if (is_message(what.kind) &&
        (what.gives != (what.kind == ExchangeKind::send) || what.gives == what.takes))
      return user_error("send needs an operand and takes=0; receive needs no operand and takes=1");
    if (!what.takes) {
      if (to.rank() != 0) return user_error("an exchange with takes=0 must have a type without indices");
      if (what.gives && what.parts.valid())
        WEFT_TRY_STATUS(pick(node.input_type(0).dims, {&what.parts, 1}, node));
      return {};
    }
    for (const Symbol index : {what.joins, what.parts})
      if (index.valid()) WEFT_TRY_STATUS(pick(to.dims, {&index, 1}, node));
    if (!what.gives) return {};
    const plan::Type from = node.input_type(0);
    bool agree = from.dtype == to.dtype && from.rank() == to.rank();
    for (std::size_t i = 0; agree && i < to.rank(); ++i) {
      const plan::Dim &x = from.dims[i], &y = to.dims[i];
      agree = x.index == y.index && (x.index == what.joins   ? is_halo || is_block(x.size, y.size, what.ranks)
                                     : x.index == what.parts ? is_block(y.size, x.size, what.ranks)
                                                             : x.size == y.size);
    }
    if (agree) return {};
    const Symbols& symbols = node.graph().symbols();
    return user_error(fmt::format("{} over {} ranks cannot make {} of {}", node.word(kExchangeKind),
                                  what.ranks, print(to, symbols), print(from, symbols)));
  }
};

}  // namespace

Status check_priority(std::string_view priority) {
  if (priority == kNormalPriority || priority == kLowPriority) return {};
  return user_error(
      fmt::format("priority must be {} or {}, found {}", kNormalPriority, kLowPriority, priority));
}

ExchangeKind exchange_kind(const NodeView& node) {
  const auto kind = plan::find_exchange_kind(node.word(kExchangeKind));
  WEFT_CHECK(kind.has_value(), "unknown kind of exchange");
  return *kind;
}

LocalExchange read_local_exchange(const NodeView& node) {
  LocalExchange what;
  what.kind = exchange_kind(node);
  what.axis = node.word(kExchangeAxis);
  what.ranks = static_cast<std::int32_t>(node.integer(kExchangeRanks));
  if (what.kind == ExchangeKind::all_gather || what.kind == ExchangeKind::all_to_all ||
      what.kind == ExchangeKind::halo)
    what.joins = node.symbol(kExchangeAlong);
  if (what.kind == ExchangeKind::reduce_scatter) what.parts = node.symbol(kExchangeAlong);
  if (what.kind == ExchangeKind::all_to_all) what.parts = node.symbol(kExchangeTo);
  what.monoid = plan::find_monoid(node.word(kExchangeMonoid));
  what.by = node.integer(kExchangeBy);
  what.gives = node.input_count() > 0;
  what.takes = node.integer(kExchangeTakes) != 0;
  what.size = node.integer(kExchangeSize);
  what.before = node.integer(kExchangeBefore);
  what.after = node.integer(kExchangeAfter);
  what.tag = node.integer(kExchangeTag);
  what.calls = node.integer(kExchangeParts);
  what.priority = node.word(kExchangePriority);
  return what;
}

plan::Share halo_between(const LocalExchange& what, std::int64_t from, std::int64_t to) {
  const auto block = [&](std::int64_t rank) {
    return plan::share_of(what.size, what.ranks, static_cast<std::int32_t>(rank));
  };
  if (from == to) return {block(from).begin, 0};
  return plan::overlap(block(from), plan::with_borders(block(to), what.before, what.after, what.size));
}

namespace {

Result<plan::NodeId> add_exchange_node(plan::Graph& graph, const LocalExchange& what,
                                       std::span<const plan::ValueId> operands, plan::TypeId type,
                                       bool takes) {
  const Symbol none = graph.symbol("");
  const Symbol along = what.joins.valid() ? what.joins : what.parts.valid() ? what.parts : none;
  const std::array<plan::AttributeValue, 15> attributes = {
      graph.symbol(name(what.kind)),
      graph.symbol(what.axis),
      std::int64_t{what.ranks},
      type,
      along,
      what.joins.valid() && what.parts.valid() ? what.parts : none,
      graph.symbol(plan::name(what.monoid)),
      what.by,
      std::int64_t{takes},
      what.size,
      what.before,
      what.after,
      what.tag,
      what.calls,
      graph.symbol(what.priority)};
  return graph.add(local_exchange(), operands, attributes);
}

}  // namespace

Result<plan::NodeId> add_local_bucket(plan::Graph& graph, const LocalExchange& what,
                                      std::span<const plan::ValueId> operands) {
  return add_exchange_node(graph, what, operands, graph.value(operands[0]).type, true);
}

Result<plan::ValueId> add_local_exchange(plan::Graph& graph, const LocalExchange& what, plan::ValueId operand,
                                         plan::TypeId type) {
  const bool takes = type.valid();
  if (!takes) {
    WEFT_TRY(nothing, graph.intern_type(what.dtype, {}));
    type = nothing;
  }
  const std::span<const plan::ValueId> operands(&operand, operand.valid() ? 1 : 0);
  WEFT_TRY(node, add_exchange_node(graph, what, operands, type, takes));
  return graph.result(node);
}

const Operator& local_exchange() {
  static const Exchanging op;
  return op;
}

}  // namespace weft::ops
