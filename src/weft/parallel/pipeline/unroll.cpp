#include "weft/parallel/pipeline/unroll.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/roles.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/localize.h"

namespace weft::pipeline {
namespace {

using distribute::DistributedPlan;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Sums of many small terms lose precision, so they are accumulated at least in f32.
plan::DType sum_type(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16 ? plan::DType::f32 : dtype;
}

class Unroller {
 public:
  Unroller(const DistributedPlan& plan, Schedule schedule, std::int32_t rank)
      : plan_(plan),
        schedule_(std::move(schedule)),
        stage_(stage_of(plan.time->distribution, rank)),
        inner_(inner_rank(plan.time->distribution, rank)),
        micro_(schedule_.micro_batches),
        each_(plan.time->distribution.micro_batches),
        first_(taken_by(plan.time->distribution, rank).first) {
    const auto axis = distribute::stage_axis(plan.time->distribution);
    if (axis) stage_axis_ = plan.time->distribution.mesh.axes[*axis].name;
  }

  Result<Unrolled> run() && {
    WEFT_TRY(roles, roles_of(plan_));
    roles_ = std::move(roles);
    WEFT_TRY_STATUS(localize_all());
    find_sums();
    find_readers();
    WEFT_TRY_STATUS(begin());
    const std::vector<Pass>& order = schedule_.orders[static_cast<std::size_t>(stage_)];
    for (turn_ = 0; turn_ < order.size(); ++turn_) WEFT_TRY_STATUS(take_turn(order[turn_]));
    work_ = train::Pass::update;
    has_sent_ = false;
    WEFT_TRY_STATUS(update());
    WEFT_TRY_STATUS(add_outputs());
    note_work();
    made_.passes = order;
    note_turns();
    return std::move(made_);
  }

 private:
  // The rank's local plan, and that of one of its micro-batches.
  const Graph& local() const { return own_.graph; }
  const Graph& local(std::int32_t k) const { return locals_[static_cast<std::size_t>(k)].graph; }
  Graph& graph() { return made_.graph; }
  std::size_t maker_of(ValueId value) const { return local().value(value).producer.value; }
  Role role(std::size_t node) const { return roles_.role[origin_[node].value]; }
  std::int32_t position(std::size_t node) const { return plan_.time->position[origin_[node].value]; }
  std::int32_t owner(std::size_t node) const { return owner_at(schedule_, position(node)); }

  // The local plans of all micro-batches. They differ only in batch offsets, so a node has the same
  // id in all of them.
  Status localize_all() {
    WEFT_TRY(own, localize(own_place()));
    own_ = std::move(own);
    for (std::int32_t k = 0; k < micro_; ++k) {
      WEFT_TRY(made, localize(place_of(k)));
      locals_.push_back(std::move(made));
      bool alike = local(k).node_count() == local().node_count();
      for (std::size_t n = 0; alike && n < local().node_count(); ++n)
        alike = local(k).node(NodeId(n)).op == local().node(NodeId(n)).op &&
                std::ranges::equal(local(k).node(NodeId(n)).inputs, local().node(NodeId(n)).inputs);
      if (!alike)
        return user_error("its micro-batches are not equal", "use a batch that splits into equal parts");
    }
    const std::vector<std::size_t>& ends = own_.ends;
    for (std::size_t n = 0; n < ends.size(); ++n) origin_.resize(ends[n], NodeId(n));
    here_.assign(static_cast<std::size_t>(micro_), std::vector<ValueId>(local().value_count()));
    once_.resize(local().value_count());
    transplants_.emplace_back(local(), made_.graph);
    for (std::int32_t k = 0; k < micro_; ++k) transplants_.emplace_back(local(k), made_.graph);
    return {};
  }

  Result<spmd::LocalPlan> localize(std::int32_t place) const {
    return spmd::localize(plan_.graph, plan_.mesh, plan_.layouts, place, spmd::Exchanges::stay);
  }

  // Ranks of the plan's mesh: for the whole step, and for one of the rank's micro-batches. With
  // equal numbers per rank, these are its own.
  bool has_micro() const { return plan_.mesh.find(kMicroAxis) >= 0; }
  bool micro_is_first() const { return plan_.mesh.find(kMicroAxis) == 0 && plan_.mesh.axes.size() > 1; }
  std::int32_t own_place() const {
    return has_micro() && !micro_is_first() ? inner_ * static_cast<std::int32_t>(each_) : inner_;
  }
  std::int32_t place_of(std::int32_t k) const {
    if (!has_micro()) return inner_;
    if (micro_is_first()) return inner_ + k * (plan_.mesh.ranks() / plan_.mesh.axes[0].ranks);
    const auto axis = unequal_axis(plan_.time->distribution);
    if (!axis) return own_place() + k;
    const std::int64_t which = first_ + k;
    std::int32_t place = 0;
    for (std::size_t a = 0; a + 1 < plan_.mesh.axes.size(); ++a)
      place = place * plan_.mesh.axes[a].ranks +
              (a == *axis ? static_cast<std::int32_t>(which / each_) : plan_.mesh.coordinate(own_place(), a));
    return place * static_cast<std::int32_t>(each_) + static_cast<std::int32_t>(which % each_);
  }

  // -- sums over micro-batches --------------------------------------------------------------------

  bool is_sum(std::size_t node) const {
    return local().node(NodeId(node)).op == &ops::local_exchange() && roles_.sums[origin_[node].value];
  }

  // Finds the terms of every sum over micro-batches. A term that adds gradients from different
  // stages is split: each stage first sums its own. So a parameter that several stages hold costs
  // one message per step.
  void find_sums() {
    readers_.resize(local().value_count());
    for (std::size_t n = 0; n < local().node_count(); ++n)
      for (const ValueId input : local().node(NodeId(n)).inputs) readers_[input.value].push_back(n);
    left_out_.resize(local().node_count());
    is_addend_.resize(local().value_count());
    addends_.resize(local().node_count());
    for (std::size_t n = 0; n < local().node_count(); ++n)
      if (is_sum(n) && role(n) == Role::total) find_addends(local().node(NodeId(n)).inputs[0], addends_[n]);
  }

  void find_addends(ValueId value, std::vector<ValueId>& addends) {
    const NodeView node = local().view(NodeId(maker_of(value)));
    const bool may_part = &node.op() == &ops::add() && node.input_count() == 2 &&
                          role(node.id().value) == Role::micro && readers_[value.value].size() == 1 &&
                          !is_output(value);
    const auto is_like = [&](ValueId input) {
      return local().value(input).type == local().value(value).type && role(maker_of(input)) == Role::micro &&
             !ops::is_source(*local().node(NodeId(maker_of(input))).op);
    };
    if (may_part && is_like(node.input(0)) && is_like(node.input(1)) &&
        position(maker_of(node.input(0))) != position(maker_of(node.input(1)))) {
      left_out_[node.id().value] = true;
      find_addends(node.input(0), addends);
      find_addends(node.input(1), addends);
      return;
    }
    addends.push_back(value);
    is_addend_[value.value] = true;
  }

  bool is_output(ValueId value) const {
    return std::ranges::any_of(local().outputs(),
                               [&](const plan::Output& output) { return output.value == value; });
  }

  // -- readers ------------------------------------------------------------------------------------

  void find_readers() {
    by_place_.assign(static_cast<std::size_t>(schedule_.positions()), {});
    for (std::size_t n = 0; n < local().node_count(); ++n)
      if (role(n) == Role::micro && !ops::is_source(*local().node(NodeId(n)).op) && !left_out_[n])
        by_place_[static_cast<std::size_t>(position(n))].push_back(n);
    const std::vector<Stages> need = stages_that_need(plan_, roles_, schedule_);
    for (std::size_t v = 0; v < plan_.graph.value_count(); ++v)
      if (ops::is_source(*plan_.graph.node(plan_.graph.value(ValueId(v)).producer).op))
        holders_[std::string(plan_.graph.view(plan_.graph.value(ValueId(v)).producer).word(0))] = need[v];
    wanted_.resize(local().value_count());
    for (const plan::Output& output : local().outputs()) {
      if (output.updates.valid()) {
        const auto source = holders_.find(local().text(output.updates));
        if (source != holders_.end()) wanted_[output.value.value] |= source->second;
      } else if (local().type(output.value).rank() == 0) {
        wanted_[output.value.value] |=
            schedule_.stages == kMostStages ? ~Stages{0} : only(schedule_.stages) - 1;
      }
    }
  }

  // The other stages that read a value of a micro-batch, or of the whole step if k is empty.
  Stages readers_of(ValueId value, std::optional<std::int32_t> k) const {
    const bool once = k.value_or(0) == 0;  // a value read once per step is read from the first micro-batch
    Stages stages = once ? wanted_[value.value] : 0;
    for (const std::size_t reader : readers_[value.value]) {
      if (left_out_[reader] || is_sum(reader)) continue;
      if (role(reader) == Role::micro && k) stages |= only(schedule_.stage_at(position(reader), *k));
      if (role(reader) == Role::total && once) stages |= only(owner(reader));
    }
    return stages & ~only(stage_);
  }

  // -- messages -----------------------------------------------------------------------------------

  enum class Message : std::uint8_t { micro, sum, total };

  std::int64_t tag_of(Message what, ValueId value, std::int32_t k = 0) const {
    const auto values = static_cast<std::int64_t>(local().value_count());
    switch (what) {
      case Message::micro: return value.value * std::int64_t{micro_} + k;
      case Message::sum: return values * micro_ + value.value;
      case Message::total: break;
    }
    return values * (micro_ + 1) + value.value;
  }

  void set_place(std::size_t like) {
    const plan::Node& node = local().node(NodeId(like));
    graph().set_label(transplants_[0].symbol(node.label));
    graph().set_scope(node.scope);
    graph().set_when(node.when);
  }

  Status send(ValueId value, std::int32_t to, std::int64_t tag, std::size_t like) {
    set_place(like);
    const ops::LocalExchange what{.kind = ops::ExchangeKind::send,
                                  .axis = stage_axis_,
                                  .ranks = schedule_.stages,
                                  .joins = {},
                                  .parts = {},
                                  .by = to,
                                  .dtype = graph().type(value).dtype,
                                  .tag = tag};
    WEFT_TRY_STATUS(ops::add_local_exchange(graph(), what, value, {}));
    has_sent_ = true;
    return {};
  }

  Status send_to(Stages stages, ValueId value, std::int64_t tag, std::size_t like) {
    for (; stages != 0; stages &= stages - 1)
      WEFT_TRY_STATUS(send(value, std::countr_zero(stages), tag, like));
    return {};
  }

  Result<ValueId> receive(plan::TypeId type, std::int32_t from, std::int64_t tag, std::size_t like) {
    if (from == stage_)
      return user_error(fmt::format("the schedule {} reads {} before it is made", schedule_.name,
                                    describe(local(), NodeId(like))));
    // At the end of a step, a received value may depend on a sent one, but the plan does not
    // express this. A separate turn keeps the waiting node apart from the producing one.
    if (work_ == train::Pass::update && std::exchange(has_sent_, false)) {
      note_turns();
      ++turn_;
    }
    set_place(like);
    const ops::LocalExchange what{.kind = ops::ExchangeKind::receive,
                                  .axis = stage_axis_,
                                  .ranks = schedule_.stages,
                                  .joins = {},
                                  .parts = {},
                                  .by = from,
                                  .dtype = graph().type(type).dtype,
                                  .tag = tag};
    return ops::add_local_exchange(graph(), what, {}, type);
  }

  // -- copies of nodes ----------------------------------------------------------------------------

  Status begin() {
    for (std::size_t s = 0; s < local().scope_count(); ++s) {
      plan::Scope scope = local().scope(plan::ScopeId(s));
      scope.name = transplants_[0].symbol(scope.name);
      graph().add_scope(scope);
    }
    graph().name = local().name;
    for (std::size_t n = 0; n < local().node_count(); ++n) {
      const NodeView node = local().view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      const auto held = holders_.find(node.word(0));
      // The caller of a single-rank run feeds all inputs, read or not.
      if (schedule_.stages == 1 || (held != holders_.end() && (held->second & only(stage_)) != 0))
        WEFT_TRY_STATUS(source(n));
    }
    return {};
  }

  // A rank is fed all its rows at once; micro-batches are slices of them.
  Status source(std::size_t n) {
    const NodeView node = local().view(NodeId(n));
    ValueId& made = once_[node.result(0).value];
    if (made.valid()) return {};
    set_place(n);
    const Symbol along = &node.op() == &ops::input() ? cut_index(n) : Symbol();
    if (along.valid()) {
      std::vector<plan::Dim> dims;
      for (const plan::Dim& dim : node.result_type(0).dims)
        dims.push_back({transplants_[0].index(dim.index), dim.index != along ? dim.size : rows_of(n, along)});
      WEFT_TRY(type, graph().intern_type(node.result_type(0).dtype, dims));
      WEFT_TRY(input, ops::add_input(graph(), node.word(0), type));
      made = input;
      return {};
    }
    WEFT_TRY(copied, transplants_[0].node(node.id(), {}));
    made = graph().result(copied);
    return {};
  }

  // The index along which micro-batches slice an input, in the local plan.
  Symbol cut_index(std::size_t n) const {
    const int axis = plan_.mesh.find(kMicroAxis);
    if (axis < 0 || micro_ == 1) return {};
    const plan::AxisLayout& layout =
        plan_.layouts[plan_.graph.result(origin_[n]).value].axes[static_cast<std::size_t>(axis)];
    return layout.is_sliced() ? local().symbols().find(plan_.graph.text(layout.index)) : Symbol();
  }

  // Number of rows fed to the rank: of its micro-batches, or of the whole batch if they are not
  // adjacent.
  std::int64_t rows_of(std::size_t n, Symbol along) const {
    const std::string_view name = local().text(along);
    if (micro_is_first()) return whole_input(n).size_of(plan_.graph.symbols().find(name));
    return local().type(local().result(NodeId(n))).size_of(along) * micro_;
  }
  plan::Type whole_input(std::size_t n) const { return plan_.graph.type(plan_.graph.result(origin_[n])); }
  // The first row of a micro-batch among these.
  std::int64_t first_row(std::size_t n, Symbol along, std::int32_t k) const {
    if (!micro_is_first()) return k * local().type(local().result(NodeId(n))).size_of(along);
    const plan::Type type = whole_input(n);
    const plan::Layout& layout = plan_.layouts[plan_.graph.result(origin_[n]).value];
    const int dim = type.position(plan_.graph.symbols().find(local().text(along)));
    return plan::shares_of(type, layout, plan_.mesh, place_of(k))[static_cast<std::size_t>(dim)].begin;
  }

  Result<ValueId> slice_of_input(std::size_t n, std::int32_t k) {
    const ValueId value = local().result(NodeId(n));
    WEFT_TRY_STATUS(source(n));
    const Symbol along = cut_index(n);
    if (!along.valid()) return once_[value.value];
    set_place(n);
    const std::int64_t rows = local().type(value).size_of(along);
    const std::int64_t first = first_row(n, along, k);
    return ops::add_slice(graph(), once_[value.value], transplants_[0].index(along), first, first + rows);
  }

  // Copies a node for a micro-batch, or for the whole step if k is empty.
  Status make_again(std::size_t n, std::optional<std::int32_t> k, std::span<const ValueId> inputs,
                    std::vector<ValueId>& to) {
    set_place(n);
    WEFT_TRY(made, transplants_[k ? static_cast<std::size_t>(*k) + 1 : 0].node(NodeId(n), inputs));
    for (std::size_t r = 0; r < local().node(NodeId(n)).result_count; ++r)
      to[local().result(NodeId(n), r).value] = graph().result(made, r);
    return {};
  }

  // A value that depends on no input, or on inputs only, computed where it is first read.
  Result<ValueId> free_value(ValueId value, std::int32_t k) {
    const std::size_t n = maker_of(value);
    const bool each = roles_.each[origin_[n].value];
    std::vector<ValueId>& values = each ? here_[static_cast<std::size_t>(k)] : once_;
    if (values[value.value].valid()) return values[value.value];
    if (ops::is_source(*local().node(NodeId(n)).op)) {
      WEFT_TRY(slice, slice_of_input(n, k));
      return values[value.value] = slice;
    }
    if (is_sum(n)) {
      WEFT_TRY_STATUS(sum_of_free(n));
      return once_[value.value];
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : local().node(NodeId(n)).inputs) {
      WEFT_TRY(operand, free_value(input, k));
      inputs.push_back(operand);
    }
    WEFT_TRY_STATUS(make_again(n, each ? std::optional(k) : std::nullopt, inputs, values));
    return values[value.value];
  }

  // An operand of a node of micro-batch k.
  Result<ValueId> micro_value(ValueId value, std::int32_t k) {
    const std::size_t n = maker_of(value);
    if (role(n) == Role::free) return free_value(value, k);
    ValueId& known = here_[static_cast<std::size_t>(k)][value.value];
    if (known.valid()) return known;
    if (role(n) == Role::total)
      return user_error(fmt::format("{} needs the whole batch before a micro-batch can go on",
                                    describe(local(), NodeId(n))));
    WEFT_TRY(received, receive(transplants_[0].type(local().value(value).type),
                               schedule_.stage_at(position(n), k), tag_of(Message::micro, value, k), n));
    return known = received;
  }

  static bool is_of(train::Pass pass, Kind kind) {
    switch (kind) {
      case Kind::forward: return pass == train::Pass::forward;
      case Kind::backward: return pass == train::Pass::backward;
      case Kind::weight: return pass == train::Pass::weight;
      case Kind::whole_backward: return pass == train::Pass::backward || pass == train::Pass::weight;
    }
    return false;
  }

  Status take_turn(const Pass& pass) {
    const std::int32_t k = pass.micro_batch, place = schedule_.position(stage_, pass);
    std::vector<ValueId> inputs;
    for (const std::size_t n : by_place_[static_cast<std::size_t>(place)]) {
      if (!is_of(roles_.pass[origin_[n].value], pass.kind)) continue;
      work_ = roles_.pass[origin_[n].value];
      const NodeView node = local().view(NodeId(n));
      inputs.clear();
      for (const ValueId input : node.node().inputs) {
        WEFT_TRY(operand, micro_value(input, k));
        inputs.push_back(operand);
      }
      std::vector<ValueId>& here = here_[static_cast<std::size_t>(k)];
      WEFT_TRY_STATUS(make_again(n, k, inputs, here));
      for (std::size_t r = 0; r < node.result_count(); ++r) {
        const ValueId value = node.result(r);
        WEFT_TRY_STATUS(
            send_to(readers_of(value, k), here[value.value], tag_of(Message::micro, value, k), n));
        if (is_addend_[value.value]) WEFT_TRY_STATUS(add_up(value, here[value.value], n));
      }
      note_work();
    }
    note_turns();
    return {};
  }

  Status add_up(ValueId addend, ValueId value, std::size_t like) {
    set_place(like);
    WEFT_TRY(wide, ops::add_cast(graph(), value, sum_type(graph().type(value).dtype)));
    ValueId& sum = sums_[addend.value];
    if (!sum.valid()) {
      sum = wide;
      return {};
    }
    WEFT_TRY(more, ops::add_pointwise(graph(), ops::add(), {sum, wide}));
    sum = more;
    return {};
  }

  // -- once per step ------------------------------------------------------------------------------

  Status update() {
    for (std::size_t n = 0; n < local().node_count(); ++n) {
      if (role(n) != Role::total) continue;
      const bool is_mine = owner(n) == stage_;
      if (is_sum(n)) WEFT_TRY_STATUS(sum_up(n));
      if (!is_mine) continue;
      if (!is_sum(n)) WEFT_TRY_STATUS(make_total(n));
      for (std::size_t r = 0; r < local().node(NodeId(n)).result_count; ++r) {
        const ValueId value = local().result(NodeId(n), r);
        WEFT_TRY_STATUS(send_to(readers_of(value, {}), once_[value.value], tag_of(Message::total, value), n));
      }
    }
    note_turns();
    return {};
  }

  // Adds the partial sums of all stages, in the order of terms and stages, on the stage that owns
  // the sum.
  Status sum_up(std::size_t n) {
    const std::int32_t to = owner(n);
    ValueId total;
    for (const ValueId addend : addends_[n]) {
      const std::size_t maker = maker_of(addend);
      for (Stages stages = stages_at(schedule_, position(maker)); stages != 0; stages &= stages - 1) {
        const std::int32_t from = std::countr_zero(stages);
        if (from == stage_ && to != stage_)
          WEFT_TRY_STATUS(send(sums_.at(addend.value), to, tag_of(Message::sum, addend), n));
        if (to != stage_) continue;
        ValueId part;
        if (from == stage_) {
          part = sums_.at(addend.value);
        } else {
          const plan::Type type = local().type(addend);
          std::vector<plan::Dim> dims;
          for (const plan::Dim& dim : type.dims) dims.push_back({transplants_[0].index(dim.index), dim.size});
          WEFT_TRY(wide, graph().intern_type(sum_type(type.dtype), dims));
          WEFT_TRY(received, receive(wide, from, tag_of(Message::sum, addend), n));
          part = received;
        }
        WEFT_TRY_STATUS(join(total, part, n));
      }
    }
    return to == stage_ ? finish_sum(n, total) : Status();
  }

  // Values that are known for every micro-batch from the start, such as the number of labels, are
  // summed where they are read.
  Status sum_of_free(std::size_t n) {
    ValueId total;
    for (std::int32_t k = 0; k < micro_; ++k) {
      WEFT_TRY(value, free_value(local().node(NodeId(n)).inputs[0], k));
      set_place(n);
      WEFT_TRY(wide, ops::add_cast(graph(), value, sum_type(graph().type(value).dtype)));
      WEFT_TRY_STATUS(join(total, wide, n));
    }
    return finish_sum(n, total);
  }

  Status join(ValueId& total, ValueId part, std::size_t like) {
    if (!total.valid()) {
      total = part;
      return {};
    }
    set_place(like);
    WEFT_TRY(sum, ops::add_pointwise(graph(), ops::add(), {total, part}));
    total = sum;
    return {};
  }

  Status finish_sum(std::size_t n, ValueId total) {
    const ValueId result = local().result(NodeId(n));
    set_place(n);
    WEFT_TRY(cast, ops::add_cast(graph(), total, local().type(result).dtype));
    once_[result.value] = cast;
    return {};
  }

  Result<ValueId> total_value(ValueId value) {
    const std::size_t n = maker_of(value);
    if (role(n) != Role::total) return micro_value(value, 0);  // one micro-batch, or free
    ValueId& known = once_[value.value];
    if (known.valid()) return known;
    WEFT_TRY(received, receive(transplants_[0].type(local().value(value).type), owner(n),
                               tag_of(Message::total, value), n));
    return known = received;
  }

  Status make_total(std::size_t n) {
    std::vector<ValueId> inputs;
    for (const ValueId input : local().node(NodeId(n)).inputs) {
      WEFT_TRY(operand, total_value(input));
      inputs.push_back(operand);
    }
    return make_again(n, {}, inputs, once_);
  }

  Status add_outputs() {
    for (const plan::Output& output : local().outputs()) {
      if ((wanted_[output.value.value] & only(stage_)) == 0) continue;
      if (output.updates.valid()) {
        const auto source = holders_.find(local().text(output.updates));
        if (source == holders_.end() || (source->second & only(stage_)) == 0) continue;
      } else if (local().type(output.value).rank() != 0) {
        continue;
      }
      WEFT_TRY(value, total_value(output.value));
      transplants_[0].output(output, value);
    }
    return {};
  }

  void note_work() { made_.work.resize(graph().node_count(), work_); }
  void note_turns() { made_.turns.resize(graph().node_count(), static_cast<std::uint32_t>(turn_)); }

  const DistributedPlan& plan_;
  const Schedule schedule_;
  const std::int32_t stage_, inner_;
  const std::int32_t micro_;         // micro-batches of the rank
  const std::int64_t each_, first_;  // the average per rank, and the rank's first of all
  std::string stage_axis_;
  Roles roles_;
  spmd::LocalPlan own_;                             // of the whole step
  std::vector<spmd::LocalPlan> locals_;             // by micro-batch
  std::vector<NodeId> origin_;                      // by local node: its node in the plan
  std::vector<plan::Transplant> transplants_;       // of the whole step, then of each micro-batch
  std::vector<std::vector<std::size_t>> readers_;   // by local value
  std::vector<std::vector<std::size_t>> by_place_;  // micro nodes by position
  std::vector<std::vector<ValueId>> addends_;       // by local node that is a sum: its terms
  std::vector<bool> left_out_, is_addend_;
  std::vector<Stages> wanted_;  // by local value: stages that need it as an output
  std::map<std::string, Stages, std::less<>> holders_;
  std::vector<std::vector<ValueId>> here_;  // by micro-batch and local value: its value in the unrolled plan
  std::vector<ValueId> once_;               // likewise for values computed once per step
  std::map<std::uint32_t, ValueId> sums_;   // by term: the sum so far
  std::size_t turn_ = 0;
  bool has_sent_ = false;  // in this turn
  train::Pass work_ = train::Pass::forward;
  Unrolled made_;
};

}  // namespace

Result<Unrolled> unroll(const DistributedPlan& plan, std::int32_t rank) {
  WEFT_CHECK(plan.time.has_value());
  WEFT_TRY(schedule, schedule_of(plan.time->distribution, rank));
  return Unroller(plan, std::move(schedule), rank).run();
}

Result<std::vector<std::uint64_t>> stages_of_sources(const DistributedPlan& plan) {
  WEFT_TRY(schedule, schedule_of(plan.time->distribution));
  WEFT_TRY(roles, roles_of(plan));
  const std::vector<Stages> need = stages_that_need(plan, roles, schedule);
  std::vector<std::uint64_t> holders(plan.graph.node_count());
  for (std::size_t n = 0; n < holders.size(); ++n)
    if (ops::is_source(*plan.graph.node(NodeId(n)).op)) holders[n] = need[plan.graph.result(NodeId(n)).value];
  return holders;
}

}  // namespace weft::pipeline
