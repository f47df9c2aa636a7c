// Index lists of sources: k[b, h, s AS t, e], x[b, s, d AS (h, e)], y[b, s, (h, e) AS d].
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

Result<ValueId> Binder::use_indices(ValueId value, std::string_view name,
                                    std::span<const syntax::IndexUse> uses, Span span) {
  if (uses.empty()) return value;
  const plan::Type type = graph_.type(value);
  std::vector<char> used(type.rank(), 0);
  const auto mark = [&](const syntax::Name& index) -> Status {
    const int position = type.position(graph_.symbol(index.text));
    if (position < 0) {
      std::vector<std::string_view> names;
      for (const Dim& dim : type.dims) names.push_back(graph_.text(dim.index));
      std::string hint = did_you_mean(index.text, names);
      if (hint.empty())
        hint = type.dims.empty() ? fmt::format("{} is a scalar: remove the brackets", name)
                                 : "name every index, or none";
      return user_error(fmt::format("no index '{}' in {}{}", index.text, name, indices_text(type.dims)),
                        std::move(hint), index.span);
    }
    if (used[static_cast<std::size_t>(position)]++)
      return user_error(fmt::format("index {} of {} is named twice", index.text, name),
                        fmt::format("{} has {}", name, indices_text(type.dims)), index.span);
    return {};
  };
  for (const syntax::IndexUse& use : uses) {
    if (use.kind == syntax::IndexUseKind::merge) {
      for (const syntax::Name& part : use.parts) WEFT_TRY_STATUS(mark(part));
    } else {
      WEFT_TRY_STATUS(mark(use.from));
    }
  }
  for (std::size_t d = 0; d < type.rank(); ++d)
    if (!used[d])
      return user_error(fmt::format("index {} of {}{} is missing", graph_.text(type.dims[d].index), name,
                                    indices_text(type.dims)),
                        "name every index, or none", span);

  std::vector<Symbol> from, to;
  for (const syntax::IndexUse& use : uses) {
    if (use.kind != syntax::IndexUseKind::rename) continue;
    from.push_back(graph_.symbol(use.from.text));
    to.push_back(graph_.symbol(use.to.text));
  }
  if (!from.empty()) {
    WEFT_TRY(renamed, at(span, ops::add_rename(graph_, value, from, to),
                         "choose a name that is not an index of the tensor"));
    value = renamed;
  }
  for (const syntax::IndexUse& use : uses) {
    if (use.kind != syntax::IndexUseKind::split) continue;
    WEFT_TRY(part, split_index(value, use));
    value = part;
  }
  // Transpose to the written order, which positional matching relies on. Merged parts must be
  // adjacent, since a merge keeps the memory as it is.
  std::vector<Symbol> order;
  for (const syntax::IndexUse& use : uses) {
    const bool one = use.kind != syntax::IndexUseKind::split && use.kind != syntax::IndexUseKind::merge;
    if (one)
      order.push_back(graph_.symbol(use.kind == syntax::IndexUseKind::rename ? use.to.text : use.from.text));
    else
      for (const syntax::Name& part : use.parts) order.push_back(graph_.symbol(part.text));
  }
  WEFT_TRY(ordered, at(span, ops::add_transpose(graph_, value, order)));
  value = ordered;
  for (const syntax::IndexUse& use : uses) {
    if (use.kind != syntax::IndexUseKind::merge) continue;
    WEFT_TRY(whole, merge_indices(value, use));
    value = whole;
  }
  stated_orders_.insert(value.value);
  return value;
}

// Whether the index order was never stated. A pointwise node has the order of an operand with the
// same indices, so the walk continues there. If no operand has all indices, as in u + s, the order
// is an accident of evaluation. All other nodes state an order: an input its declaration, a
// convolution its definition.
bool Binder::order_is_open(ValueId value) {
  if (graph_.type(value).rank() < 2) return false;
  std::vector<ValueId> ahead{value};
  std::unordered_set<std::uint32_t> seen;
  while (!ahead.empty()) {
    const ValueId next = ahead.back();
    ahead.pop_back();
    if (!seen.insert(next.value).second) continue;
    const plan::NodeView node = graph_.view(graph_.value(next).producer);
    const bool renames = node.node().op == &ops::rename();
    if (stated_orders_.contains(next.value) || !(renames || ops::is_pointwise(*node.node().op))) {
      stated_orders_.insert(value.value);  // do not walk a chain of layers again
      return false;
    }
    const plan::Type type = graph_.type(next);
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (renames || std::ranges::equal(node.input_type(i).dims, type.dims, {}, &Dim::index, &Dim::index))
        ahead.push_back(node.input(i));
  }
  return true;
}

Result<ValueId> Binder::split_index(ValueId value, const syntax::IndexUse& use) {
  const Symbol along = graph_.symbol(use.from.text);
  const std::int64_t size = graph_.type(value).size_of(along);
  std::vector<Dim> into;
  std::int64_t known = 1;
  std::size_t missing = 0, missing_at = 0;
  for (const syntax::Name& part : use.parts) {
    const Symbol symbol = graph_.symbol(part.text);
    const std::int64_t* declared = find_size(symbol);
    if (declared == nullptr) {
      ++missing;
      missing_at = into.size();
    } else if (*declared < 1) {
      return user_error(
          fmt::format("index {} must have a size of at least 1, found {}", part.text, *declared),
          fmt::format("for example: {} = 8", part.text), part.span);
    } else if (__builtin_mul_overflow(known, *declared, &known)) {
      return user_error("size does not fit in 64 bits",
                        fmt::format("the parts of {} multiply to {}", use.from.text, size), use.span);
    }
    into.push_back(Dim{symbol, declared == nullptr ? 1 : *declared});
  }
  // The size of one part may be inferred.
  if (missing == 1 && size % known == 0) into[missing_at].size = size / known;
  if (missing > 1) return unknown_index(use.parts[missing_at]).error();
  if (missing == 1 && size % known != 0)
    return user_error(fmt::format("cannot split {} of size {} into {}: {} does not divide it", use.from.text,
                                  size, indices_text(into), known),
                      fmt::format("give the parts sizes that multiply to {}", size), use.span);
  if (missing == 0 && known != size)
    return user_error(fmt::format("cannot split {} of size {} into {}: sizes multiply to {}", use.from.text,
                                  size, indices_text(into), known),
                      fmt::format("give the parts sizes that multiply to {}", size), use.span);
  return at(use.span, ops::add_split(graph_, value, along, into),
            "choose names that are not indices of the tensor");
}

Result<ValueId> Binder::merge_indices(ValueId value, const syntax::IndexUse& use) {
  std::vector<Symbol> parts;
  for (const syntax::Name& part : use.parts) parts.push_back(graph_.symbol(part.text));
  WEFT_TRY(merged, at(use.span, ops::add_merge(graph_, value, parts, graph_.symbol(use.to.text)),
                      "choose a name that is not an index of the tensor"));
  const Symbol into = graph_.symbol(use.to.text);
  const std::int64_t* declared = find_size(into);
  const std::int64_t size = graph_.type(merged).size_of(into);
  if (declared != nullptr && *declared != size)
    return user_error(
        fmt::format("index {} has size {}, but the parts multiply to {}", use.to.text, *declared, size),
        fmt::format("declare {} = {}, or merge into another name", use.to.text, size), use.span);
  return merged;
}

}  // namespace weft::language
