// A call shown in a hint is correct: it parses and binds in place of the rejected call, and does
// not move an index where nothing implies that it belongs.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "thorough.h"
#include "weft/language/bind.h"
#include "weft/language/catalog.h"
#include "weft/language/complaint.h"
#include "weft/language/functions.h"
#include "weft/language/shipped.h"
#include "weft/plan/graph/hash.h"

namespace weft::language {
namespace {

const Catalog& shipped() {
  static const Catalog catalog = [] {
    Catalog loaded;
    load_shipped(loaded);
    return loaded;
  }();
  return catalog;
}

// The last statement's model, with the layers before it defined.
Result<BoundModel> bind_script(const std::string& text, const BindOptions& options = {}) {
  WEFT_TRY(parsed, parse_and_keep(text));
  const bool alone = parsed->script.statements.size() == 1;
  Catalog catalog;  // a script with its own layers calls no shipped one
  for (const syntax::Statement* statement : parsed->script.statements) {
    if (statement->kind == syntax::StatementKind::create_model)
      return bind(alone ? shipped() : catalog, ModelDefinition{parsed, &statement->as<syntax::CreateModel>()},
                  options);
    WEFT_TRY_STATUS(define(catalog, parsed, *statement, options));
  }
  return user_error("no model");
}

// The calls in a hint; none if it has none.
std::vector<std::string> shown_calls(std::string_view hint) {
  constexpr std::string_view kOne = "write ", kSeveral = "choose one: ", kOr = " or ";
  std::vector<std::string> calls;
  if (hint.starts_with(kOne) && hint.find('(') != hint.npos) return {std::string(hint.substr(kOne.size()))};
  if (!hint.starts_with(kSeveral)) return {};
  hint.remove_prefix(kSeveral.size());
  for (std::size_t end = 0; end != hint.npos; hint.remove_prefix(end == hint.npos ? 0 : end + kOr.size())) {
    end = hint.find(kOr);
    calls.emplace_back(hint.substr(0, end));
  }
  return calls;
}

void for_each_call(const syntax::Query& query, const std::function<void(const syntax::Source&)>& see) {
  for (const syntax::Binding& binding : query.bindings) for_each_call(*binding.query, see);
  for (const syntax::Source& source : query.select.sources) {
    if (source.kind == syntax::SourceKind::call) see(source);
    if (source.kind == syntax::SourceKind::query) for_each_call(*source.query, see);
  }
}

std::string replaced(std::string text, Span span, std::string_view by) {
  return text.replace(span.offset, span.length, by);
}

// The span of the call that begins at `at`.
Span call_at(const std::string& text, std::size_t at) {
  std::size_t end = text.find('(', at);
  for (int depth = 0; end < text.size(); ++end) {
    depth += text[end] == '(';
    depth -= text[end] == ')';
    if (depth == 0) break;
  }
  return {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end + 1 - at)};
}

struct Tally {
  int one = 0, several = 0, words = 0;
};

// `text` with its call at `at` rejected: the call in the hint binds and means what `meant` hashes
// to, or one of the calls does.
void expect_right_hint(const std::string& text, std::size_t at, const BindOptions& options,
                       std::optional<Digest> meant, Tally& tally) {
  const auto bound = bind_script(text, options);
  if (bound.ok()) return;
  SCOPED_TRACE(complain(bound.error(), text));
  const std::vector<std::string> calls = shown_calls(bound.error().hint);
  (calls.empty() ? tally.words : calls.size() == 1 ? tally.one : tally.several) += 1;
  if (calls.empty())
    EXPECT_EQ(bound.error().hint.find(" AS "), std::string::npos) << "a call that is not tested";
  // A change may be valid in its own call and rejected in a later one that reads the result.
  const Span changed = call_at(text, at), refused = bound.error().span;
  const bool later = refused.offset >= changed.offset + changed.length;
  if (later) meant.reset();
  bool found = false;
  for (const std::string& call : calls) {
    const std::string mended = replaced(text, later ? call_at(text, refused.offset) : changed, call);
    const auto again = bind_script(mended, options);
    // Of several calls, one is the intended one; later statements may reject the others.
    EXPECT_TRUE(again.ok() || (meant && calls.size() > 1))
        << call << "\n"
        << (again.ok() ? "" : complain(again.error(), mended));
    found = found || (again.ok() && meant && plan::structural_hash(again->graph) == *meant);
  }
  if (meant && !calls.empty()) EXPECT_TRUE(found) << "the hint changes what the call meant";
}

// Calls of shipped layers in shipped models, with each index of each tensor renamed to each other
// available name, swapped with the next one, and omitted.
TEST(CallHints, LeadBackToShippedModels) {
  Tally tally;
  int tried = 0;
  for (const auto& one : shipped().models) {
    const ModelDefinition& model = one.second;
    const std::string text = *model.source->text;
    BindOptions options;
    for (const syntax::Size& size : model.statement->body.sizes)
      if (size.name.text == "layers" || size.name.text == "dense" || size.name.text == "b")
        options.sizes.push_back({std::string(size.name.text), 1, {}});
    int calls = 0;
    for_each_call(*model.statement->body.query, [&](const syntax::Source& call) {
      if (++calls > 3) return;  // the calls of a resnet are alike
      const syntax::CreateLayer& layer = *shipped().layers.find(call.name.text)->second.statement;
      for (std::size_t i = 0; i < layer.arguments.size() && i < call.arguments.size(); ++i) {
        const syntax::LayerArgument& argument = call.arguments[i];
        const auto indices = layer.arguments[i].indices;
        if (argument.size != nullptr || !argument.indices.empty() || indices.size() < 2) continue;
        const auto with = [&](const std::vector<std::string>& uses) {
          const Span statement = model.statement->span;
          const std::string mutant =
              replaced(text, argument.span, fmt::format("{}[{}]", argument.name.text, fmt::join(uses, ", ")));
          return mutant.substr(statement.offset, statement.length + mutant.size() - text.size());
        };
        // `uses` with the wrong name corrected is what was meant.
        const auto try_with = [&](const std::vector<std::string>& uses) {
          if (++tried % 5 != 0 && !is_thorough()) return;
          std::vector<std::string> right = uses;
          for (std::string& use : right) use.resize(std::min(use.find(' '), use.size()));
          const auto intended = bind_script(with(right), options);
          std::optional<Digest> meant;
          if (intended.ok()) meant = plan::structural_hash(intended->graph);
          expect_right_hint(with(uses), call.span.offset - model.statement->span.offset, options, meant,
                            tally);
        };
        std::vector<std::string> plain;
        for (const syntax::Name& index : indices) plain.emplace_back(index.text);
        for (std::size_t d = 0; d < plain.size(); ++d) {
          std::vector<std::string> uses = plain;
          uses[d] = plain[d] + " AS strange";
          try_with(uses);
          uses = plain;
          uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(d));
          try_with(uses);
          uses = plain;
          std::swap(uses[d], uses[(d + 1) % uses.size()]);
          uses[d] += " AS strange";
          try_with(uses);
        }
      }
    });
  }
  EXPECT_GE(tally.one + tally.several, 10) << tally.one << " " << tally.several << " " << tally.words;
}

// Every way to name the indices of two tensors from a few letters, and which of the layer's indices
// each becomes in the call of the hint.
TEST(CallHints, NeverTransposeSilently) {
  constexpr std::string_view kLayer =
      "CREATE LAYER masked(x[b, s, d], mask[s, t]) AS SELECT sum(x * mask) FROM x, mask GROUP BY b, t, d;\n";
  constexpr std::string_view kFirst = "bsdtu", kSecond = "stuvb";
  const std::string inner[2] = {"bsd", "st"};
  Tally tally;
  int picked_by_place = 0;
  const auto letters = [](std::string_view from, std::size_t count,
                          std::size_t code) -> std::optional<std::string> {
    std::string word;
    for (; count > 0; --count, code /= from.size()) {
      if (word.find(from[code % from.size()]) != word.npos) return std::nullopt;
      word += from[code % from.size()];
    }
    return word;
  };
  const auto listed = [](std::string_view word) {
    std::vector<std::string> each;
    for (const char c : word) each.emplace_back(1, c);
    return fmt::format("{}", fmt::join(each, ", "));
  };
  for (std::size_t first = 0; first < 125; ++first)
    for (std::size_t second = first % thorough_or<std::size_t>(1, 3); second < 25;
         second += thorough_or<std::size_t>(1, 3)) {
      const auto x = letters(kFirst, 3, first), mask = letters(kSecond, 2, second);
      if (!x || !mask) continue;
      const std::string call = "masked(y, causal)";
      std::string text = fmt::format(
          "{}CREATE MODEL m (b = 3, s = 3, d = 3, t = 3, u = 3, v = 3) INPUT y[{}], causal[{}] AS SELECT * "
          "FROM {}",
          kLayer, listed(*x), listed(*mask), call);
      const std::size_t at = text.size() - call.size();
      expect_right_hint(text, at, {}, std::nullopt, tally);
      const auto bound = bind_script(text);
      if (bound.ok()) continue;
      const std::vector<std::string> calls = shown_calls(bound.error().hint);
      if (calls.size() != 1) continue;
      // With a single call: it is positional, or keeps every name that both tensors have and the
      // other tensor agrees with.
      const auto parsed = parse_and_keep(replaced(text, call_at(text, at), calls[0]));
      ASSERT_TRUE(parsed.ok());
      const auto& model = (*parsed)->script.statements.back()->as<syntax::CreateModel>();
      const auto arguments = model.body.query->select.sources[0].arguments;
      std::vector<std::pair<char, char>> pairs;  // outside, inside
      bool by_place = true, by_name = true;
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string& outer = i == 0 ? *x : *mask;
        for (std::size_t d = 0; d < outer.size(); ++d) {
          char to = outer[d];
          for (const syntax::IndexUse& use : arguments[i].indices)
            if (use.kind == syntax::IndexUseKind::rename && use.from.text[0] == outer[d]) to = use.to.text[0];
          const bool known = inner[i].find(to) != std::string::npos;
          const char into = known ? to : inner[i][d];
          by_place = by_place && into == inner[i][d];
          by_name = by_name && (into == outer[d] || inner[i].find(outer[d]) == std::string::npos);
          pairs.emplace_back(outer[d], into);
        }
      }
      EXPECT_TRUE(by_place || by_name) << complain(bound.error(), text);
      const bool agree = std::ranges::all_of(pairs, [&](const auto& one) {
        return std::ranges::all_of(pairs, [&](const auto& other) {
          return (one.first == other.first) == (one.second == other.second);
        });
      });
      EXPECT_TRUE(by_place || agree) << complain(bound.error(), text);
      picked_by_place += by_place;
    }
  EXPECT_GT(tally.one, 50);
  EXPECT_GT(tally.several, 10);
  EXPECT_GT(picked_by_place, 25);
}

std::string hint_of(const std::string& text) {
  const auto bound = bind_script(text);
  return bound.ok() ? "bound" : bound.error().hint;
}

TEST(CallHints, MatchAPossibleIntention) {
  const std::string
      layer =
          "CREATE LAYER att(x[b, s, d], mask[s, t]) AS SELECT sum(x * mask) FROM x, mask GROUP BY b, t, d;\n",
      model = "CREATE MODEL m (b = 2, s = 3, t = 3, u = 3, d = 4, h = 2, e = 2) INPUT ";
  EXPECT_EQ(hint_of(layer + model + "y[b, t, d], causal[t, u] AS SELECT * FROM att(y, causal)"),
            "write att(y[b, t AS s, d], causal[t AS s, u AS t])");
  EXPECT_EQ(hint_of(layer + model + "y[b, t, d], causal[t, u] AS SELECT * FROM att(y[b, t AS s, d], causal)"),
            "write att(y[b, t AS s, d], causal[t AS s, u AS t])");
  // Neither position nor name agrees with the other tensor.
  EXPECT_EQ(hint_of(layer + model + "y[b, s, d], causal[t, u] AS SELECT * FROM att(y, causal)"),
            "choose one: att(y, causal[t AS s, u AS t]) or att(y, causal[t, u AS s])");
  EXPECT_EQ(hint_of(layer + model + "y[b, s, d], causal[s, t] AS SELECT * FROM att(y[b, s AS u, d], causal)"),
            "write att(y[b, s, d], causal)");
  EXPECT_EQ(
      hint_of(layer + model + "y[b, t, d], causal[t, u] AS SELECT * FROM att(y[b, t, d AS (h, e)], causal)"),
      "att takes x[b, s, d], mask[s, t]");
  // A factor of a split cannot be renamed: the hint is prose.
  EXPECT_EQ(hint_of("CREATE LAYER four(x[b, s, h, e], mask[h, t]) AS SELECT sum(x * mask) FROM x, mask GROUP "
                    "BY b, s, t, e;\n" +
                    model + "y[b, s, d], causal[e, t] AS SELECT * FROM four(y[b, s, d AS (e, h)], causal)"),
            "rename indices with AS: four takes x[b, s, h, e], mask[h, t]");
}

// Named arguments of a layer stay in the call.
TEST(CallHints, KeepSizesAndQuotes) {
  EXPECT_EQ(hint_of("CREATE LAYER two(x[b, s], \"my mask\"[s, t]) (k = 2) AS SELECT sum(x * \"my mask\") * k "
                    "FROM x, \"my mask\" GROUP BY b, t;\n"
                    "CREATE MODEL m (b = 2, s = 3, t = 3, u = 3) INPUT y[b, t], \"a b\"[t, u] AS SELECT * "
                    "FROM two(y, \"a b\", k = 1 + 2)"),
            "write two(y[b, t AS s], \"a b\"[t AS s, u AS t], k = 1 + 2)");
}

// "conv2d(x, w [, stride => 1])" with and without the optional part.
TEST(FunctionUsages, Parse) {
  for (const std::string_view name : function_names()) {
    const FunctionSpec* function = find_function(name);
    ASSERT_NE(function, nullptr) << name;
    for (const bool with_options : {false, true}) {
      std::string usage;
      int depth = 0;
      for (const char c : function->usage) {
        depth += c == '[';
        if (c != '[' && c != ']' && (with_options || depth == 0)) usage += c;
        depth -= c == ']';
      }
      for (const auto& [form, by] :
           {std::pair<std::string_view, std::string_view>{", ...", ""}, {"...", "b"}})
        if (const std::size_t at = usage.find(form); at != usage.npos) usage.replace(at, form.size(), by);
      const std::string text = fmt::format("CREATE MODEL m (b = 1) INPUT x[b] AS SELECT {} FROM x", usage);
      const auto parsed = parse_and_keep(text);
      EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : complain(parsed.error(), text));
    }
  }
}

}  // namespace
}  // namespace weft::language
