// Matches the tensors of a layer call to the layer's arguments, index by index, and suggests a call
// if the match is ambiguous.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/language/binder.h"
#include "weft/language/print.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::ValueId;

namespace {

std::string indices_of(const syntax::Tensor& tensor) {
  std::string text;
  for (const syntax::Name& index : tensor.indices)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", index.text);
  return text.empty() ? text : "[" + text + "]";
}

// "block takes x[b, s, d]": in the layer's own names, which may be unknown to the caller.
std::string signature(const syntax::CreateLayer& layer) {
  std::string text;
  for (const syntax::Tensor& argument : layer.arguments)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", argument.name.text, indices_of(argument));
  return fmt::format("{} takes {}", layer.name.text, text);
}

}  // namespace

// Indices match by name. Otherwise they match by position, if the caller fixed the order and no
// shared name is at another position.
bool Binder::fits(const LayerInput& given, std::span<const Symbol> wanted) {
  const plan::Type type = graph_.type(given.value);
  if (std::ranges::all_of(wanted, [&](Symbol index) { return type.has(index); })) return true;
  for (std::size_t d = 0; d < wanted.size(); ++d)
    if (const int place = type.position(wanted[d]); place >= 0 && place != static_cast<int>(d)) return false;
  return given.order_is_stated || type.rank() < 2;
}

Result<ValueId> Binder::fit_argument(const LayerInput& given, const syntax::Tensor& formal,
                                     const syntax::CreateLayer& layer, const syntax::Source& source) {
  const plan::Type type = graph_.type(given.value);
  SymbolList wanted;
  for (const syntax::Name& index : formal.indices) wanted.push_back(graph_.symbol(index.text));
  if (std::ranges::all_of(wanted, [&](Symbol index) { return type.has(index); }))
    return at(source.span, ops::add_transpose(graph_, given.value, wanted));
  if (fits(given, wanted)) return given.value;
  const std::string lists = fmt::format("{}{} of {} is given {}{}", formal.name.text, indices_of(formal),
                                        layer.name.text, given.name, indices_text(type.dims));
  for (std::size_t d = 0; d < wanted.size(); ++d)
    if (const int place = type.position(wanted[d]); place >= 0 && place != static_cast<int>(d))
      return user_error(fmt::format("{}: {} is index {} of one operand and index {} of the other", lists,
                                    graph_.text(wanted[d]), d + 1, place + 1),
                        {}, source.span);
  return user_error(fmt::format("{}, whose order is not fixed", lists), {}, source.span);
}

// An error without a hint gets its hint from suggest_call().
Status Binder::bind_arguments(const syntax::Source& source, const syntax::CreateLayer& layer,
                              std::span<const LayerInput> inputs, std::vector<IndexNames>& names) {
  if (inputs.size() != layer.arguments.size())
    return user_error(fmt::format("{} takes {} tensor{}, found {}", layer.name.text, layer.arguments.size(),
                                  layer.arguments.size() == 1 ? "" : "s", inputs.size()),
                      signature(layer), source.span);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const syntax::Tensor& formal = layer.arguments[i];
    if (const plan::Type type = graph_.type(inputs[i].value); type.rank() != formal.indices.size())
      return user_error(
          fmt::format("argument {} of {} has {} indices, found {} in {}", formal.name.text, layer.name.text,
                      formal.indices.size(), type.rank(), indices_text(type.dims)),
          signature(layer), source.span);
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
                          signature(layer), source.span);
      for (const IndexNames& known : names)
        if ((known.inner == inner) != (known.outer == outer))
          return user_error(known.inner == inner
                                ? fmt::format("index {} of {} is {} in {} and {} in {}", graph_.text(inner),
                                              layer.name.text, graph_.text(known.outer), known.tensor,
                                              graph_.text(outer), inputs[i].name)
                                : fmt::format("{} is index {} of {} in {} and index {} in {}",
                                              graph_.text(outer), graph_.text(known.inner), layer.name.text,
                                              known.tensor, graph_.text(inner), inputs[i].name),
                            {}, source.span);
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

Binder::Meaning Binder::meaning_of_fit(const plan::Type& type, std::span<const Symbol> wanted) {
  const bool by_name = std::ranges::all_of(wanted, [&](Symbol index) { return type.has(index); });
  Meaning meaning;
  for (std::size_t d = 0; d < type.rank(); ++d)
    meaning.push_back(
        by_name ? static_cast<std::size_t>(std::ranges::find(wanted, type.dims[d].index) - wanted.begin())
                : d);
  return meaning;
}

// The tensor's own index names: s in x[b, s AS t].
Binder::SymbolList Binder::own_names(const LayerInput& given) {
  SymbolList names;
  if (given.written->indices.empty())
    for (const plan::Dim& dim : graph_.type(given.value).dims) names.push_back(dim.index);
  for (const syntax::IndexUse& use : given.written->indices) {
    if (use.kind == syntax::IndexUseKind::split)
      for (const syntax::Name& part : use.parts) names.push_back(graph_.symbol(part.text));
    else
      names.push_back(graph_.symbol(use.kind == syntax::IndexUseKind::merge ? use.to.text : use.from.text));
  }
  return names;
}

// Evidence for a meaning: positions, if the caller fixed the order; shared names; and the meanings
// of the other tensors' indices. Returns all meanings with the most evidence.
std::vector<Binder::Meaning> Binder::likely_meanings(const LayerInput& given, std::span<const Symbol> wanted,
                                                     std::span<const IndexNames> tied) {
  constexpr std::size_t kMostIndices = 6;  // 720 orders
  const plan::Type type = graph_.type(given.value);
  if (type.rank() > kMostIndices) return {};
  const SymbolList own = own_names(given);
  std::vector<std::size_t> order(type.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Meaning> best;
  int most = -1;
  do {
    bool place = given.order_is_stated, name = true, tie = true;
    for (std::size_t d = 0; d < order.size(); ++d) {
      const Symbol outer = type.dims[d].index, inner = wanted[order[d]];
      place = place && order[d] == d;
      name = name && (inner == outer || !std::ranges::count(wanted, outer));
      for (const IndexNames& known : tied) tie = tie && (known.inner == inner) == (known.outer == own[d]);
    }
    const int votes = int{place} + int{name} + int{tie};
    if (votes < most) continue;
    if (votes > most) best.clear();
    most = votes;
    best.emplace_back(std::span<const std::size_t>(order));
  } while (std::ranges::next_permutation(order).found);
  return best;
}

// The tensor as written in the call, with `names` for its indices. Empty if part of a split index,
// or a merged index, would need another name, since its size may not be declared.
std::optional<std::string> Binder::as_call_argument(const LayerInput& given, std::span<const Symbol> names) {
  const plan::Type type = graph_.type(given.value);
  const std::string_view caller = *frames_[frames_.size() - 2].text;
  std::string text;
  bool changes = false;
  std::size_t d = 0;
  const auto add = [&](std::string_view from, std::string_view to) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", print_name(from));
    if (from != to) text += fmt::format(" AS {}", print_name(to));
  };
  if (given.written->indices.empty()) {
    for (; d < type.rank(); ++d) {
      changes = changes || type.dims[d].index != names[d];
      add(graph_.text(type.dims[d].index), graph_.text(names[d]));
    }
  }
  for (const syntax::IndexUse& use : given.written->indices) {
    const bool one = use.kind == syntax::IndexUseKind::plain || use.kind == syntax::IndexUseKind::rename;
    const std::size_t count = use.kind == syntax::IndexUseKind::split ? use.parts.size() : 1;
    for (std::size_t part = 0; part < count; ++part, ++d) {
      const bool changed = type.dims[d].index != names[d];
      if (changed && !one) return std::nullopt;
      changes = changes || changed;
    }
    if (one)
      add(use.from.text, graph_.text(names[d - 1]));
    else
      text += fmt::format("{}{}", text.empty() ? "" : ", ", caller.substr(use.span.offset, use.span.length));
  }
  if (!changes) return std::string(caller.substr(given.written->span.offset, given.written->span.length));
  return fmt::format("{}[{}]", print_name(given.name), text);
}

// Replacements for a call whose indices do not match: the likeliest call, or several that are
// equally likely. Empty if there are too many, or if renaming is not enough.
std::vector<std::string> Binder::candidate_calls(const syntax::Source& source,
                                                 const syntax::CreateLayer& layer,
                                                 std::span<const LayerInput> inputs) {
  std::vector<SymbolList> wanted(inputs.size());
  std::vector<std::vector<Meaning>> meant(inputs.size());
  std::vector<char> renames(inputs.size(), 0);
  std::vector<IndexNames> tied;  // per tensor that fits
  std::vector<std::size_t> ties_end(inputs.size(), 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const plan::Type type = graph_.type(inputs[i].value);
    for (const syntax::Name& index : layer.arguments[i].indices)
      wanted[i].push_back(graph_.symbol(index.text));
    if (type.rank() != wanted[i].size()) return {};
    renames[i] = !fits(inputs[i], wanted[i]);
    if (renames[i]) continue;
    const Meaning fit = meaning_of_fit(type, wanted[i]);
    meant[i].push_back(fit);
    const SymbolList own = own_names(inputs[i]);
    for (std::size_t d = 0; d < type.rank(); ++d) tied.push_back({wanted[i][fit[d]], own[d], inputs[i].name});
    ties_end[i] = tied.size();
  }
  std::size_t open = inputs.size();  // the argument with several meanings
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<IndexNames> others = tied;
    if (!renames[i])
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(ties_end[i] - wanted[i].size()),
                   others.begin() + static_cast<std::ptrdiff_t>(ties_end[i]));
    // An argument that fits alone may still have another meaning in view of the others.
    for (const Meaning& likely : likely_meanings(inputs[i], wanted[i], others))
      if (std::ranges::none_of(meant[i], [&](const Meaning& one) { return std::ranges::equal(one, likely); }))
        meant[i].push_back(likely);
    if (meant[i].empty() || (meant[i].size() > 1 && open < inputs.size())) return {};
    if (meant[i].size() > 1) open = i;
  }
  const auto name_at = [&](std::size_t i, const Meaning& meaning, std::size_t d) {
    return wanted[i][meaning[d]];
  };
  const auto meaning_at = [&](std::size_t i, std::size_t choice) -> const Meaning& {
    return meant[i][i == open ? choice : 0];
  };
  const std::size_t choices = open < inputs.size() ? meant[open].size() : 1;
  constexpr std::size_t kMostChoices = 3;
  if (choices > kMostChoices) return {};
  std::vector<std::string> calls;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    // A tensor that fits keeps its names while they mean the same in the whole call.
    std::vector<char> renamed = renames;
    if (choice > 0) renamed[open] = 1;  // also rename the argument with several meanings
    const auto outer_at = [&](std::size_t i, std::size_t d) {
      return renamed[i] ? name_at(i, meaning_at(i, choice), d) : graph_.type(inputs[i].value).dims[d].index;
    };
    const auto clash = [&](std::size_t i, std::size_t j) {
      for (std::size_t d = 0; d < wanted[i].size(); ++d)
        for (std::size_t e = 0; e < wanted[j].size(); ++e)
          if ((outer_at(i, d) == outer_at(j, e)) !=
              (name_at(i, meaning_at(i, choice), d) == name_at(j, meaning_at(j, choice), e)))
            return true;
      return false;
    };
    for (bool settled = false; !settled;) {
      settled = true;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t j = 0; j < inputs.size() && !renamed[i]; ++j)
          if (i != j && clash(i, j)) {
            renamed[i] = 1;
            settled = false;
          }
    }
    std::map<std::uint32_t, std::int64_t> sizes;  // of the layer's indices
    std::vector<std::string> arguments;
    bool right = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const plan::Type type = graph_.type(inputs[i].value);
      SymbolList names;
      for (std::size_t d = 0; d < type.rank(); ++d) {
        names.push_back(outer_at(i, d));
        const auto [known, is_new] =
            sizes.emplace(name_at(i, meaning_at(i, choice), d).value, type.dims[d].size);
        right = right && known->second == type.dims[d].size;
      }
      const auto text = as_call_argument(inputs[i], names);
      if (!text) return {};
      arguments.push_back(*text);
    }
    if (!right) continue;
    for (const syntax::LayerArgument& argument : source.arguments)
      if (argument.size != nullptr)
        arguments.push_back(
            frames_[frames_.size() - 2].text->substr(argument.span.offset, argument.span.length));
    calls.push_back(fmt::format("{}({})", print_name(layer.name.text), fmt::join(arguments, ", ")));
  }
  return calls;
}

// Whether a replacement call binds. The nodes it leaves in the plan are harmless, since binding has
// failed.
bool Binder::binds(const std::string& call) {
  const auto parsed = parse_and_keep(fmt::format("CREATE LAYER trial(x) AS SELECT * FROM {}", call));
  if (!parsed.ok()) return false;
  const auto& trial = (*parsed)->script.statements.front()->as<syntax::CreateLayer>();
  const std::size_t depth = frames_.size();
  const plan::ScopeId scope = graph_.scope();
  const bool bound = call_layer(trial.body.query->select.sources.front()).ok();
  while (frames_.size() > depth) leave_frame();
  graph_.set_scope(scope);
  return bound;
}

// A hint for a call whose indices do not match. REQUIRES: the layer's frame is the last one. The
// frame is left.
std::string Binder::suggest_call(const syntax::Source& source, const syntax::CreateLayer& layer,
                                 std::span<const LayerInput> inputs) {
  std::string words = fmt::format("rename indices with AS: {}", signature(layer));
  if (std::exchange(tries_, true)) return words;
  std::vector<std::string> calls = candidate_calls(source, layer, inputs);
  leave_frame();
  std::erase_if(calls, [&](const std::string& call) { return !binds(call); });
  if (calls.empty()) return words;
  if (calls.size() == 1) return "write " + calls.front();
  return fmt::format("choose one: {}", fmt::join(calls, " or "));
}

}  // namespace weft::language
