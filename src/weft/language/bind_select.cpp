// One SELECT: its sources, its rows and groups, and its items.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/graph/words.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

// -- FROM and JOIN

Result<ValueId> Binder::bind_source(const syntax::Source& source) {
  switch (source.kind) {
    case syntax::SourceKind::tensor: {
      const ValueId value = find_tensor(graph_.symbol(source.name.text));
      if (!value.valid()) {
        Error error = unknown("tensor", source.name, tensor_names());
        if (catalog_.layers.contains(source.name.text))
          error.hint =
              fmt::format("{} is a layer: call it with its tensors in parentheses", source.name.text);
        return error;
      }
      return use_indices(value, source.name.text, source.indices, source.span);
    }
    case syntax::SourceKind::call: {
      WEFT_TRY(value, call_layer(source));
      return use_indices(value, source.name.text, source.indices, source.span);
    }
    case syntax::SourceKind::query: {
      WEFT_TRY(value, bind_query(*source.query));
      return use_indices(value, source.alias.text, source.indices, source.span);
    }
  }
  return user_error("expected a source", {}, source.span);
}

// JOIN table[v, d] ON v = tokens: looks up a row of the table for every token.
Status Binder::join(const syntax::Source& source, ValueId table, SelectScope& scope) {
  const auto* equality = source.on->if_a<syntax::Comparison>();
  if (equality == nullptr || equality->op != syntax::Operator::equal)
    return user_error("a join needs ON index = value", "for example: JOIN table[v, d] ON v = tokens",
                      source.on->span);
  const plan::Type type = graph_.type(table);
  const auto own_index = [&](const syntax::Expression& side) -> Symbol {
    const auto* name = side.if_a<syntax::NameUse>();
    if (name == nullptr) return {};
    const Symbol symbol = graph_.symbol(name->name);
    return type.has(symbol) ? symbol : Symbol();
  };
  Symbol index = own_index(*equality->left);
  const syntax::Expression* other = equality->right;
  if (!index.valid()) {
    index = own_index(*equality->right);
    other = equality->left;
  }
  if (!index.valid()) {
    std::vector<std::string_view> names;
    for (const Dim& dim : type.dims) names.push_back(graph_.text(dim.index));
    const auto* left = equality->left->if_a<syntax::NameUse>();
    std::string hint = left == nullptr ? std::string() : did_you_mean(left->name, names);
    if (hint.empty()) hint = "for example: JOIN table[v, d] ON v = tokens";
    return user_error(
        fmt::format("neither side of ON is an index of {}{}", source.label().text, indices_text(type.dims)),
        std::move(hint), source.on->span);
  }

  const Symbol label = graph_.symbol(source.label().text);
  // ON p = s, where s is an index: the first rows of the table in order, one per position of s.
  if (const auto* name = other->if_a<syntax::NameUse>()) {
    const Symbol symbol = graph_.symbol(name->name);
    const bool is_tensor =
        std::ranges::any_of(scope.sources, [&](const RowSource& row) { return row.label == symbol; });
    const auto row = std::ranges::find(scope.rows, symbol, &Dim::index);
    if (!is_tensor && row != scope.rows.end()) {
      if (row->size > type.size_of(index))
        return user_error(
            fmt::format("{} has {} rows along {}, too few for index {} of size {}", source.label().text,
                        type.size_of(index), graph_.text(index), name->name, row->size),
            fmt::format("give {} a larger size, or {} a smaller one", graph_.text(index), name->name),
            source.on->span);
      WEFT_TRY(head, at(source.on->span, ops::add_slice(graph_, table, index, 0, row->size)));
      const Symbol from[] = {index}, to[] = {symbol};
      WEFT_TRY(renamed, at(source.on->span, ops::add_rename(graph_, head, from, to)));
      scope.sources.push_back({label, renamed});
      return {};
    }
  }
  WEFT_TRY(positions, bind_expression(*other, scope));
  if (positions.is_number())
    return user_error("a join needs a tensor of positions", "to pick one row write WHERE index = number",
                      other->span);
  if (!plan::is_integer(graph_.type(positions.value).dtype))
    return user_error(fmt::format("a join needs integer positions, found {}",
                                  plan::name(graph_.type(positions.value).dtype)),
                      "declare them OF int32, or CAST(... AS int32)", other->span);
  WEFT_TRY(rows, at(source.on->span, ops::add_gather(graph_, positions.value, table, index)));
  scope.sources.push_back({label, rows});
  return {};
}

Status Binder::collect_rows(SelectScope& scope, const syntax::Select& select) {
  scope.rows.clear();
  for (std::size_t i = 0; i < scope.sources.size(); ++i) {
    for (const Dim& dim : graph_.type(scope.sources[i].value).dims) {
      const auto known = std::ranges::find(scope.rows, dim.index, &Dim::index);
      if (known == scope.rows.end()) {
        scope.rows.push_back(dim);
      } else if (known->size != dim.size && !scope.concatenates) {
        const Span span = i < select.sources.size() ? select.sources[i].span : Span{};
        return user_error(
            fmt::format("index {} has size {} in {} but {} in an earlier source", graph_.text(dim.index),
                        dim.size, graph_.text(scope.sources[i].label), known->size),
            fmt::format("give index {} of {} another name with AS", graph_.text(dim.index),
                        graph_.text(scope.sources[i].label)),
            span);
      }
    }
  }
  return {};
}

// -- GROUP BY

Status Binder::bind_groups(const syntax::Select& select, SelectScope& scope) {
  scope.grouped = !select.groups.empty();
  for (const syntax::Group& group : select.groups) {
    const Symbol name = graph_.symbol(group.name.text);
    if (group.alias.given()) {
      // GROUP BY slot AS n: groups by a value, into a new index.
      const auto source = std::ranges::find(scope.sources, name, &RowSource::label);
      if (source == scope.sources.end())
        return user_error(fmt::format("GROUP BY {} AS {} needs {} in FROM", group.name.text, group.alias.text,
                                      group.name.text),
                          fmt::format("add it: FROM ..., {}", group.name.text), group.name.span);
      if (!plan::is_integer(graph_.type(source->value).dtype))
        return user_error(fmt::format("grouping by a value needs whole numbers, {} is {}", group.name.text,
                                      plan::name(graph_.type(source->value).dtype)),
                          "CAST it AS int32 first", group.name.span);
      if (scope.scatter != nullptr)
        return user_error("GROUP BY takes one value at most", "group by the second in a SELECT of its own",
                          group.span);
      const Symbol into = graph_.symbol(group.alias.text);
      const std::int64_t* size = find_size(into);
      if (size == nullptr) return unknown_index(group.alias);
      if (*size < 1)
        return user_error(
            fmt::format("index {} must have a size of at least 1, found {}", group.alias.text, *size),
            fmt::format("for example: {} = 8", group.alias.text), group.alias.span);
      scope.scatter_storage = ValueGroup{source->value, Dim{into, *size}};
      scope.scatter = &scope.scatter_storage;
      scope.groups.push_back(scope.scatter_storage.into);
      continue;
    }
    if (std::ranges::find(scope.groups, name, &Dim::index) != scope.groups.end())
      return user_error(fmt::format("GROUP BY names {} twice", group.name.text), "remove one of them",
                        group.span);
    const auto row = std::ranges::find(scope.rows, name, &Dim::index);
    if (row != scope.rows.end()) {
      scope.groups.push_back(*row);
      continue;
    }
    // conv2d introduces this index; its size is known when the item is bound.
    if (const std::int64_t* size = find_size(name)) {
      scope.groups.push_back(Dim{name, *size});
      continue;
    }
    std::vector<std::string_view> names;
    for (const Dim& dim : scope.rows) names.push_back(graph_.text(dim.index));
    std::string hint = did_you_mean(group.name.text, names);
    if (hint.empty()) hint = fmt::format("the sources have {}", indices_text(scope.rows));
    return user_error(fmt::format("no index '{}' in the sources", group.name.text), std::move(hint),
                      group.name.span);
  }
  return {};
}

// -- the whole

Status Binder::open_select(const syntax::Select& select, SelectScope& scope) {
  WEFT_TRY_STATUS(count_step(select.span));
  for (const syntax::Item& item : select.items)
    if (item.value != nullptr) note_calls(*item.value, scope);
  scope.sources.reserve(select.sources.size());
  for (const syntax::Source& source : select.sources) {
    const Symbol label = graph_.symbol(source.label().text);
    if (std::ranges::find(scope.sources, label, &RowSource::label) != scope.sources.end())
      return user_error(fmt::format("two sources are named {}", source.label().text),
                        "give one of them a name: ... AS name", source.span);
    WEFT_TRY(value, bind_source(source));
    if (source.on != nullptr) {
      WEFT_TRY_STATUS(collect_rows(scope, select));
      WEFT_TRY_STATUS(join(source, value, scope));
    } else {
      scope.sources.push_back({label, value});
    }
  }
  WEFT_TRY_STATUS(collect_rows(scope, select));
  if (select.where != nullptr) WEFT_TRY_STATUS(apply_where(*select.where, scope));
  return bind_groups(select, scope);
}

Result<ValueId> Binder::bind_item(const syntax::Item& item, const syntax::Select& select,
                                  SelectScope& scope) {
  Bound bound;
  if (item.value == nullptr) {
    if (scope.sources.size() != 1)
      return user_error(fmt::format("SELECT * needs one source, found {}", scope.sources.size()),
                        "name the tensor you want instead of *", item.span);
    bound = Bound::of(scope.sources.front().value);
  } else {
    if (select.items.size() > 1) {  // each output is bound as its own query
      scope.aggregated = false;
      note_calls(*item.value, scope);
    }
    WEFT_TRY(expression, bind_expression(*item.value, scope));
    bound = expression;
  }
  WEFT_TRY(value, as_value(bound));
  const plan::Type type = graph_.type(value);
  if (!scope.grouped) {
    if (scope.aggregated && type.rank() > 0)
      return user_error(
          fmt::format("index {} is neither grouped nor aggregated", graph_.text(type.dims.front().index)),
          "to use an aggregate beside the rows it came from, write mean(x) OVER ()", item.span);
    return value;
  }

  for (const Dim& dim : type.dims) {
    if (std::ranges::find(scope.groups, dim.index, &Dim::index) != scope.groups.end()) continue;
    return user_error(
        fmt::format("index {} is neither grouped nor aggregated", graph_.text(dim.index)),
        fmt::format("add {} to GROUP BY, or reduce it with sum, mean, max or min", graph_.text(dim.index)),
        item.span);
  }
  SymbolList order;
  for (std::size_t g = 0; g < scope.groups.size(); ++g) {
    if (!type.has(scope.groups[g].index))
      return user_error(fmt::format("the result has no index {}, only {}", graph_.text(scope.groups[g].index),
                                    indices_text(type.dims)),
                        fmt::format("take {} out of GROUP BY", graph_.text(scope.groups[g].index)),
                        select.groups[g].span);
    order.push_back(scope.groups[g].index);
  }
  WEFT_TRY(ordered, at(item.span, ops::add_transpose(graph_, value, order)));
  stated_orders_.insert(ordered.value);
  return ordered;
}

Result<ValueId> Binder::bind_select(const syntax::Select& select) {
  SelectScope scope;
  WEFT_TRY_STATUS(open_select(select, scope));
  if (select.items.size() != 1)
    return user_error(fmt::format("expected one value, found {}", select.items.size()),
                      "only the last SELECT of a model may return several; give each its own WITH entry",
                      select.items[1].span);
  return bind_item(select.items.front(), select, scope);
}

Status Binder::bind_outputs(const syntax::Select& select) {
  SelectScope scope;
  graph_.set_label({});
  WEFT_TRY_STATUS(open_select(select, scope));
  std::vector<Symbol> names;
  for (const syntax::Item& item : select.items) {
    std::string_view name = item.alias.text;
    if (name.empty()) {
      const auto* use = item.value == nullptr ? nullptr : item.value->if_a<syntax::NameUse>();
      name = item.value == nullptr ? select.sources.front().label().text
             : use != nullptr      ? use->name
                                   : "result";
    }
    if (name.starts_with(plan::kNextWord))
      return user_error(fmt::format("{} is the name of a state's next value, not of an output", name),
                        "give it another name: ... AS name", item.span);
    const Symbol symbol = graph_.symbol(name);
    if (std::ranges::find(names, symbol) != names.end())
      return user_error(fmt::format("two outputs are named {}", name), "give one another name: ... AS name",
                        item.span);
    names.push_back(symbol);
    graph_.set_label(symbol);
    WEFT_TRY(value, bind_item(item, select, scope));
    graph_.add_output(symbol, value);
  }
  return {};
}

}  // namespace weft::language
