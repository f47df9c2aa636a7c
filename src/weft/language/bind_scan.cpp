// SCAN OVER s z AS (query): runs the query for each position along s in order, with the previous z.
//
// It is unrolled like REPEAT: a step consists of ordinary nodes. In each step, tensors with index s
// are sliced to the step's position, without s. Afterwards z has the values of all steps along s.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

namespace {

// The tensors that a query may refer to, in order; a layer call names its arguments.
void named_tensors(const syntax::Query& query, std::vector<std::string_view>& names) {
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const syntax::Binding& binding : query.bindings) named_tensors(*binding.query, names);
  for (const syntax::Source& source : query.select.sources) {
    if (source.kind == syntax::SourceKind::tensor) add(source.name.text);
    if (source.query != nullptr) named_tensors(*source.query, names);
    for (const syntax::LayerArgument& argument : source.arguments)
      if (argument.size == nullptr) add(argument.name.text);
  }
}

bool calls_layers(const syntax::Query& query) {
  const auto calls = [](const syntax::Source& source) {
    return source.kind == syntax::SourceKind::call ||
           (source.query != nullptr && calls_layers(*source.query));
  };
  return std::ranges::any_of(query.bindings,
                             [](const auto& binding) { return calls_layers(*binding.query); }) ||
         std::ranges::any_of(query.select.sources, calls);
}

}  // namespace

Result<ValueId> Binder::bind_scan_step(const syntax::Binding& binding, Dim over, std::int64_t step) {
  std::vector<std::string_view> names;
  named_tensors(*binding.query, names);
  const std::size_t mark = undo_.size();
  for (const std::string_view name : names) {
    const Symbol symbol = graph_.symbol(name);
    const ValueId whole = find_tensor(symbol);
    if (!whole.valid() || !graph_.type(whole).has(over.index)) continue;
    WEFT_TRY(part, at(binding.span, ops::add_slice(graph_, whole, over.index, step, step + 1)));
    WEFT_TRY(there, at(binding.span, drop_single(part, over.index)));
    set_tensor(symbol, there);
  }
  WEFT_TRY(value, bind_query(*binding.query));
  undo_to(mark);
  return value;
}

Status Binder::bind_scan(const syntax::Binding& binding) {
  const Symbol name = graph_.symbol(binding.name.text);
  const ValueId first = find_tensor(name);
  if (!first.valid())
    return user_error(fmt::format("SCAN needs an initial {}, but none is defined", binding.name.text),
                      fmt::format("define it first: {} AS (SELECT zeros(b, d) FROM x)", binding.name.text),
                      binding.name.span);
  // A tensor named in the query determines the number of steps.
  const Symbol index = graph_.symbol(binding.over.text);
  Dim over{index, 0};
  std::vector<std::string_view> names;
  named_tensors(*binding.query, names);
  for (const std::string_view tensor : names) {
    const ValueId value = find_tensor(graph_.symbol(tensor));
    if (!value.valid() || !graph_.type(value).has(index)) continue;
    const std::int64_t size = graph_.type(value).size_of(index);
    if (over.size != 0 && over.size != size)
      return user_error(fmt::format("index {} has size {} in {}, and {} in another tensor of this SCAN",
                                    binding.over.text, size, tensor, over.size),
                        "rename one of them in an earlier WITH entry", binding.over.span);
    over.size = size;
  }
  if (over.size == 0)
    return user_error(fmt::format("no tensor of this SCAN has an index {}", binding.over.text),
                      "SCAN OVER needs an index of a tensor that its query reads", binding.over.span);
  if (graph_.type(first).has(index))
    return user_error(
        fmt::format("the initial {} has the scan index {}", binding.name.text, binding.over.text),
        fmt::format("start with a {} without {}", binding.name.text, binding.over.text), binding.name.span);
  if (calls_layers(*binding.query))
    return user_error("a layer cannot be called inside SCAN", "inline its query, or SCAN inside the layer",
                      binding.span);

  const plan::ScopeId outer = graph_.scope();
  Repeat* const enclosing = std::exchange(repeat_, nullptr);
  const Symbol scope_name = unique_scope_name(outer, binding.name.text);
  const std::size_t mark = undo_.size();
  std::vector<ValueId> states;
  for (std::int64_t step = 0; step < over.size; ++step) {
    WEFT_TRY_STATUS(count_step(binding.span));
    graph_.set_scope(graph_.add_scope(
        {.parent = outer, .name = scope_name, .iteration = static_cast<std::int32_t>(step)}));
    WEFT_TRY(state, bind_scan_step(binding, over, step));
    if (graph_.type(state).has(index))
      return user_error(fmt::format("a step of SCAN returns {}, with the scan index",
                                    indices_text(graph_.type(state).dims)),
                        fmt::format("reduce {}, or give it another name", binding.over.text), binding.span);
    SymbolList order;
    for (const Dim& dim : graph_.type(states.empty() ? state : states.front()).dims)
      order.push_back(dim.index);
    WEFT_TRY(ordered, at(binding.span, ops::add_transpose(graph_, state, order)));
    states.push_back(ordered);
    set_tensor(name, ordered);
  }
  graph_.set_scope(outer);
  repeat_ = enclosing;
  undo_to(mark);

  // z[b, d] of each step becomes z[b, s, d].
  DimList dims;
  for (const Dim& dim : graph_.type(states.front()).dims) {
    dims.push_back(dim);
    if (dims.size() == 1) dims.push_back({index, 1});
  }
  if (dims.empty()) dims.push_back({index, 1});
  for (ValueId& state : states) {
    WEFT_TRY(placed, at(binding.span, spread_to(state, dims, index)));
    state = placed;
  }
  WEFT_TRY(all, at(binding.span, concat_all(std::move(states), index)));
  set_tensor(name, all);
  return {};
}

}  // namespace weft::language
