// Layer calls: each expands the layer's text with its own parameters and scope.
#include <algorithm>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::ValueId;

Symbol Binder::unique_scope_name(plan::ScopeId parent, std::string_view name) {
  const Symbol plain = graph_.symbol(name);
  const std::uint64_t key = (static_cast<std::uint64_t>(parent.value) << 32) | plain.value;
  const std::uint32_t uses = ++scope_names_[key];
  return uses == 1 ? plain : graph_.symbol(fmt::format("{}_{}", name, uses));
}

// block.3 inside a REPEAT, else block, block_2, ...; an alias replaces the layer's name.
plan::ScopeId Binder::scope_of_call(const syntax::Source& source) {
  const std::string_view name = source.label().text;
  if (repeat_ == nullptr) {
    const plan::ScopeId outer = graph_.scope();
    return graph_.add_scope({.parent = outer, .name = unique_scope_name(outer, name), .iteration = -1});
  }
  const std::size_t call = repeat_->next_call++;
  if (call == repeat_->call_names.size())
    repeat_->call_names.push_back(unique_scope_name(repeat_->outer, name));
  return graph_.add_scope(
      {.parent = repeat_->outer, .name = repeat_->call_names[call], .iteration = repeat_->iteration});
}

namespace {

// A size argument of a call: block(x, h = 12).
bool is_size(const syntax::LayerArgument& argument) { return argument.size != nullptr; }

}  // namespace

Result<ValueId> Binder::call_layer(const syntax::Source& source) {
  WEFT_TRY_STATUS(count_step(source.span));
  const LayerDefinition* found = catalog_.find_layer(source.name.text, frames_.back().shipped);
  if (found == nullptr) {
    Error error = unknown("layer", source.name, names_of(catalog_.layers));
    if (find_function(source.name.text) != nullptr || catalog_.functions.contains(source.name.text))
      error.hint = fmt::format("{} is a function: call it in SELECT or WHERE, not in FROM", source.name.text);
    return error;
  }
  const syntax::CreateLayer& layer = *found->statement;
  std::string chain;
  for (const Frame& frame : frames_) {
    if (!chain.empty() || frame.definition == &layer) chain += fmt::format("{} -> ", frame.name);
  }
  if (!chain.empty())
    return user_error(fmt::format("layer {} calls itself: {}{}", layer.name.text, chain, layer.name.text),
                      "use REPEAT to stack layers", source.span);
  if (frames_.size() > static_cast<std::size_t>(plan::kDeepestScope) - 1)
    return user_error(fmt::format("layers are nested more than {} deep", plan::kDeepestScope - 1),
                      "inline some of them", source.span);

  std::vector<LayerInput> inputs;
  std::vector<SizeOverride> sizes;
  for (const syntax::LayerArgument& argument : source.arguments) {
    if (is_size(argument)) {
      WEFT_TRY(size, evaluate_size(*argument.size));
      if (std::ranges::any_of(sizes,
                              [&](const SizeOverride& given) { return given.name == argument.name.text; }))
        return user_error(fmt::format("size {} is given twice", argument.name.text), "remove one of them",
                          argument.span);
      sizes.push_back({std::string(argument.name.text), size, argument.span});
      continue;
    }
    const Symbol name = graph_.symbol(argument.name.text);
    const ValueId value = find_tensor(name);
    if (!value.valid()) return unknown("tensor", argument.name, tensor_names());
    WEFT_TRY(used, use_indices(value, argument.name.text, argument.indices, argument.span));
    inputs.push_back(
        {used, argument.name.text, !argument.indices.empty() || !order_is_open(value), &argument});
  }

  const plan::ScopeId outer_scope = graph_.scope();
  const Symbol outer_label = graph_.label();
  const plan::ScopeId scope = scope_of_call(source);
  Repeat* const enclosing = std::exchange(repeat_, nullptr);
  graph_.set_scope(scope);
  graph_.set_label({});
  enter_frame(layer, layer.name.text, found->source->text, found->shipped);
  // Errors in the call point at the call; errors in the body point into the layer's own text.
  const auto in_body = [&](Error error) {
    bool in_call = false;
    for (const SizeOverride& given : sizes) in_call = in_call || given.span == error.span;
    if (error.text == nullptr && !in_call) {
      error.text = found->source->text;
      error.message = fmt::format("in layer {}: {}", layer.name.text, error.message);
    }
    return error;
  };
  std::vector<IndexNames> names;
  if (Status bound = bind_arguments(source, layer, inputs, names); !bound.ok()) {
    Error error = std::move(bound).error();
    if (error.hint.empty()) error.hint = suggest_call(source, layer, inputs);
    return error;
  }
  if (Status status = declare_sizes(layer.body, sizes); !status.ok())
    return in_body(std::move(status).error());
  if (Status status = declare_parameters(layer.body.parameters); !status.ok())
    return in_body(std::move(status).error());
  graph_.set_label(graph_.symbol("result"));  // the label of the layer's last SELECT
  auto result = bind_body(layer.body);
  if (!result.ok()) return in_body(std::move(result).error());
  leave_frame();
  repeat_ = enclosing;

  // Indices that came from the caller get the caller's names back.
  std::vector<Symbol> from, to;
  for (const plan::Dim& dim : graph_.type(*result).dims) {
    const auto known = std::ranges::find(names, dim.index, &IndexNames::inner);
    const Symbol outer = known == names.end() ? dim.index : known->outer;
    if (outer == dim.index) continue;
    from.push_back(dim.index);
    to.push_back(outer);
  }
  graph_.set_scope(outer_scope);
  graph_.set_label(outer_label);
  return at(source.span, ops::add_rename(graph_, *result, from, to));
}

Status Binder::try_layer(const LayerDefinition& layer) {
  const syntax::CreateLayer& statement = *layer.statement;
  graph_.name = std::string(statement.name.text);
  enter_frame(statement, statement.name.text, layer.source->text, layer.shipped);
  // Only a layer with defaults for all sizes can be tried; otherwise the first call reports errors.
  for (const syntax::Size& size : statement.body.sizes)
    if (size.value == nullptr) return {};
  for (const syntax::Tensor& argument : statement.arguments)
    for (const syntax::Name& index : argument.indices)
      if (std::ranges::none_of(statement.body.sizes,
                               [&](const syntax::Size& size) { return size.name.text == index.text; }))
        return {};
  WEFT_TRY_STATUS(declare_sizes(statement.body, {}));
  for (const syntax::Tensor& argument : statement.arguments) {
    WEFT_TRY(type, declared_type(argument));
    WEFT_TRY(value, at(argument.span, ops::add_input(graph_, argument.name.text, type)));
    set_tensor(graph_.symbol(argument.name.text), value);
  }
  WEFT_TRY_STATUS(declare_parameters(statement.body.parameters));
  auto result = bind_body(statement.body);
  return result.ok() ? Status() : Status(std::move(result).error());
}

}  // namespace weft::language
