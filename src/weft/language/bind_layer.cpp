// Layer calls: a layer's text unfolded once more, with parameters and a scope of its own.
#include <algorithm>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/ops/build.h"

namespace weft::language {

using plan::ValueId;

Symbol Binder::unique_scope_name(plan::ScopeId parent, std::string_view name) {
  const Symbol plain = graph_.symbol(name);
  const std::uint64_t key = (static_cast<std::uint64_t>(parent.value) << 32) | plain.value;
  const std::uint32_t uses = ++scope_names_[key];
  return uses == 1 ? plain : graph_.symbol(fmt::format("{}_{}", name, uses));
}

// block.3 inside a REPEAT, else block, block_2, ...; an alias takes the layer's place.
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

// How the layer is called: "write block(x[b, s, d])".
std::string usage(const syntax::CreateLayer& layer) {
  std::string text;
  for (const syntax::Tensor& argument : layer.arguments) {
    std::string indices;
    for (const syntax::Name& index : argument.indices)
      indices += fmt::format("{}{}", indices.empty() ? "" : ", ", index.text);
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", argument.name.text,
                        indices.empty() ? "" : "[" + indices + "]");
  }
  return fmt::format("write {}({})", layer.name.text, text);
}

// What a call gives by name: block(x, h = 12).
bool is_size(const syntax::LayerArgument& argument) { return argument.size != nullptr; }

}  // namespace

// What to write so that nothing is left to guess: "mask[s, u AS t]".
std::string Binder::spelled_out(std::string_view name, const plan::Type& type, const syntax::Tensor& formal) {
  std::vector<Symbol> left;  // names of the layer that the tensor has not
  for (const syntax::Name& index : formal.indices)
    if (!type.has(graph_.symbol(index.text))) left.push_back(graph_.symbol(index.text));
  std::string text;
  std::size_t next = 0;
  for (const plan::Dim& dim : type.dims) {
    const bool shared = std::ranges::any_of(
        formal.indices, [&](const syntax::Name& index) { return graph_.symbol(index.text) == dim.index; });
    text += fmt::format("{}{}", text.empty() ? "" : ", ", graph_.text(dim.index));
    if (!shared && next < left.size()) text += fmt::format(" AS {}", graph_.text(left[next++]));
  }
  return fmt::format("{}[{}]", name, text);
}

// An argument's indices go to the layer's by name. Names that the layer does not have go by place, where the
// caller said the order and no name that both have stands elsewhere: then place and name agree.
Result<ValueId> Binder::fit_argument(const LayerInput& given, const syntax::Tensor& formal,
                                     const syntax::CreateLayer& layer, const syntax::Source& source) {
  const plan::Type type = graph_.type(given.value);
  std::vector<Symbol> wanted;
  for (const syntax::Name& index : formal.indices) wanted.push_back(graph_.symbol(index.text));
  const bool all_by_name = std::ranges::all_of(wanted, [&](Symbol index) { return type.has(index); });
  if (all_by_name) return at(source.span, ops::add_transpose(graph_, given.value, wanted));
  const std::string hint = fmt::format("say which is which: {}", spelled_out(given.name, type, formal));
  const auto lists = [&] {
    std::string inner;
    for (const syntax::Name& index : formal.indices)
      inner += fmt::format("{}{}", inner.empty() ? "" : ", ", index.text);
    return fmt::format("{}[{}] of {} is given {}{}", formal.name.text, inner, layer.name.text, given.name,
                       indices_text(type.dims));
  };
  for (std::size_t d = 0; d < wanted.size(); ++d)
    if (const int place = type.position(wanted[d]); place >= 0 && place != static_cast<int>(d))
      return user_error(fmt::format("{}: {} is index {} of the one and index {} of the other", lists(),
                                    graph_.text(wanted[d]), d + 1, place + 1),
                        hint, source.span);
  if (!given.order_is_said && type.rank() > 1)
    return user_error(fmt::format("{}, whose order nobody said", lists()),
                      fmt::format("{}, or GROUP BY them in order", hint), source.span);
  return given.value;
}

Status Binder::bind_arguments(const syntax::Source& source, const syntax::CreateLayer& layer,
                              std::span<const LayerInput> inputs, std::vector<IndexNames>& names) {
  if (inputs.size() != layer.arguments.size())
    return user_error(fmt::format("{} takes {} tensor{}, found {}", layer.name.text, layer.arguments.size(),
                                  layer.arguments.size() == 1 ? "" : "s", inputs.size()),
                      usage(layer), source.span);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const syntax::Tensor& formal = layer.arguments[i];
    if (const plan::Type type = graph_.type(inputs[i].value); type.rank() != formal.indices.size())
      return user_error(
          fmt::format("argument {} of {} has {} indices, found {} in {}", formal.name.text, layer.name.text,
                      formal.indices.size(), type.rank(), indices_text(type.dims)),
          usage(layer), source.span);
    WEFT_TRY(fitted, fit_argument(inputs[i], formal, layer, source));
    const plan::Type type = graph_.type(fitted);
    if (formal.dtype.given() && plan::find_dtype(formal.dtype.text) != type.dtype)
      return user_error(fmt::format("argument {} of {} is {}, found {}", formal.name.text, layer.name.text,
                                    formal.dtype.text, plan::name(type.dtype)),
                        "CAST it in a WITH entry first", source.span);
    std::vector<Symbol> from, to;
    for (std::size_t d = 0; d < type.rank(); ++d) {
      const Symbol inner = graph_.symbol(formal.indices[d].text), outer = type.dims[d].index;
      if (const std::int64_t* known = find_size(inner); known != nullptr && *known != type.dims[d].size)
        return user_error(fmt::format("index {} of {} has size {} in one argument and {} in another",
                                      formal.indices[d].text, layer.name.text, *known, type.dims[d].size),
                          usage(layer), source.span);
      const auto renamed = [&](Symbol name) {  // b, s AS t
        std::string text;
        for (const plan::Dim& dim : type.dims) {
          text += fmt::format("{}{}", text.empty() ? "" : ", ", graph_.text(dim.index));
          if (dim.index == outer) text += fmt::format(" AS {}", graph_.text(name));
        }
        return text;
      };
      for (const IndexNames& known : names)
        if ((known.inner == inner) != (known.outer == outer))
          return user_error(known.inner == inner
                                ? fmt::format("index {} of {} is {} in {} and {} in {}", graph_.text(inner),
                                              layer.name.text, graph_.text(known.outer), known.tensor,
                                              graph_.text(outer), inputs[i].name)
                                : fmt::format("{} is index {} of {} in {} and index {} in {}",
                                              graph_.text(outer), graph_.text(known.inner), layer.name.text,
                                              known.tensor, graph_.text(inner), inputs[i].name),
                            fmt::format("rename one of them: {}[{}]", inputs[i].name,
                                        renamed(known.inner == inner ? known.outer : inner)),
                            source.span);
      names.push_back({inner, outer, inputs[i].name});
      set_size(inner, type.dims[d].size);
      if (outer == inner) continue;
      from.push_back(outer);
      to.push_back(inner);
    }
    WEFT_TRY(value, at(source.span, ops::add_rename(graph_, fitted, from, to)));
    set_tensor(graph_.symbol(formal.name.text), value);
  }
  return {};
}

Result<ValueId> Binder::call_layer(const syntax::Source& source) {
  WEFT_TRY_STATUS(count_step(source.span));
  const auto found = catalog_.layers.find(source.name.text);
  if (found == catalog_.layers.end()) {
    Error error = unknown("layer", source.name, names_of(catalog_.layers));
    if (find_function(source.name.text) != nullptr)
      error.hint =
          fmt::format("{} is a function: write SELECT {}(...) FROM ...", source.name.text, source.name.text);
    return error;
  }
  const syntax::CreateLayer& layer = *found->second.statement;
  std::string chain;
  for (const Frame& frame : frames_) {
    if (!chain.empty() || frame.definition == &layer) chain += fmt::format("{} -> ", frame.name);
  }
  if (!chain.empty())
    return user_error(fmt::format("layer {} calls itself: {}{}", layer.name.text, chain, layer.name.text),
                      "use REPEAT to stack layers", source.span);
  if (frames_.size() > static_cast<std::size_t>(plan::kDeepestScope) - 1)
    return user_error(fmt::format("layers nest more than {} deep", plan::kDeepestScope - 1),
                      "write some of them out where they are called", source.span);

  std::vector<LayerInput> inputs;
  std::vector<SizeOverride> sizes;
  for (const syntax::LayerArgument& argument : source.arguments) {
    if (is_size(argument)) {
      WEFT_TRY(size, evaluate_size(*argument.size));
      if (std::ranges::any_of(sizes,
                              [&](const SizeOverride& given) { return given.name == argument.name.text; }))
        return user_error(fmt::format("size {} is given twice", argument.name.text), "take one of them away",
                          argument.span);
      sizes.push_back({std::string(argument.name.text), size, argument.span});
      continue;
    }
    const Symbol name = graph_.symbol(argument.name.text);
    const ValueId value = find_tensor(name);
    if (!value.valid()) return unknown("tensor", argument.name, tensor_names());
    WEFT_TRY(used, use_indices(value, argument.name.text, argument.indices, argument.span));
    inputs.push_back({used, argument.name.text, !argument.indices.empty() || !order_is_open(value)});
  }

  const plan::ScopeId outer_scope = graph_.scope();
  const Symbol outer_label = graph_.label();
  const plan::ScopeId scope = scope_of_call(source);
  Repeat* const enclosing = std::exchange(repeat_, nullptr);
  graph_.set_scope(scope);
  graph_.set_label({});
  enter_frame(layer, layer.name.text, found->second.source->text);
  // Mistakes in the call point at the call; mistakes in the body point into the layer's own text.
  const auto in_body = [&](Error error) {
    bool in_call = false;
    for (const SizeOverride& given : sizes) in_call = in_call || given.span == error.span;
    if (error.text == nullptr && !in_call) {
      error.text = found->second.source->text;
      error.message = fmt::format("in layer {}: {}", layer.name.text, error.message);
    }
    return error;
  };
  std::vector<IndexNames> names;
  WEFT_TRY_STATUS(bind_arguments(source, layer, inputs, names));
  if (Status status = declare_sizes(layer.body, sizes); !status.ok())
    return in_body(std::move(status).error());
  if (Status status = declare_parameters(layer.body.parameters); !status.ok())
    return in_body(std::move(status).error());
  graph_.set_label(graph_.symbol("result"));  // of the layer's last SELECT
  auto result = bind_body(layer.body);
  if (!result.ok()) return in_body(std::move(result).error());
  leave_frame();
  repeat_ = enclosing;

  // An index that came from the caller gets the caller's name back.
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
  enter_frame(statement, statement.name.text, layer.source->text);
  // Without a default for every size there is nothing to try; the first call will tell.
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
