// Frames: name resolution within one model or layer, and its WITH entries.
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::ValueId;

// -- symbol tables

void Binder::enter_frame(const syntax::Statement& definition, std::string_view name,
                         std::shared_ptr<const std::string> text, bool shipped) {
  frames_.push_back(Frame{++last_frame_, &definition, name, std::move(text), undo_.size(), shipped});
}

void Binder::leave_frame() {
  undo_to(frames_.back().undo_mark);
  frames_.pop_back();
}

void Binder::undo_to(std::size_t mark) {
  while (undo_.size() > mark) {
    const Undo& last = undo_.back();
    tensors_[last.name.value] = last.tensor;
    sizes_[last.name.value] = last.size;
    undo_.pop_back();
  }
}

// Saves the current meaning of a name, to be restored at the end of the frame or query.
void Binder::remember(Symbol name) {
  if (name.value >= tensors_.size()) {
    tensors_.resize(graph_.symbols().size());
    sizes_.resize(graph_.symbols().size());
  }
  undo_.push_back(Undo{name, tensors_[name.value], sizes_[name.value]});
}

void Binder::set_tensor(Symbol name, ValueId value) {
  remember(name);
  tensors_[name.value] = TensorSlot{frames_.back().id, value};
}

void Binder::set_size(Symbol name, std::int64_t size) {
  remember(name);
  sizes_[name.value] = SizeSlot{frames_.back().id, size};
}

ValueId Binder::find_tensor(Symbol name) const {
  if (name.value >= tensors_.size() || tensors_[name.value].frame != frames_.back().id) return {};
  return tensors_[name.value].value;
}

const std::int64_t* Binder::find_size(Symbol name) const {
  if (name.value >= sizes_.size() || sizes_[name.value].frame != frames_.back().id) return nullptr;
  return &sizes_[name.value].size;
}

std::vector<std::string_view> Binder::tensor_names() const {
  std::vector<std::string_view> names;
  for (std::size_t s = 0; s < tensors_.size(); ++s)
    if (find_tensor(Symbol(s)).valid()) names.push_back(graph_.text(Symbol(s)));
  return names;
}

std::vector<std::string_view> Binder::size_names() const {
  std::vector<std::string_view> names;
  for (std::size_t s = 0; s < sizes_.size(); ++s)
    if (find_size(Symbol(s)) != nullptr) names.push_back(graph_.text(Symbol(s)));
  return names;
}

Status Binder::count_step(Span span) {
  if (++steps_taken_ > options_.plan_limit ||
      static_cast<std::int64_t>(graph_.node_count()) > options_.plan_limit)
    return user_error(fmt::format("the plan is larger than the limit of {} nodes", options_.plan_limit),
                      "REPEAT fewer times, or raise the limit: SET plan_limit = ...", span);
  if (steps_taken_ % 1024 == 0 && options_.interrupted && options_.interrupted())
    return user_error("interrupted", {}, span);
  return {};
}

// -- declarations

Status Binder::declare_sizes(const syntax::Body& body, std::span<const SizeOverride> overrides) {
  for (const SizeOverride& given : overrides) {
    bool known = false;
    std::vector<std::string_view> names;
    for (const syntax::Size& size : body.sizes) {
      known = known || size.name.text == given.name;
      names.push_back(size.name.text);
    }
    if (known) continue;
    std::string hint = did_you_mean(given.name, names);
    if (hint.empty())
      hint = names.empty() ? "it has no sizes" : fmt::format("its sizes are {}", fmt::join(names, ", "));
    return user_error(fmt::format("no size '{}' in {}", given.name, frames_.back().name), std::move(hint),
                      given.span);
  }
  for (std::size_t i = 0; i < body.sizes.size(); ++i) {
    const syntax::Size& size = body.sizes[i];
    for (std::size_t j = 0; j < i; ++j)
      if (body.sizes[j].name.text == size.name.text)
        return user_error(fmt::format("size {} is declared twice in {}", size.name.text, frames_.back().name),
                          "remove one of them", size.name.span);
    const Symbol name = graph_.symbol(size.name.text);
    std::int64_t value = 0;
    Span span = size.span;
    const SizeOverride* given = nullptr;
    for (const SizeOverride& each : overrides)
      if (each.name == size.name.text) given = &each;
    if (const std::int64_t* bound = find_size(name)) {
      // An argument's index already has its size; its default is ignored.
      if (given != nullptr && given->size != *bound)
        return user_error(fmt::format("index {} has size {} in the argument, but {} is given", size.name.text,
                                      *bound, given->size),
                          "leave it out: the argument determines it", given->span);
      continue;
    }
    if (given != nullptr) {
      value = given->size;
      span = given->span;
    } else if (size.value != nullptr) {
      WEFT_TRY(evaluated, evaluate_size(*size.value));
      value = evaluated;
      span = size.value->span;
    } else {
      return user_error(
          fmt::format("size {} of {} has no default and no value", size.name.text, frames_.back().name),
          fmt::format("set it in the call of {}: {} = 8", frames_.back().name, size.name.text), size.span);
    }
    // Zero is valid for a number such as padding; the plan rejects it as the size of an index.
    if (value < 0)
      return user_error(fmt::format("size {} must not be negative, found {}", size.name.text, value),
                        fmt::format("for example: {} = 8", size.name.text), span);
    set_size(name, value);
  }
  return {};
}

Status Binder::unknown_index(const syntax::Name& index) {
  std::string hint = did_you_mean(index.text, size_names());
  if (hint.empty()) hint = fmt::format("declare it in the list of sizes: {} = 8", index.text);
  return user_error(fmt::format("unknown index '{}' in {}", index.text, frames_.back().name), std::move(hint),
                    index.span);
}

Result<plan::TypeId> Binder::declared_type(const syntax::Tensor& tensor) {
  std::vector<plan::Dim> dims;
  for (const syntax::Name& index : tensor.indices) {
    const Symbol name = graph_.symbol(index.text);
    const std::int64_t* size = find_size(name);
    if (size == nullptr) return unknown_index(index).error();
    if (*size < 1)
      return user_error(fmt::format("index {} must have a size of at least 1, found {}", index.text, *size),
                        fmt::format("for example: {} = 8", index.text), index.span);
    for (const plan::Dim& dim : dims)
      if (dim.index == name)
        return user_error(fmt::format("index {} appears twice in {}", index.text, tensor.name.text),
                          fmt::format("declare another index of that size: {}2 = {}", index.text, index.text),
                          index.span);
    dims.push_back(plan::Dim{name, *size});
  }
  plan::DType dtype = options_.precision;
  if (tensor.dtype.given()) {
    const auto known = plan::find_dtype(tensor.dtype.text);
    if (!known)
      return user_error(
          fmt::format("unknown dtype '{}'", tensor.dtype.text),
          [&] {
            std::string hint = did_you_mean(tensor.dtype.text, plan::dtype_spellings());
            return hint.empty() ? "dtypes are " + plan::dtype_names() : hint;
          }(),
          tensor.dtype.span);
    dtype = *known;
  }
  return at(tensor.span, graph_.intern_type(dtype, dims), "give one of its indices a smaller size");
}

namespace {

struct InitSpec {
  std::string_view name;
  std::size_t arguments;
  std::string_view usage;
};
constexpr InitSpec kInits[] = {{"zeros", 0, "zeros"},
                               {"ones", 0, "ones"},
                               {"constant", 1, "constant(value)"},
                               {"normal", 2, "normal(mean, deviation)"},
                               {"uniform", 2, "uniform(low, high)"}};

Result<ops::Initial> bind_init(const syntax::Init& init) {
  std::vector<std::string_view> names;
  for (const InitSpec& spec : kInits) {
    names.push_back(spec.name);
    if (spec.name != init.name.text) continue;
    if (init.arguments.size() != spec.arguments)
      return user_error(fmt::format("{} takes {} number{}, found {}", spec.name, spec.arguments,
                                    spec.arguments == 1 ? "" : "s", init.arguments.size()),
                        fmt::format("usage: INIT {}", spec.usage), init.span);
    ops::Initial initial{.kind = spec.name};
    if (spec.arguments > 0) initial.a = init.arguments[0].value;
    if (spec.arguments > 1) initial.b = init.arguments[1].value;
    if (spec.name == "normal" && initial.b < 0)
      return user_error(fmt::format("a standard deviation must not be negative, found {}", initial.b),
                        "for example: normal(0, 0.02)", init.arguments[1].span);
    if (spec.name == "uniform" && initial.b < initial.a)
      return user_error(fmt::format("uniform needs low <= high, found {} and {}", initial.a, initial.b),
                        "write the smaller one first", init.span);
    return initial;
  }
  std::string hint = did_you_mean(init.name.text, names);
  if (hint.empty())
    hint = "initial values are zeros, ones, constant(v), normal(mean, deviation), uniform(low, high)";
  return user_error(fmt::format("unknown initial value '{}'", init.name.text), std::move(hint),
                    init.name.span);
}

}  // namespace

Status Binder::declare_parameters(std::span<const syntax::Parameter> parameters) {
  for (const syntax::Parameter& parameter : parameters) {
    WEFT_TRY_STATUS(count_step(parameter.span));
    const Symbol name = graph_.symbol(parameter.tensor.name.text);
    if (find_tensor(name).valid())
      return user_error(
          fmt::format("{} is declared twice in {}", parameter.tensor.name.text, frames_.back().name),
          "give one of them another name", parameter.tensor.name.span);
    WEFT_TRY(type, declared_type(parameter.tensor));
    ops::Initial initial;
    if (parameter.init) {
      WEFT_TRY(given, bind_init(*parameter.init));
      initial = given;
    }
    graph_.set_label({});
    const plan::ScopeId scope = graph_.scope();
    const std::string path =
        scope.valid() ? graph_.path(scope, name) : std::string(parameter.tensor.name.text);
    WEFT_TRY(value, at(parameter.span, parameter.kind == syntax::ParameterKind::parameter
                                           ? ops::add_parameter(graph_, path, type, initial)
                                           : ops::add_state(graph_, path, type, initial)));
    set_tensor(name, value);
  }
  return {};
}

// -- queries

Status Binder::bind_repeat(const syntax::Binding& binding) {
  const Symbol name = graph_.symbol(binding.name.text);
  if (!find_tensor(name).valid())
    return user_error(fmt::format("REPEAT needs an initial {}, but none is defined", binding.name.text),
                      fmt::format("define it first: {} AS (SELECT ...), REPEAT ...", binding.name.text),
                      binding.name.span);
  WEFT_TRY(times, evaluate_size(*binding.repeat));
  if (times < 0 || times > std::numeric_limits<std::int32_t>::max())
    return user_error(fmt::format("cannot repeat {} times", times),
                      fmt::format("REPEAT takes 0 to {}", std::numeric_limits<std::int32_t>::max()),
                      binding.repeat->span);

  const plan::ScopeId outer = graph_.scope();
  Repeat repeat{.outer = outer, .iteration = 0, .call_names = {}, .next_call = 0};
  Repeat* const enclosing = std::exchange(repeat_, &repeat);
  const Symbol scope_name = unique_scope_name(outer, binding.name.text);
  Status status;
  for (std::int64_t i = 0; i < times && status.ok(); ++i) {
    repeat.iteration = static_cast<std::int32_t>(i);
    repeat.next_call = 0;
    graph_.set_scope(graph_.add_scope({.parent = outer, .name = scope_name, .iteration = repeat.iteration}));
    auto value = bind_query(*binding.query);
    if (value.ok())
      set_tensor(name, *value);
    else
      status = std::move(value).error();
  }
  graph_.set_scope(outer);
  repeat_ = enclosing;
  return status;
}

Status Binder::bind_with(std::span<const syntax::Binding> bindings) {
  for (const syntax::Binding& binding : bindings) {
    WEFT_TRY_STATUS(count_step(binding.span));
    const Symbol name = graph_.symbol(binding.name.text);
    graph_.set_label(name);
    if (binding.repeat != nullptr) {
      WEFT_TRY_STATUS(bind_repeat(binding));
      continue;
    }
    if (binding.over.given()) {
      WEFT_TRY_STATUS(bind_scan(binding));
      continue;
    }
    WEFT_TRY(value, bind_query(*binding.query));
    set_tensor(name, value);
  }
  return {};
}

Result<ValueId> Binder::bind_query(const syntax::Query& query) {
  if (query.bindings.empty()) return bind_select(query.select);
  const std::size_t mark = undo_.size();
  const Symbol label = graph_.label();
  WEFT_TRY_STATUS(bind_with(query.bindings));
  graph_.set_label(label);
  WEFT_TRY(value, bind_select(query.select));
  undo_to(mark);
  return value;
}

// Sources are found by name at run time. A parameter whose name equals the path of a layer's
// parameter, or the name of the training step, would share its tensor.
Status Binder::check_source_names(const syntax::CreateModel& model) {
  std::unordered_set<std::string_view> names;
  for (std::size_t n = 0; n < graph_.node_count(); ++n) {
    const plan::NodeView node = graph_.view(plan::NodeId(n));
    const plan::Operator* const op = &node.op();
    if (op != &ops::input() && op != &ops::parameter() && op != &ops::state()) continue;
    if (names.insert(node.word(0)).second) continue;
    return user_error(fmt::format("two tensors of the plan are named {}", node.word(0)),
                      "give the model's own tensor another name", model.name.span);
  }
  return {};
}

Result<BoundModel> Binder::bind_model(const ModelDefinition& model) {
  const syntax::CreateModel& statement = *model.statement;
  graph_.name = std::string(statement.name.text);
  enter_frame(statement, statement.name.text, model.source->text, model.shipped);
  WEFT_TRY_STATUS(declare_sizes(statement.body, options_.sizes));
  for (const syntax::Tensor& input : statement.body.inputs) {
    const Symbol name = graph_.symbol(input.name.text);
    if (find_tensor(name).valid())
      return user_error(fmt::format("{} is declared twice in {}", input.name.text, statement.name.text),
                        "give one of them another name", input.name.span);
    WEFT_TRY(type, declared_type(input));
    WEFT_TRY(value, at(input.span, ops::add_input(graph_, input.name.text, type)));
    set_tensor(name, value);
  }
  WEFT_TRY_STATUS(declare_parameters(statement.body.parameters));
  WEFT_TRY_STATUS(bind_with(statement.body.query->bindings));
  WEFT_TRY_STATUS(bind_outputs(statement.body.query->select));
  WEFT_TRY_STATUS(bind_updates(statement.body.updates));

  WEFT_TRY_STATUS(check_source_names(statement));

  BoundModel bound;
  for (const syntax::Size& size : statement.body.sizes)
    bound.sizes.push_back({std::string(size.name.text), *find_size(graph_.symbol(size.name.text))});
  graph_.set_label({});
  graph_.set_scope({});
  if (step_.valid()) {
    WEFT_TRY(one, ops::add_constant(graph_, 1, plan::DType::i64));
    WEFT_TRY(next, ops::add_pointwise(graph_, ops::add(), {step_, one}));
    updates_.push_back({step_, next});
  }
  for (const StateUpdate& update : updates_) {
    const plan::NodeView state = graph_.view(graph_.value(update.state).producer);
    graph_.add_update(state.word(0), update.next);
  }
  bound.graph = std::move(graph_);
  bound.updates = std::move(updates_);
  return bound;
}

// -- entry points

Result<BoundModel> bind(const Catalog& catalog, const ModelDefinition& model, const BindOptions& options) {
  auto bound = Binder(catalog, options).bind_model(model);
  if (bound.ok()) return bound;
  Error error = std::move(bound).error();
  // Errors about a size from the current statement point into that statement, not into the model's
  // text.
  bool in_statement = false;
  for (const SizeOverride& given : options.sizes)
    in_statement = in_statement || (given.span.known() && given.span == error.span);
  if (error.text == nullptr && !in_statement) error.text = model.source->text;
  return error;
}

Result<BoundModel> bind(const Catalog& catalog, const syntax::Name& model, const BindOptions& options) {
  const auto found = catalog.models.find(model.text);
  if (found == catalog.models.end()) return unknown("model", model, names_of(catalog.models));
  auto bound = bind(catalog, found->second, options);
  // The position is in the model's text, not in the current statement: attach that text.
  if (!bound.ok() && bound.error().text == found->second.source->text &&
      !bound.error().message.starts_with("in layer")) {
    Error error = std::move(bound).error();
    error.message = fmt::format("in model {}: {}", model.text, error.message);
    return error;
  }
  return bound;
}

Status try_layer(const Catalog& catalog, const LayerDefinition& layer, const BindOptions& options) {
  Status status = Binder(catalog, options).try_layer(layer);
  if (status.ok()) return status;
  Error error = std::move(status).error();
  if (error.text == nullptr) error.text = layer.source->text;
  return error;
}

}  // namespace weft::language
