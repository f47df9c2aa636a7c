#include "weft/program/tasks/row_code.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/ops/rounded.h"
#include "weft/program/tasks/row_end.h"

namespace weft::program {
namespace {

using plan::Dim;
using plan::Monoid;
using plan::NodeView;
using plan::ValueId;

bool is_narrower(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16 || plan::is_f8(dtype);
}

// Whether `type` represents every value of `of` exactly.
bool holds_all(plan::DType type, plan::DType of) {
  if (type == of || of == plan::DType::boolean) return true;
  return plan::is_f8(of) && !plan::is_f8(type);
}

bool is_constant(const NodeView& node) { return &node.op() == &ops::constant(); }

// Whether a result computed in f32 from operands of their types fits its own type without rounding.
bool is_exact(const NodeView& node, std::size_t result) {
  const plan::DType dtype = node.result_type(result).dtype;
  if (!is_narrower(dtype)) return true;
  const plan::Operator& op = node.op();
  const bool chooses = &op == &ops::select(), reduces = &op == &ops::reduce();
  const bool keeps = chooses || &op == &ops::cast() || &op == &ops::neg() || &op == &ops::abs() ||
                     &op == &ops::relu() || &op == &ops::maximum() || &op == &ops::minimum() ||
                     (reduces && node.word(0) != "sum" && node.word(0) != "mean");
  if (!keeps) return false;
  for (std::size_t i = chooses ? 1 : 0; i < node.input_count(); ++i) {
    if (!holds_all(dtype, node.input_type(i).dtype)) return false;
    const NodeView maker = node.graph().view(node.graph().value(node.input(i)).producer);
    const ops::Numbers<ops::Rounded> numbers{.rounds = true};
    if (is_constant(maker) && !(numbers.stored({maker.real(0), 0}, dtype) == ops::Rounded{maker.real(0), 0}))
      return false;
  }
  return true;
}

class Writer {
 public:
  Writer(const Group& group, const RowCodeInputs& inputs)
      : group_(group),
        in_(inputs),
        row_(choose_row()),
        outer_dims_(domain().first(domain().size() - row_)),
        row_dims_(domain().last(row_)) {}

  RowLoop write() {
    for (const Dim& dim : outer_dims_) loop_.outer.push_back(dim.size);
    for (const Dim& dim : row_dims_) loop_.length *= dim.size;
    loop_.block = loop_.length;
    if (!group_.row_fixed) {
      // Even blocks, small enough that a dozen registers fit in the L1 cache.
      constexpr std::int64_t kLongest = 1024, kLanes = 16;
      const std::int64_t blocks = (loop_.length + kLongest - 1) / kLongest;
      loop_.block = ((loop_.length + blocks - 1) / blocks + kLanes - 1) / kLanes * kLanes;
      loop_.block = std::min(loop_.block, loop_.length);
    }
    for (const plan::NodeId id : group_.nodes) add(in_.graph.view(id));
    if (loop_.block == loop_.length) loop_.end = find_row_end(group_, outer_dims_, row_dims_, in_);
    return std::move(loop_);
  }

 private:
  std::span<const Dim> domain() const { return group_.domain; }

  // The longest row along which every operand is constant or contiguous. If that is short, a longer
  // row may justify copies of small operands that are uneven along it. For example, a bias of 16
  // channels, repeated over the 64 pixels of an image, serves every image of a batch.
  std::size_t choose_row() const {
    if (group_.row_fixed || domain().empty()) return group_.row;
    std::size_t size = std::max<std::size_t>(group_.row, 1);
    for_each_place([&](const Place& place) { size = shorten(place, size); });
    constexpr std::int64_t kShort = 128, kLong = 4096;
    for (std::size_t longer = group_.row; longer > size && points(domain().last(size)) < kShort; --longer)
      if (points(domain().last(longer)) <= kLong && is_worth_copies(longer)) return longer;
    return size;
  }

  // The places that the group reads and writes in memory, or might.
  template <class Act>
  void for_each_place(const Act& act) const {
    for (const plan::NodeId id : group_.nodes) {
      const NodeView node = in_.graph.view(id);
      for (const ValueId value : node.node().inputs)
        if (!in_.grouping.recomputed[value.value]) act(in_.grouping.places[value.value]);
      for (std::size_t k = 0; k < node.result_count(); ++k)
        if (!is_accumulated(group_, node)) act(in_.grouping.places[node.result(k).value]);
    }
  }

  static std::int64_t points(std::span<const Dim> dims) {
    std::int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.size;
    return count;
  }

  bool is_worth_copies(std::size_t row) const {
    constexpr std::int64_t kShare = 8;  // fraction of the loop's elements that may be copied
    bool worth = true;
    for_each_place([&](const Place& place) {
      const auto step = step_along(place, domain().last(row));
      if (step && (*step == 0 || *step == 1)) return;
      std::int64_t copied = points(domain().last(row));
      for (const Dim& dim : domain().first(domain().size() - row))
        if (place.find(dim.index) != nullptr) copied *= dim.size;
      worth &= copied * kShare <= points(domain());
    });
    return worth;
  }

  std::size_t shorten(const Place& place, std::size_t size) const {
    while (size > 1) {
      const auto step = step_along(place, domain().last(size));
      if (step && (*step == 0 || *step == 1)) break;
      --size;
    }
    return size;
  }

  std::uint16_t new_register(bool run) {
    WEFT_CHECK(loop_.is_run.size() < RowInstruction::kNone);
    loop_.is_run.push_back(run);
    return static_cast<std::uint16_t>(loop_.is_run.size() - 1);
  }

  bool is_run(std::uint16_t reg) const { return loop_.is_run[reg]; }

  std::uint16_t add_operand(ValueId value, const Place& place) {
    RowOperand operand{value, place, {}, 0, false};
    for (const Dim& dim : outer_dims_) operand.outer.push_back(place.stride(dim.index));
    const auto step = step_along(place, row_dims_);
    WEFT_CHECK(step.has_value());
    operand.along = *step;
    loop_.operands.push_back(std::move(operand));
    return static_cast<std::uint16_t>(loop_.operands.size() - 1);
  }

  // The register with a value rounded to its type, computed or loaded on first use.
  std::uint16_t get(ValueId value) {
    if (const auto found = registers_.find(value.value); found != registers_.end()) return rounded(value);
    std::uint16_t reg = RowInstruction::kNone;
    const NodeView maker = in_.graph.view(in_.graph.value(value).producer);
    // Lanes do not hold integers: an integer read here is a constant or a position, even if it has
    // been stored for another reader.
    if (in_.grouping.recomputed[value.value] || is_constant(maker) ||
        is_integer(in_.graph.type(value).dtype)) {
      reg = recompute(maker);
      if (!is_constant(maker) && !is_exact(maker, 0)) wide_.insert(value.value);
    } else {
      Place place = in_.grouping.places[value.value];
      const auto step = step_along(place, row_dims_);
      if (!step || (*step > 1 && row_dims_.size() > 1)) place = even_copy(value, place);
      RowInstruction load{.step = RowStep::load};
      load.memory = add_operand(value, place);
      reg = load.result = new_register(loop_.operands.back().along != 0);
      loop_.code.push_back(load);
    }
    registers_.emplace(value.value, reg);
    return rounded(value);
  }

  std::uint16_t rounded(ValueId value) {
    std::uint16_t& reg = registers_.at(value.value);
    if (wide_.erase(value.value) == 0) return reg;
    RowInstruction instruction{.step = RowStep::round, .node = in_.graph.value(value).producer};
    instruction.operands[0] = reg;
    instruction.dtype = in_.graph.type(value).dtype;
    return reg = push(instruction, is_run(reg));
  }

  // Copies a value that is uneven along the row, repeated along row indices that it lacks.
  Place even_copy(ValueId value, const Place& place) const {
    std::vector<Dim> dims;
    Order order;
    for (std::size_t i = 0; i < domain().size(); ++i) {
      const bool in_row = i >= outer_dims_.size();
      if (!in_row && place.find(domain()[i].index) == nullptr) continue;
      dims.push_back(domain()[i]);
      order.push_back(domain()[i].index);
    }
    return in_.copied(value, place_in_order({}, plan::Type{place.dtype, dims}, order));
  }

  std::uint16_t recompute(const NodeView& node) {
    if (is_constant(node)) return number(node.real(0), node.id());
    if (&node.op() == &ops::position()) return position(node);
    return compute(node);
  }

  std::uint16_t number(double value, plan::NodeId node) {
    RowInstruction instruction{.step = RowStep::number, .node = node};
    instruction.number = value;
    return push(instruction, false);
  }

  std::uint16_t position(const NodeView& node) {
    RowInstruction instruction{.step = RowStep::position, .node = node.id()};
    instruction.size = node.integer(1);
    instruction.first = node.integer(2);
    for (std::size_t i = 0; i < outer_dims_.size(); ++i)
      if (outer_dims_[i].index == node.symbol(0)) instruction.loop = static_cast<std::int32_t>(i);
    if (instruction.loop >= 0) return push(instruction, false);
    for (std::size_t i = row_dims_.size(); i-- > 0 && row_dims_[i].index != node.symbol(0);)
      instruction.repeat *= row_dims_[i].size;
    return push(instruction, true);
  }

  std::uint16_t compute(const NodeView& node) {
    // Lanes are f32 or boolean; narrower types are rounded when they are stored or read.
    if (&node.op() == &ops::cast() && node.result_type(0).dtype != plan::DType::boolean)
      return get(node.input(0));
    RowInstruction instruction{.step = RowStep::compute, .node = node.id(), .op = &node.op()};
    bool run = false;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      instruction.operands[i] = get(node.input(i));
      run |= is_run(instruction.operands[i]);
    }
    return push(instruction, run);
  }

  // Spreads a single where a step needs one element per position of the row.
  std::uint16_t as_run(std::uint16_t reg) {
    if (is_run(reg) || row_dims_.empty()) return reg;
    RowInstruction instruction{.step = RowStep::spread};
    instruction.operands[0] = reg;
    return push(instruction, true);
  }

  std::uint16_t push(RowInstruction instruction, bool run) {
    instruction.result = new_register(run);
    loop_.code.push_back(instruction);
    return instruction.result;
  }

  void add(const NodeView& node) {
    if (&node.op() == &ops::reduce() || &node.op() == &ops::contract()) return add_reduction(node);
    if (&node.op() == &ops::softmax() || &node.op() == &ops::layer_norm() || &node.op() == &ops::rms_norm())
      return add_window(node);
    finish(node, 0, compute(node));
  }

  void add_window(const NodeView& node) {
    const bool softmax = &node.op() == &ops::softmax();
    RowInstruction instruction{.step = softmax                            ? RowStep::softmax
                                       : &node.op() == &ops::layer_norm() ? RowStep::layer_norm
                                                                          : RowStep::rms_norm,
                               .node = node.id()};
    instruction.operands[0] = as_run(get(node.input(0)));
    if (!softmax) {
      instruction.number = node.real(1);
      instruction.second = new_register(false);
    }
    const std::uint16_t result = push(instruction, true);
    finish(node, 0, result);
    if (!softmax) finish(node, 1, instruction.second);
  }

  void add_reduction(const NodeView& node) {
    const plan::Type to = node.result_type(0);
    const bool sums = &node.op() == &ops::contract();
    const std::string_view kind = sums ? std::string_view("sum") : node.word(0);
    const Monoid monoid = kind == "max" || kind == "peak" || kind == "largest" ? Monoid::max
                          : kind == "min"                                      ? Monoid::min
                                                                               : Monoid::sum;
    double divisor = 1;
    if (kind == "mean") {
      divisor = static_cast<double>(node.integer(2));
      if (divisor == 0)
        divisor = static_cast<double>(node.input_type(0).elements()) / static_cast<double>(to.elements());
    }
    const bool along_row = std::ranges::any_of(row_dims_, [&](const Dim& dim) { return !to.has(dim.index); });
    const bool over_rows = is_accumulated(group_, node);
    std::vector<std::uint16_t> operands;
    for (const ValueId input : node.node().inputs) operands.push_back(get(input));
    if (kind == "largest") {
      RowInstruction size{.step = RowStep::compute, .node = node.id(), .op = &ops::abs()};
      size.operands[0] = operands[0];
      operands[0] = push(size, is_run(operands[0]));
    }

    if (!along_row && !over_rows) {  // no sum: a product
      RowInstruction instruction{.step = RowStep::compute, .node = node.id(), .op = &ops::mul()};
      if (operands.size() == 1) return finish(node, 0, operands[0]);
      instruction.operands = {operands[0], operands[1], RowInstruction::kNone};
      return finish(node, 0, push(instruction, is_run(operands[0]) || is_run(operands[1])));
    }
    if (along_row) {
      RowInstruction instruction{
          .step = operands.size() == 2 ? RowStep::dot : RowStep::reduce, .monoid = monoid, .node = node.id()};
      instruction.number = over_rows ? 1 : divisor;
      for (std::size_t i = 0; i < operands.size(); ++i) instruction.operands[i] = as_run(operands[i]);
      const std::uint16_t single = push(instruction, false);
      if (!over_rows) return finish(node, 0, single);
      operands = {single};
    }
    const Place& place = in_.grouping.places[node.result(0).value];
    RowInstruction instruction{.step = RowStep::accumulate, .monoid = monoid, .node = node.id()};
    instruction.memory = add_operand(node.result(0), place);
    for (std::size_t i = 0; i < operands.size(); ++i) instruction.operands[i] = operands[i];
    loop_.code.push_back(instruction);
    loop_.accumulators.push_back({.memory = instruction.memory,
                                  .partials = {},
                                  .result = place,
                                  .elements = place.elements(),
                                  .monoid = monoid,
                                  .divisor = divisor});
  }

  void finish(const NodeView& node, std::size_t result, std::uint16_t reg) {
    const ValueId value = node.result(result);
    registers_[value.value] = reg;
    if (!is_exact(node, result)) wide_.insert(value.value);
    if (!in_.is_stored(value)) return;
    RowInstruction store{.step = RowStep::store};
    store.memory = add_operand(value, in_.grouping.places[value.value]);
    store.operands[0] = reg;
    loop_.code.push_back(store);
  }

  const Group& group_;
  const RowCodeInputs& in_;
  const std::size_t row_;
  const std::span<const Dim> outer_dims_, row_dims_;
  RowLoop loop_;
  std::unordered_map<std::uint32_t, std::uint16_t> registers_;  // by value
  std::unordered_set<std::uint32_t> wide_;  // values whose registers are more precise than their types
};

}  // namespace

std::string_view name(RowStep step) {
  constexpr std::array<std::string_view, 13> kNames = {
      "load",   "store", "number",  "position",   "spread",   "compute",   "round",
      "reduce", "dot",   "softmax", "layer-norm", "rms-norm", "accumulate"};
  return kNames[static_cast<std::size_t>(step)];
}

std::int64_t RowLoop::rows() const {
  std::int64_t count = 1;
  for (const std::int64_t size : outer) count *= size;
  return count;
}

RowLoop make_row_loop(const Group& group, const RowCodeInputs& inputs) {
  return Writer(group, inputs).write();
}

}  // namespace weft::program
