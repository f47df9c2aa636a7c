// Functions other than the aggregates: pointwise, windows, images, routing and more.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

Result<Bound> Binder::bind_call(const syntax::Call& call, SelectScope& scope) {
  const FunctionSpec* spec = find_function(call.function.text);
  if (spec == nullptr) {
    const auto own = catalog_.functions.find(call.function.text);
    if (own != catalog_.functions.end()) return bind_own_call(call, own->second, scope);
    return unknown_function(catalog_, call.function);
  }
  auto bound = bind_known_call(call, *spec, scope);
  if (bound.ok() || !bound.error().hint.empty() || bound.error().span != call.span) return bound;
  Error error = std::move(bound).error();
  error.hint = fmt::format("usage: {}", spec->usage);
  return error;
}

namespace {

constexpr std::size_t kDeepestFunction = 64;  // nesting of calls

}  // namespace

// Substitutes the arguments into the function's expression.
Result<Bound> Binder::bind_own_call(const syntax::Call& call, const FunctionDefinition& own,
                                    SelectScope& scope) {
  const syntax::CreateFunction& function = *own.statement;
  WEFT_TRY_STATUS(check_arguments(call, spec_of(own)));
  WEFT_TRY_STATUS(count_step(call.span));
  FunctionScope inside{.definition = &own, .arguments = {}};
  if (scope.function != nullptr) inside.depth = scope.function->depth + 1;
  if (inside.depth > kDeepestFunction)
    return user_error(fmt::format("function calls are nested more than {} deep", kDeepestFunction),
                      "inline some of them", call.span);
  for (const syntax::Argument& argument : call.arguments) {
    WEFT_TRY(given, bind_expression(*argument.value, scope));
    inside.arguments.push_back(given);
  }
  SelectScope body;
  body.function = &inside;
  auto bound = bind_expression(*function.body, body);
  if (bound.ok()) return bound;
  Error error = std::move(bound).error();
  if (error.text == nullptr) {
    error.text = own.source->text;
    error.message = fmt::format("in function {}: {}", function.name.text, error.message);
  }
  return error;
}

Result<Bound> Binder::bind_known_call(const syntax::Call& call, const FunctionSpec& spec,
                                      SelectScope& scope) {
  switch (spec.kind) {
    case FunctionKind::pointwise: return bind_pointwise(call, spec, scope);
    case FunctionKind::aggregate: return bind_aggregate(call, spec, scope);
    case FunctionKind::window: return bind_window(call, spec, scope);
    case FunctionKind::image: return bind_image(call, spec, scope);
    case FunctionKind::routing: return bind_routing(call, spec, scope);
    case FunctionKind::other: return bind_other(call, spec, scope);
  }
  return user_error("expected a function", {}, call.span);
}

// -- arguments

const syntax::Argument* Binder::named_argument(const syntax::Call& call, std::string_view label) const {
  for (const syntax::Argument& argument : call.arguments)
    if (argument.label.text == label) return &argument;
  return nullptr;
}

Result<double> Binder::number_argument(const syntax::Call& call, std::string_view label, double otherwise,
                                       SelectScope& scope) {
  const syntax::Argument* argument = named_argument(call, label);
  if (argument == nullptr) return otherwise;
  scope.in_number = true;
  auto value = bind_expression(*argument->value, scope);
  scope.in_number = false;
  WEFT_TRY(bound, std::move(value));
  if (!bound.is_number() || !std::isfinite(bound.number))
    return user_error(fmt::format("{} must be a constant", label),
                      fmt::format("write a number or a size: {} => {}", label, otherwise),
                      argument->value->span);
  return bound.number;
}

Result<std::int64_t> Binder::whole_argument(const syntax::Call& call, std::string_view label,
                                            std::int64_t least, std::int64_t otherwise, SelectScope& scope) {
  const syntax::Argument* argument = named_argument(call, label);
  WEFT_TRY(number, number_argument(call, label, static_cast<double>(otherwise), scope));
  if (number != std::floor(number) || std::fabs(number) > 1e9 || number < static_cast<double>(least))
    return user_error(fmt::format("{} must be a whole number of at least {}, found {}", label, least, number),
                      fmt::format("for example: {} => {}", label, otherwise), argument->value->span);
  return static_cast<std::int64_t>(number);
}

Result<Symbol> Binder::index_argument(const syntax::Call& call, std::string_view label,
                                      const plan::Type& type) {
  const syntax::Argument* argument = named_argument(call, label);
  if (argument == nullptr)
    return user_error(fmt::format("{} needs {} => an index", call.function.text, label),
                      fmt::format("the argument has {}", indices_text(type.dims)), call.span);
  const auto* name = argument->value->if_a<syntax::NameUse>();
  const Symbol symbol = name == nullptr ? Symbol() : graph_.symbol(name->name);
  if (!symbol.valid() || !type.has(symbol)) {
    std::vector<std::string_view> names;
    for (const Dim& dim : type.dims) names.push_back(graph_.text(dim.index));
    std::string hint = name == nullptr ? std::string() : did_you_mean(name->name, names);
    if (hint.empty()) hint = fmt::format("for example: {} => {}", label, names.empty() ? "d" : names.back());
    return user_error(
        fmt::format("{} must be an index of the argument, which has {}", label, indices_text(type.dims)),
        std::move(hint), argument->value->span);
  }
  return symbol;
}

Result<Dim> Binder::size_argument(const syntax::Expression& argument, std::string_view function) {
  const auto* name = argument.if_a<syntax::NameUse>();
  if (name == nullptr)
    return user_error(fmt::format("{} needs the name of a declared size here", function),
                      "declare one in the list of sizes, (k = 2, ...), and give its name", argument.span);
  const Symbol symbol = graph_.symbol(name->name);
  const std::int64_t* size = find_size(symbol);
  if (size == nullptr) return unknown_index({name->name, name->span}).error();
  return Dim{symbol, *size};
}

Result<Binder::SymbolList> Binder::partition_symbols(const syntax::Call& call, const plan::Type& type) {
  SymbolList kept;
  for (const syntax::Name& name : call.partition) {
    const Symbol symbol = graph_.symbol(name.text);
    if (!type.has(symbol)) {
      std::vector<std::string_view> names;
      for (const Dim& dim : type.dims) names.push_back(graph_.text(dim.index));
      std::string hint = did_you_mean(name.text, names);
      if (hint.empty()) hint = "PARTITION BY takes indices of the argument";
      return user_error(
          fmt::format("no index '{}' in the argument, which has {}", name.text, indices_text(type.dims)),
          std::move(hint), name.span);
    }
    if (std::ranges::find(kept, symbol) != kept.end())
      return user_error(fmt::format("PARTITION BY names {} twice", name.text), "remove one of them",
                        name.span);
    kept.push_back(symbol);
  }
  return kept;
}

Result<Binder::SymbolList> Binder::window_over(const syntax::Call& call, const plan::Type& type) {
  WEFT_TRY(kept, partition_symbols(call, type));
  SymbolList over;
  for (const Dim& dim : type.dims)
    if (std::ranges::find(kept, dim.index) == kept.end()) over.push_back(dim.index);
  if (over.empty())
    return user_error(
        fmt::format("PARTITION BY names every index of the argument; {} needs at least one left",
                    call.function.text),
        fmt::format("the argument has {}: leave out at least one", indices_text(type.dims)), call.span);
  return over;
}

// -- kinds of functions

Result<Bound> Binder::bind_pointwise(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  WEFT_TRY(first, bind_expression(*call.arguments[0].value, scope));
  const bool takes_real = ops::find_pointwise(*spec.op)->takes == ops::Elements::real;
  if (spec.most == 1) {
    if (first.is_number() && spec.fold != nullptr) {
      const double folded = spec.fold(ops::Numbers<double>{}, &first.number);
      if (std::isnan(folded))
        return user_error(fmt::format("{} of {} is NaN", spec.name, first.number),
                          "choose an argument inside its domain", call.span);
      return Bound::of(folded);
    }
    const bool whole = !first.is_number() && plan::is_integer(graph_.type(first.value).dtype);
    WEFT_TRY(operand, whole && !takes_real ? as_value(first) : as_real(first));
    WEFT_TRY(value, at(call.span, ops::add_pointwise(graph_, *spec.op, {operand})));
    return Bound::of(value);
  }
  WEFT_TRY(second, bind_expression(*call.arguments[1].value, scope));
  WEFT_TRY_STATUS(unify(first, second));
  if (takes_real) {
    WEFT_TRY(base, as_real(first));
    WEFT_TRY(exponent, as_real(second));
    first = Bound::of(base);
    second = Bound::of(exponent);
  }
  WEFT_TRY(value, at(call.span, ops::add_pointwise(graph_, *spec.op, {first.value, second.value})));
  return Bound::of(value);
}

Result<Bound> Binder::bind_window(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  WEFT_TRY(bound, bind_expression(*call.arguments[0].value, scope));
  WEFT_TRY(x, as_real(bound));
  WEFT_TRY(over, window_over(call, graph_.type(x)));
  if (spec.name == "softmax") {
    WEFT_TRY(y, at(call.span, ops::add_softmax(graph_, x, over)));
    return Bound::of(y);
  }
  if (spec.name == "cross_entropy") {
    if (over.size() != 1)
      return user_error(fmt::format("cross_entropy reduces one index, PARTITION BY leaves {}", over.size()),
                        "PARTITION BY every index except the class index", call.span);
    WEFT_TRY(label, bind_expression(*call.arguments[1].value, scope));
    WEFT_TRY(labels, as_value(label));
    if (!plan::is_integer(graph_.type(labels).dtype))
      return user_error(
          fmt::format("labels must be whole numbers, found {}", plan::name(graph_.type(labels).dtype)),
          "declare them OF int32", call.arguments[1].value->span);
    WEFT_TRY(smoothing, number_argument(call, "smoothing", 0, scope));
    if (smoothing < 0 || smoothing >= 1)
      return user_error(fmt::format("smoothing must be at least 0 and less than 1, found {}", smoothing),
                        "for example: smoothing => 0.1", named_argument(call, "smoothing")->value->span);
    WEFT_TRY(loss, at(call.span, ops::add_cross_entropy(graph_, x, labels, over.front(), smoothing)));
    return Bound::of(loss);
  }
  WEFT_TRY(epsilon, number_argument(call, "epsilon", 1e-5, scope));
  if (epsilon < 0)
    return user_error(fmt::format("epsilon must not be negative, found {}", epsilon),
                      "for example: epsilon => 1e-5", named_argument(call, "epsilon")->value->span);
  if (spec.name == "layer_norm") {
    WEFT_TRY(normalized, at(call.span, ops::add_layer_norm(graph_, x, over, epsilon)));
    return Bound::of(normalized.y);
  }
  if (spec.name == "rms_norm") {
    WEFT_TRY(normalized, at(call.span, ops::add_rms_norm(graph_, x, over, epsilon)));
    return Bound::of(normalized.y);
  }
  WEFT_TRY(momentum, number_argument(call, "momentum", 0.1, scope));
  WEFT_TRY(mean, bind_expression(*call.arguments[1].value, scope));
  WEFT_TRY(variance, bind_expression(*call.arguments[2].value, scope));
  WEFT_TRY(mean_value, as_value(mean));
  WEFT_TRY(variance_value, as_value(variance));
  const bool training = options_.mode == Mode::train;
  WEFT_TRY(normalized,
           at(call.span, ops::add_batch_norm(graph_, x, mean_value, variance_value, over,
                                             training ? ops::BatchNormMode::train : ops::BatchNormMode::infer,
                                             epsilon, momentum)));
  const auto is_state = [&](ValueId value) {
    return graph_.node(graph_.value(value).producer).op == &ops::state();
  };
  if (training && is_state(mean_value))
    WEFT_TRY_STATUS(add_update(mean_value, normalized.next_mean, call.span));
  if (training && is_state(variance_value))
    WEFT_TRY_STATUS(add_update(variance_value, normalized.next_variance, call.span));
  return Bound::of(normalized.y);
}

Result<Bound> Binder::bind_image(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  WEFT_TRY(bound, bind_expression(*call.arguments[0].value, scope));
  WEFT_TRY(x, as_real(bound));
  if (order_is_open(x))
    return user_error(fmt::format("{} depends on the order of its indices, which is not fixed: {}", spec.name,
                                  indices_text(graph_.type(x).dims)),
                      "GROUP BY them in order in a WITH entry first", call.arguments[0].value->span);
  if (spec.name == "conv1d" || spec.name == "conv2d_transpose")
    return bind_line_or_transpose(call, spec, x, scope);
  if (spec.name == "conv2d") {
    WEFT_TRY(weight, bind_expression(*call.arguments[1].value, scope));
    WEFT_TRY(w, as_real(weight));
    WEFT_TRY(stride, whole_argument(call, "stride", 1, 1, scope));
    WEFT_TRY(padding, whole_argument(call, "padding", 0, 0, scope));
    WEFT_TRY(groups, whole_argument(call, "groups", 1, 1, scope));
    WEFT_TRY(padding_w, whole_argument(call, "padding_w", 0, padding, scope));
    const ops::ConvWindow window{
        .stride = stride, .padding = padding, .groups = groups, .padding_w = padding_w};
    WEFT_TRY(y, at(call.span, ops::add_conv2d(graph_, x, w, window)));
    return Bound::of(y);
  }
  if (named_argument(call, "size") == nullptr)
    return user_error(fmt::format("{} needs the window size: size => 2", spec.name),
                      fmt::format("usage: {}", spec.usage), call.span);
  WEFT_TRY(size, whole_argument(call, "size", 1, 2, scope));
  WEFT_TRY(stride, whole_argument(call, "stride", 1, size, scope));
  WEFT_TRY(padding, whole_argument(call, "padding", 0, 0, scope));
  const ops::PoolWindow window{.size = size, .stride = stride, .padding = padding};
  WEFT_TRY(y, at(call.span, spec.name == "max_pool" ? ops::add_max_pool(graph_, x, window)
                                                    : ops::add_avg_pool(graph_, x, window)));
  return Bound::of(y);
}

Result<Bound> Binder::bind_routing(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  WEFT_TRY(bound, bind_expression(*call.arguments[0].value, scope));
  WEFT_TRY(x, as_value(bound));
  WEFT_TRY(over, window_over(call, graph_.type(x)));
  if (spec.name == "slot") {
    WEFT_TRY(experts, size_argument(*call.arguments[1].value, spec.name));
    WEFT_TRY(capacity, size_argument(*call.arguments[2].value, spec.name));
    WEFT_TRY(slots, at(call.span, ops::add_slot(graph_, x, experts.size, capacity.size, over)));
    return Bound::of(slots);
  }
  if (over.size() != 1)
    return user_error(fmt::format("{} works along one index, PARTITION BY leaves {}", spec.name, over.size()),
                      "PARTITION BY every index except the one to select from", call.span);
  if (spec.name == "argmax" || spec.name == "argmin" || spec.name == "sort")
    return bind_ranking(call, spec, x, over.front());
  WEFT_TRY(into, size_argument(*call.arguments[1].value, spec.name));
  if (const std::int64_t size = graph_.type(x).size_of(over.front()); into.size < 1 || into.size > size)
    return user_error(fmt::format("{} selects 1 to {} along {}, found {}", spec.name, size,
                                  graph_.text(over.front()), into.size),
                      fmt::format("give {} a size from 1 to {}", graph_.text(into.index), size),
                      call.arguments[1].value->span);
  const bool positions = spec.name == "top_k_positions";
  // top_k and top_k_positions of the same tensor share one node.
  for (TopKNode& known : top_ks_)
    if (known.x == x && known.over == over.front() && known.into == into)
      return Bound::of(positions ? known.positions : known.values);
  WEFT_TRY(top, at(call.span, ops::add_top_k(graph_, x, over.front(), into)));
  top_ks_.push_back({x, over.front(), into, top.values, top.positions});
  return Bound::of(positions ? top.positions : top.values);
}

// Exact in every dtype that counts steps, with room to count up.
constexpr double kDropoutSteps = 1 << 23;

Result<ValueId> Binder::step() {
  if (step_.valid()) return step_;
  const Symbol label = graph_.label();
  const plan::ScopeId scope = graph_.scope();
  graph_.set_label({});
  graph_.set_scope({});
  WEFT_TRY(type, graph_.intern_type(plan::DType::i64, {}));
  // A counter of its own, independent of the optimizer's. The seed determines its start, so other
  // seeds give other masks.
  WEFT_TRY(value, ops::add_state(graph_, "dropout.step", type, {"uniform", 0, kDropoutSteps}));
  graph_.set_label(label);
  graph_.set_scope(scope);
  return step_ = value;
}

Result<Bound> Binder::bind_other(const syntax::Call& call, const FunctionSpec& spec, SelectScope& scope) {
  WEFT_TRY_STATUS(check_arguments(call, spec));
  if (spec.name == "size") {
    const auto* name = call.arguments[0].value->if_a<syntax::NameUse>();
    if (name == nullptr)
      return user_error("size needs the name of an index", "for example: size(d)", call.span);
    const Symbol symbol = graph_.symbol(name->name);
    for (const Dim& row : scope.rows)
      if (row.index == symbol) return Bound::of(static_cast<double>(row.size));
    WEFT_TRY(dim, size_argument(*name, "size"));
    return Bound::of(static_cast<double>(dim.size));
  }
  if (spec.name == "concat") return bind_concat(call, scope);
  if (spec.name == "one_hot") return bind_one_hot(call, scope);
  if (spec.name == "zeros") return bind_zeros(call);
  if (spec.name == "cumsum" || spec.name == "cumprod" || spec.name == "recurrence")
    return bind_recurrence(call, spec, scope);
  WEFT_TRY(bound, bind_expression(*call.arguments[0].value, scope));
  if (spec.name == "stop_gradient") {
    if (bound.is_number()) return bound;
    WEFT_TRY(stopped, at(call.span, ops::add_stop_gradient(graph_, bound.value)));
    return Bound::of(stopped);
  }
  WEFT_TRY(x, as_real(bound));
  if (spec.name == "rotary") {
    WEFT_TRY(along, index_argument(call, "along", graph_.type(x)));
    WEFT_TRY(pairs, index_argument(call, "pairs", graph_.type(x)));
    WEFT_TRY(base, number_argument(call, "base", 10000, scope));
    WEFT_TRY(y, at(call.span, ops::add_rotary(graph_, x, along, pairs, base)));
    return Bound::of(y);
  }
  WEFT_CHECK(spec.name == "dropout");
  WEFT_TRY(rate, number_argument(call, "rate", 0.1, scope));
  if (rate < 0 || rate >= 1)
    return user_error(fmt::format("rate must be at least 0 and less than 1, found {}", rate),
                      "for example: rate => 0.1", named_argument(call, "rate")->value->span);
  if (options_.mode == Mode::infer || rate == 0) return Bound::of(x);
  WEFT_TRY(seed, step());
  WEFT_TRY(y, at(call.span, ops::add_dropout(graph_, x, seed, rate, dropouts_++)));
  return Bound::of(y);
}

}  // namespace weft::language
