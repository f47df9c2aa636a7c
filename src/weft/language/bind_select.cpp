// One SELECT: what its sources are, which rows and groups there are, and what its items make of them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/ops/build.h"

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
        if (error.hint.empty() && catalog_.layers.contains(source.name.text))
          error.hint = fmt::format("{} is a layer: write {}(...)", source.name.text, source.name.text);
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

namespace {

// The one index that `condition` equates with something: v in ON v = tokens.
const syntax::NameUse* as_name(const syntax::Expression& expression) { return expression.if_a<syntax::NameUse>(); }

}  // namespace

// JOIN table[v, d] ON v = tokens: looks up a row of the table for every token.
Status Binder::join(const syntax::Source& source, ValueId table, SelectScope& scope) {
  const auto* equality = source.on->if_a<syntax::Comparison>();
  if (equality == nullptr || equality->op != syntax::Operator::equal)
    return user_error("a join needs ON index = value", "for example: JOIN table[v, d] ON v = tokens", source.on->span);
  const plan::Type type = graph_.type(table);
  const auto own_index = [&](const syntax::Expression& side) -> Symbol {
    const auto* name = as_name(side);
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
    const auto* left = as_name(*equality->left);
    std::string hint = left == nullptr ? std::string() : did_you_mean(left->name, names);
    return user_error(fmt::format("neither side of ON is an index of {}{}", source.label().text, indices_text(type.dims)),
                      std::move(hint), source.on->span);
  }

  WEFT_TRY_STATUS(collect_rows(scope, {}));
  const Symbol label = graph_.symbol(source.label().text);
  // ON p = s with s an index: the rows of the table in order, as many as s has.
  if (const auto* name = as_name(*other)) {
    const Symbol symbol = graph_.symbol(name->name);
    const bool is_tensor = std::ranges::any_of(scope.sources, [&](const RowSource& row) { return row.label == symbol; });
    const auto row = std::ranges::find(scope.rows, symbol, &Dim::index);
    if (!is_tensor && row != scope.rows.end()) {
      if (row->size > type.size_of(index))
        return user_error(fmt::format("{} has {} rows along {}, too few for index {} of size {}", source.label().text,
                                      type.size_of(index), graph_.text(index), name->name, row->size),
                          {}, source.on->span);
      WEFT_TRY(head, at(source.on->span, ops::add_slice(graph_, table, index, 0, row->size)));
      const Symbol from[] = {index}, to[] = {symbol};
      WEFT_TRY(renamed, at(source.on->span, ops::add_rename(graph_, head, from, to)));
      scope.sources.push_back({label, renamed});
      return {};
    }
  }
  WEFT_TRY(positions, bind_expression(*other, scope));
  if (positions.is_number())
    return user_error("a join needs a tensor of positions", "to pick one row write WHERE index = number", other->span);
  if (!plan::is_integer(graph_.type(positions.value).dtype))
    return user_error(fmt::format("a join needs whole positions, found {}", plan::name(graph_.type(positions.value).dtype)),
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
      } else if (known->size != dim.size) {
        const Span span = i < select.sources.size() ? select.sources[i].span : Span{};
        return user_error(fmt::format("index {} has size {} in {} but {} in an earlier source", graph_.text(dim.index), dim.size,
                                      graph_.text(scope.sources[i].label), known->size),
                          fmt::format("rename one of them: {}[{} AS ...]", graph_.text(scope.sources[i].label), graph_.text(dim.index)),
                          span);
      }
    }
  }
  return {};
}

// -- WHERE

Status Binder::slice_rows(const syntax::Name& index, std::int64_t begin, std::int64_t end, bool drop, SelectScope& scope) {
  const Symbol symbol = graph_.symbol(index.text);
  for (RowSource& source : scope.sources) {
    const plan::Type type = graph_.type(source.value);
    if (!type.has(symbol)) continue;
    const std::int64_t size = type.size_of(symbol);
    const std::int64_t from = std::max<std::int64_t>(begin, 0), to = std::min(end, size);
    if (from >= to || (drop && begin != from))
      return user_error(fmt::format("WHERE leaves nothing of index {}: its positions are 0 to {}", index.text, size - 1), {},
                        index.span);
    WEFT_TRY(part, at(index.span, ops::add_slice(graph_, source.value, symbol, from, to)));
    source.value = part;
    if (drop) {
      std::vector<Symbol> rest;
      for (const Dim& dim : type.dims)
        if (dim.index != symbol) rest.push_back(dim.index);
      WEFT_TRY(dropped, at(index.span, ops::add_reduce(graph_, "sum", part, rest)));
      source.value = dropped;
    }
  }
  return collect_rows(scope, {});
}

Status Binder::apply_condition(const syntax::Expression& condition, SelectScope& scope) {
  const std::string usage = "WHERE compares an index with whole numbers: WHERE s < 128, WHERE s BETWEEN 8 AND 15, WHERE s = 0";
  const auto row_index = [&](const syntax::Expression& side) -> const syntax::NameUse* {
    const auto* name = as_name(side);
    if (name == nullptr) return nullptr;
    const Symbol symbol = graph_.symbol(name->name);
    return std::ranges::find(scope.rows, symbol, &Dim::index) == scope.rows.end() ? nullptr : name;
  };
  // A number known now: literals and sizes.
  const auto number = [&](const syntax::Expression& side) -> Result<std::int64_t> {
    SelectScope none;
    WEFT_TRY(bound, bind_expression(side, none));
    if (!bound.is_number() || bound.number != std::floor(bound.number) || std::fabs(bound.number) > 1e15)
      return user_error("expected a whole number known before running", usage, side.span);
    return static_cast<std::int64_t>(bound.number);
  };
  if (const auto* between = condition.if_a<syntax::Between>()) {
    const auto* name = row_index(*between->value);
    if (name == nullptr) return user_error("WHERE needs an index of the sources here", usage, between->value->span);
    WEFT_TRY(low, number(*between->low));
    WEFT_TRY(high, number(*between->high));
    return slice_rows({name->name, name->span}, low, high + 1, false, scope);
  }
  const auto* comparison = condition.if_a<syntax::Comparison>();
  if (comparison == nullptr) return user_error("WHERE cannot test this", usage, condition.span);
  using enum syntax::Operator;
  syntax::Operator op = comparison->op;
  const syntax::NameUse* name = row_index(*comparison->left);
  const syntax::Expression* other = comparison->right;
  if (name == nullptr) {
    name = row_index(*comparison->right);
    other = comparison->left;
    op = op == less ? greater : op == less_equal ? greater_equal : op == greater ? less : op == greater_equal ? less_equal : op;
  }
  if (name == nullptr) {
    std::vector<std::string_view> names;
    for (const Dim& dim : scope.rows) names.push_back(graph_.text(dim.index));
    const auto* written = as_name(*comparison->left);
    std::string hint = written == nullptr ? usage : did_you_mean(written->name, names);
    return user_error(fmt::format("WHERE needs an index of the sources, which have {}", indices_text(scope.rows)),
                      hint.empty() ? usage : std::move(hint), comparison->left->span);
  }
  WEFT_TRY(bound, number(*other));
  constexpr std::int64_t kEnd = std::int64_t{1} << 60;
  const syntax::Name index{name->name, name->span};
  switch (op) {
    case equal: return slice_rows(index, bound, bound + 1, true, scope);
    case less: return slice_rows(index, 0, bound, false, scope);
    case less_equal: return slice_rows(index, 0, bound + 1, false, scope);
    case greater: return slice_rows(index, bound + 1, kEnd, false, scope);
    case greater_equal: return slice_rows(index, bound, kEnd, false, scope);
    default: return user_error("WHERE cannot leave a hole in an index", usage, comparison->op_span);
  }
}

Status Binder::apply_where(const syntax::Expression& condition, SelectScope& scope) {
  const auto* chain = condition.if_a<syntax::Chain>();
  if (chain == nullptr || chain->rest.front().op != syntax::Operator::logical_and) return apply_condition(condition, scope);
  WEFT_TRY_STATUS(apply_condition(*chain->first, scope));
  for (const syntax::Term& term : chain->rest) WEFT_TRY_STATUS(apply_condition(*term.operand, scope));
  return {};
}

// -- GROUP BY

Status Binder::bind_groups(const syntax::Select& select, SelectScope& scope) {
  scope.grouped = !select.groups.empty();
  for (const syntax::Group& group : select.groups) {
    const Symbol name = graph_.symbol(group.name.text);
    if (group.alias.given()) {
      // GROUP BY slot AS n: by a value, into a new index.
      const auto source = std::ranges::find(scope.sources, name, &RowSource::label);
      if (source == scope.sources.end())
        return user_error(fmt::format("GROUP BY {} AS {} needs {} in FROM", group.name.text, group.alias.text, group.name.text),
                          {}, group.name.span);
      if (!plan::is_integer(graph_.type(source->value).dtype))
        return user_error(fmt::format("grouping by a value needs whole numbers, {} is {}", group.name.text,
                                      plan::name(graph_.type(source->value).dtype)),
                          "CAST it AS int32 first", group.name.span);
      if (scope.scatter != nullptr)
        return user_error("GROUP BY takes one value at most", {}, group.span);
      const Symbol into = graph_.symbol(group.alias.text);
      const std::int64_t* size = find_size(into);
      if (size == nullptr) return unknown_index(group.alias);
      scope.scatter_storage = ValueGroup{source->value, Dim{into, *size}};
      scope.scatter = &scope.scatter_storage;
      scope.groups.push_back(scope.scatter_storage.into);
      continue;
    }
    if (std::ranges::find(scope.groups, name, &Dim::index) != scope.groups.end())
      return user_error(fmt::format("GROUP BY names {} twice", group.name.text), {}, group.span);
    const auto row = std::ranges::find(scope.rows, name, &Dim::index);
    if (row != scope.rows.end()) {
      scope.groups.push_back(*row);
      continue;
    }
    // conv2d names an index of its own; what it is will be seen when the item is bound.
    if (const std::int64_t* size = find_size(name)) {
      scope.groups.push_back(Dim{name, *size});
      continue;
    }
    std::vector<std::string_view> names;
    for (const Dim& dim : scope.rows) names.push_back(graph_.text(dim.index));
    std::string hint = did_you_mean(group.name.text, names);
    if (hint.empty()) hint = fmt::format("the sources have {}", indices_text(scope.rows));
    return user_error(fmt::format("no index '{}' in the sources", group.name.text), std::move(hint), group.name.span);
  }
  return {};
}

bool Binder::has_aggregate(const syntax::Expression& expression) {
  using enum syntax::ExpressionKind;
  switch (expression.kind) {
    case literal:
    case boolean:
    case name: return false;
    case negate: return has_aggregate(*expression.as<syntax::Negate>().operand);
    case invert: return has_aggregate(*expression.as<syntax::Invert>().operand);
    case chain: {
      const auto& chain_of = expression.as<syntax::Chain>();
      if (has_aggregate(*chain_of.first)) return true;
      return std::ranges::any_of(chain_of.rest, [](const syntax::Term& term) { return has_aggregate(*term.operand); });
    }
    case comparison: {
      const auto& both = expression.as<syntax::Comparison>();
      return has_aggregate(*both.left) || has_aggregate(*both.right);
    }
    case between: {
      const auto& three = expression.as<syntax::Between>();
      return has_aggregate(*three.value) || has_aggregate(*three.low) || has_aggregate(*three.high);
    }
    case choice: {
      const auto& cases = expression.as<syntax::Choice>();
      if (cases.otherwise != nullptr && has_aggregate(*cases.otherwise)) return true;
      return std::ranges::any_of(cases.whens, [](const syntax::When& when) {
        return has_aggregate(*when.condition) || has_aggregate(*when.result);
      });
    }
    case cast: return has_aggregate(*expression.as<syntax::Cast>().operand);
    case call: {
      const auto& called = expression.as<syntax::Call>();
      if (!called.windowed) {
        const FunctionSpec* spec = find_function(called.function.text);
        if (spec != nullptr && spec->kind == FunctionKind::aggregate) return true;
      }
      return std::ranges::any_of(called.arguments, [](const syntax::Argument& argument) { return has_aggregate(*argument.value); });
    }
  }
  return false;
}

// -- the whole

Status Binder::open_select(const syntax::Select& select, SelectScope& scope) {
  WEFT_TRY_STATUS(count_step(select.span));
  scope.sources.reserve(select.sources.size());
  for (const syntax::Source& source : select.sources) {
    const Symbol label = graph_.symbol(source.label().text);
    if (std::ranges::find(scope.sources, label, &RowSource::label) != scope.sources.end())
      return user_error(fmt::format("two sources are named {}", source.label().text), "give one of them a name: ... AS name",
                        source.span);
    WEFT_TRY(value, bind_source(source));
    if (source.on != nullptr) {
      WEFT_TRY_STATUS(join(source, value, scope));
    } else {
      scope.sources.push_back({label, value});
    }
  }
  WEFT_TRY_STATUS(collect_rows(scope, select));
  if (select.where != nullptr) WEFT_TRY_STATUS(apply_where(*select.where, scope));
  for (const syntax::Item& item : select.items)
    scope.aggregated = scope.aggregated || (item.value != nullptr && has_aggregate(*item.value));
  return bind_groups(select, scope);
}

Result<ValueId> Binder::bind_item(const syntax::Item& item, const syntax::Select& select, SelectScope& scope) {
  Bound bound;
  if (item.value == nullptr) {
    if (scope.sources.size() != 1)
      return user_error(fmt::format("SELECT * needs one source, found {}", scope.sources.size()),
                        "name the tensor you want instead of *", item.span);
    bound = Bound::of(scope.sources.front().value);
  } else {
    WEFT_TRY(expression, bind_expression(*item.value, scope));
    bound = expression;
  }
  WEFT_TRY(value, as_value(bound));
  if (!scope.grouped) return value;

  const plan::Type type = graph_.type(value);
  for (const Dim& dim : type.dims) {
    if (std::ranges::find(scope.groups, dim.index, &Dim::index) != scope.groups.end()) continue;
    return user_error(fmt::format("index {} is neither grouped nor aggregated", graph_.text(dim.index)),
                      fmt::format("add {} to GROUP BY, or reduce it with sum, mean, max or min", graph_.text(dim.index)), item.span);
  }
  std::vector<Symbol> order;
  for (std::size_t g = 0; g < scope.groups.size(); ++g) {
    if (!type.has(scope.groups[g].index))
      return user_error(fmt::format("the result has no index {}, only {}", graph_.text(scope.groups[g].index), indices_text(type.dims)),
                        fmt::format("take {} out of GROUP BY", graph_.text(scope.groups[g].index)), select.groups[g].span);
    order.push_back(scope.groups[g].index);
  }
  return at(item.span, ops::add_transpose(graph_, value, order));
}

Result<ValueId> Binder::bind_select(const syntax::Select& select) {
  SelectScope scope;
  WEFT_TRY_STATUS(open_select(select, scope));
  if (select.items.size() != 1)
    return user_error(fmt::format("one value is needed here, found {}", select.items.size()),
                      "only the last SELECT of a model may have several; give each its own WITH entry", select.items[1].span);
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
      const auto* use = item.value == nullptr ? nullptr : as_name(*item.value);
      name = item.value == nullptr ? select.sources.front().label().text : use != nullptr ? use->name : "result";
    }
    const Symbol symbol = graph_.symbol(name);
    if (std::ranges::find(names, symbol) != names.end())
      return user_error(fmt::format("two outputs are named {}", name), "give one another name: ... AS name", item.span);
    names.push_back(symbol);
    graph_.set_label(symbol);
    WEFT_TRY(value, bind_item(item, select, scope));
    graph_.add_output(symbol, value);
  }
  return {};
}

}  // namespace weft::language
