// UPDATE: the value of a STATE after a training step.
#include <algorithm>

#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::ValueId;

// Like bind_query(), but WITH entries stay visible for UPDATE.
Result<ValueId> Binder::bind_body(const syntax::Body& body) {
  if (body.updates.empty()) return bind_query(*body.query);
  const Symbol label = graph_.label();
  WEFT_TRY_STATUS(bind_with(body.query->bindings));
  graph_.set_label(label);
  WEFT_TRY(value, bind_select(body.query->select));
  WEFT_TRY_STATUS(bind_updates(body.updates));
  return value;
}

Status Binder::bind_updates(std::span<const syntax::Binding> updates) {
  if (options_.mode != Mode::train) return {};
  for (const syntax::Binding& update : updates) {
    WEFT_TRY_STATUS(count_step(update.span));
    const Symbol name = graph_.symbol(update.name.text);
    const ValueId state = find_tensor(name);
    if (!state.valid()) return unknown("tensor", update.name, tensor_names());
    if (graph_.node(graph_.value(state).producer).op != &ops::state())
      return user_error(fmt::format("UPDATE needs a STATE; {} is not one", update.name.text),
                        "TRAIN updates PARAMETERs; a WITH entry hides a STATE of the same name",
                        update.name.span);
    graph_.set_label(name);
    WEFT_TRY(bound, bind_query(*update.query));
    const plan::Type held = graph_.type(state), made = graph_.type(bound);
    const bool same = held.rank() == made.rank() && std::ranges::all_of(held.dims, [&](const plan::Dim& dim) {
                        return made.has(dim.index) && made.size_of(dim.index) == dim.size;
                      });
    if (!same || held.dtype != made.dtype)
      return user_error(
          fmt::format("{} is {} {}, but UPDATE assigns {} {}", update.name.text, plan::name(held.dtype),
                      indices_text(held.dims), plan::name(made.dtype), indices_text(made.dims)),
          same ? fmt::format("usage: CAST(... AS {})", plan::name(held.dtype))
               : std::string("GROUP BY the indices of the STATE"),
          update.span);
    SymbolList order;
    for (const plan::Dim& dim : held.dims) order.push_back(dim.index);
    WEFT_TRY(next, at(update.span, ops::add_transpose(graph_, bound, order)));
    WEFT_TRY_STATUS(add_update(state, next, update.span));
  }
  return {};
}

Status Binder::add_update(ValueId state, ValueId next, Span span) {
  if (std::ranges::find(updates_, state, &StateUpdate::state) != updates_.end())
    return user_error(
        fmt::format("{} is updated twice per step", graph_.view(graph_.value(state).producer).word(0)),
        "use one UPDATE or one batch_norm", span);
  updates_.push_back({state, next});
  return {};
}

}  // namespace weft::language
