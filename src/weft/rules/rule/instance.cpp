#include "weft/rules/rule/instance.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/build_side.h"
#include "weft/rules/rule/draw_layouts.h"
#include "weft/rules/rule/draw_sizes.h"
#include "weft/rules/rule/rounded_constants.h"
#include "weft/rules/rule/row_positions.h"

namespace weft::rule {
namespace {

// An instance is run hundreds of times, so values and loops are small.
constexpr std::int64_t kMostElements = 1 << 12;
constexpr double kMostFlops = 1 << 17;

template <class T, std::size_t N>
const T& pick(Random& random, const std::array<T, N>& from) {
  return from[random.below(N)];
}

class InstanceDraw {
 public:
  InstanceDraw(const Rule& rule, Random& random, const InstanceOptions& options)
      : rule_(rule),
        random_(random),
        options_(options),
        breakpoints_(rule),
        distributed_(is_distributed(rule)),
        dtypes_(dtypes_of(rule)) {}

  Result<RuleInstance> attempt() {
    RuleInstance made;
    draw_dtypes();
    draw_operators(made);
    if (distributed_) made.mesh = draw_mesh(rule_, random_, options_.wide ? &breakpoints_ : nullptr);
    draw_variables(made);
    ++attempts_;
    const std::vector<std::int64_t> ranks = ranks_by_variable(made);
    IndexDraw indices(rule_, made.bindings.attributes, random_, options_,
                      options_.wide ? &breakpoints_ : nullptr, ranks);
    for (const std::vector<int>& names : indices.names()) {
      std::vector<Symbol>& symbols = made.bindings.indices.emplace_back();
      for (const int name : names) symbols.push_back(made.graph.symbol(fmt::format("i{}", name)));
    }
    WEFT_TRY(inputs, add_inputs(made, indices));
    Site site{made.graph, rule_, made.bindings, {}, &made.mesh, {}};
    for (std::size_t name = 0; name < indices.sizes().size(); ++name)
      site.fresh_sizes[made.graph.symbol(fmt::format("i{}", name)).value] = indices.sizes()[name];
    WEFT_TRY(left, build_left(site, inputs));
    made.left = std::move(left);
    WEFT_TRY_STATUS(small_enough(made.graph));
    if (distributed_) WEFT_TRY_STATUS(lay_out(made));
    if (const Condition* failing = first_that_fails(rule_.when, made.place(rule_)))
      return user_error(fmt::format("guard: {}", print({*failing}, rule_)));
    for (const Rule::Output& output : rule_.outputs)
      made.graph.add_output(made.graph.symbol("left." + output.name), made.left[output.left]);
    WEFT_TRY_STATUS(add_right(made, site));
    made.held = with_rounded_constants(made.graph);
    made.judges_rounded_constants = states_constants(rule_);
    made.shape = shape_of(made);
    return made;
  }

 private:
  // Usually one dtype for all inputs; sometimes separate ones, if the left side accepts that.
  void draw_dtypes() {
    constexpr std::uint64_t kMixedOneIn = 4;
    dtype_ = dtypes_[random_.below(dtypes_.size())];
    input_dtypes_.assign(rule_.inputs.size(), dtype_);
    if (rule_.inputs.size() < 2 || random_.below(kMixedOneIn) != 0) return;
    for (plan::DType& dtype : input_dtypes_)
      if (random_.below(2) == 0) dtype = dtypes_[random_.below(dtypes_.size())];
  }

  void draw_operators(RuleInstance& made) {
    for (const OperatorVariable& variable : rule_.operators) {
      const auto candidates = operators_of(variable.of);
      // Half of the time, an operator that the field leaves uninterpreted.
      const plan::Operator* any = variable.of == OperatorVariable::Class::unary ? &ops::exp() : &ops::pow();
      made.bindings.operators.push_back(random_.below(2) == 0 ? any
                                                              : candidates[random_.below(candidates.size())]);
    }
  }

  void draw_variables(RuleInstance& made) {
    for (std::size_t k = 0; k < rule_.variables.size(); ++k) {
      plan::Attribute value{};
      switch (rule_.variables[k].kind) {
        case plan::AttributeKind::integer: value.integer = draw_integer(k); break;
        case plan::AttributeKind::real:
          value.real = random_.below(options_.wide ? 2 : 4) == 0
                           ? breakpoints_.real(random_)
                           : pick(random_, std::array<double, 6>{1e-5, 0.5, 2, 1, 0, -3});
          break;
        case plan::AttributeKind::dtype: {
          constexpr std::array kOthers = {plan::DType::f32,    plan::DType::f64, plan::DType::bf16,
                                          plan::DType::f16,    plan::DType::i32, plan::DType::i64,
                                          plan::DType::boolean};
          value.id = static_cast<std::uint32_t>(random_.below(2) == 0 ? dtype_ : pick(random_, kOthers));
          break;
        }
        default: value.id = made.graph.symbol(draw_word(made, k)).value;
      }
      made.bindings.attributes.push_back(value);
    }
  }

  // A large number rarely matches at once, so keep it for several attempts.
  std::int64_t draw_integer(std::size_t variable) {
    constexpr int kAttempts = 12;
    if (integers_.size() != rule_.variables.size()) integers_.resize(rule_.variables.size());
    if (!options_.wide || attempts_ % kAttempts == 0)
      integers_[variable] = options_.wide && random_.below(2) == 0
                                ? breakpoints_.integer(random_)
                                : pick(random_, std::array<std::int64_t, 10>{0, 0, 1, 1, 1, 2, 2, 3, 3, 4});
    return integers_[variable];
  }

  std::vector<std::int64_t> ranks_by_variable(const RuleInstance& made) const {
    std::vector<std::int64_t> ranks(rule_.variables.size(), 0);
    const std::vector<bool> axes = axis_variables(rule_);
    for (std::size_t k = 0; distributed_ && k < ranks.size(); ++k)
      if (axes[k])
        if (const int axis = made.mesh.find(made.graph.text(Symbol(made.bindings.attributes[k].id)));
            axis >= 0)
          ranks[k] = made.mesh.axes[static_cast<std::size_t>(axis)].ranks;
    return ranks;
  }

  std::string draw_word(const RuleInstance& made, std::size_t variable) {
    const std::vector<bool> axes = axis_variables(rule_);
    if (axes[variable] && distributed_)
      return made.mesh.axes[random_.below(std::min<std::size_t>(made.mesh.axes.size(), count_axes(rule_)))]
          .name;
    constexpr std::array<std::string_view, 6> kWords = {"sum", "mean", "max", "min", "train", "infer"};
    return std::string(pick(random_, kWords));
  }

  Result<std::vector<plan::ValueId>> add_inputs(RuleInstance& made, IndexDraw& indices) {
    std::vector<plan::ValueId> values;
    const std::vector<std::string> layouts =
        distributed_ ? draw_layouts(rule_, made.mesh, made.bindings, made.graph, random_)
                     : std::vector<std::string>(rule_.inputs.size());
    for (std::size_t i = 0; i < rule_.inputs.size(); ++i) {
      std::vector<plan::Dim> dims;
      for (const auto& [name, size] : indices.dims(i))
        dims.push_back({made.graph.symbol(fmt::format("i{}", name)), size});
      WEFT_TRY(type, made.graph.intern_type(dtype_of(i), dims));
      made.elements += made.graph.type(type).elements();
      const std::array<plan::AttributeValue, 3> attributes = {made.graph.symbol(rule_.inputs[i].name), type,
                                                              made.graph.symbol(layouts[i])};
      WEFT_TRY(value, made.graph.add_value(ops::input(), {}, attributes));
      values.push_back(value);
    }
    return values;
  }

  // Conditions are booleans, positions and labels are integers; other inputs have the dtype drawn.
  plan::DType dtype_of(std::size_t input) const {
    for (const PatternNode& node : rule_.left.nodes)
      for (std::size_t k = 0; node.op != nullptr && k < node.operands.size(); ++k) {
        if (node.operands[k] != input) continue;
        const ops::Pointwise* row = ops::find_pointwise(*node.op);
        if (row != nullptr && (row->takes == ops::Elements::boolean || (node.op == &ops::select() && k == 0)))
          return plan::DType::boolean;
      }
    for (const Side* side : {&rule_.left, &rule_.right})
      for (const PatternNode& node : side->nodes)
        for (std::size_t k = 0; node.op != nullptr && k < node.operands.size(); ++k)
          if (node.operands[k] == input &&
              (row_operand(*node.op) == k || (k == 1 && node.op == &ops::dropout())))
            return plan::DType::i32;
    return input_dtypes_[input];
  }

  // Usually f32 and integers; all dtypes if a rule casts or names dtypes.
  static std::vector<plan::DType> dtypes_of(const Rule& rule) {
    using enum plan::DType;
    const auto converts = [](const PatternNode& node) { return node.op == &ops::cast(); };
    const auto names_dtype = [](const Condition& each) { return each.kind == Condition::Kind::same_dtype; };
    if (std::ranges::any_of(rule.left.nodes, converts) || std::ranges::any_of(rule.right.nodes, converts) ||
        std::ranges::any_of(rule.when, names_dtype))
      return {f32, f32, f32, f64, bf16, f16, i32, i32, i64, boolean};
    return {f32, f32, f32, f32, f32, f32, f32, i32};
  }

  static Status small_enough(const plan::Graph& graph) {
    for (std::size_t id = 0; id < graph.node_count(); ++id) {
      const plan::NodeView node = graph.view(plan::NodeId(id));
      for (std::size_t k = 0; k < node.result_count(); ++k)
        if (node.result_type(k).elements() > kMostElements) return user_error("a value is too large");
      if (node.op().work(node).flops > kMostFlops) return user_error("an operator runs too long");
    }
    return {};
  }

  Status lay_out(RuleInstance& made) const {
    WEFT_TRY(layouts, spmd::infer_layouts(made.graph, made.mesh));
    made.layouts = std::move(layouts);
    return {};
  }

  // Fails only if the right side is too large to run. If it is ill-typed, the instance records
  // that.
  Status add_right(RuleInstance& made, Site& site) const {
    auto right = build_right(site, made.left);
    if (!right.ok()) {
      made.refusal = std::move(right).error();
      return {};
    }
    WEFT_TRY_STATUS(small_enough(made.graph));
    if (distributed_) {
      if (Status status = lay_out(made); !status.ok()) {
        made.refusal = std::move(status).error();
        return {};
      }
    }
    for (std::size_t k = 0; k < rule_.outputs.size(); ++k)
      made.graph.add_output(made.graph.symbol("right." + rule_.outputs[k].name), (*right)[k]);
    return {};
  }

  std::uint64_t shape_of(const RuleInstance& made) const {
    Hasher hasher;
    const plan::Graph& graph = made.graph;
    for (const plan::ValueId value : made.left) hasher.text(print(graph.type(value), graph.symbols()));
    for (std::size_t k = 0; k < rule_.variables.size(); ++k) {
      const plan::Attribute& attribute = made.bindings.attributes[k];
      switch (rule_.variables[k].kind) {
        case plan::AttributeKind::integer:
          hasher.number(static_cast<std::uint64_t>(attribute.integer));
          break;
        case plan::AttributeKind::real: hasher.real(attribute.real); break;
        case plan::AttributeKind::dtype: hasher.number(attribute.id); break;
        default: hasher.text(graph.text(Symbol(attribute.id)));
      }
    }
    for (const plan::Operator* op : made.bindings.operators) hasher.text(op->name());
    hasher.text(print(made.mesh));
    for (const plan::Layout& layout : made.layouts) hasher.text(print(layout, made.mesh, graph.symbols()));
    return hasher.digest().low;
  }

  const Rule& rule_;
  Random& random_;
  const InstanceOptions& options_;
  Breakpoints breakpoints_;
  bool distributed_;
  std::vector<plan::DType> dtypes_;
  std::vector<std::int64_t> integers_;  // by variable
  int attempts_ = 0;
  plan::DType dtype_ = plan::DType::f32;   // of most inputs
  std::vector<plan::DType> input_dtypes_;  // by input
};

}  // namespace

bool is_distributed(const Rule& rule) {
  for (const Side* side : {&rule.left, &rule.right})
    for (const PatternNode& node : side->nodes)
      if (node.op != nullptr && ops::find_communication(*node.op) != nullptr) return true;
  return std::ranges::any_of(rule.inputs, [](const RuleInput& input) { return input.layout.has_value(); });
}

std::vector<const plan::Operator*> operators_of(OperatorVariable::Class of) {
  std::vector<const plan::Operator*> result;
  const std::size_t arity = of == OperatorVariable::Class::unary ? 1 : 2;
  for (const plan::Operator* op : ops::all().all()) {
    const ops::Pointwise* row = ops::find_pointwise(*op);
    if (row != nullptr && row->arity == arity && row->takes != ops::Elements::boolean) result.push_back(op);
  }
  return result;
}

Result<RuleInstance> draw_instance(const Rule& rule, Random& random, const InstanceOptions& options) {
  InstanceDraw draw(rule, random, options);
  Error last = user_error("no attempt was made");
  for (std::int32_t attempt = 0; attempt < options.attempts; ++attempt) {
    auto made = draw.attempt();
    if (made.ok()) return made;
    last = std::move(made).error();
  }
  return user_error(fmt::format("no instance of {} was found: {}", rule.name, last.message));
}

}  // namespace weft::rule
