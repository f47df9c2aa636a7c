#include "weft/formats/rules_jsonl.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/formats/json_node.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using equation::Details;
using equation::Equation;
using equation::Operand;
using equation::Verb;

// Limits beyond any real rule, which keep hostile lines cheap.
constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;
constexpr std::size_t kMostInputs = 64, kMostOperations = 64, kMostOperands = 16, kMostOutputs = 64;
constexpr std::int32_t kLargestSize = 1 << 16, kMostRank = 8;
constexpr std::int32_t kLargestKernel = 64, kLargestStride = 64, kMostParts = 16, kMostTensorRank = 16;

constexpr std::array<std::string_view, 20> kRuleAttributes = {
    "act",   "kernel", "stride",      "pad",    "axis",   "rank",   "n",     "dim",  "degree", "perm",
    "parts", "groups", "materialize", "reduce", "factor", "concat", "split", "root", "shift",  "layout"};

Status expect_at_most(const JsonNode& at, std::size_t found, std::size_t most, std::string_view what) {
  if (found <= most) return {};
  return at.error(fmt::format("expected at most {} {}, found {}", most, what, found));
}

// "%2.0", or the name of an input.
Result<Operand> read_operand(const JsonNode& at, std::string_view text, const Equation& equation) {
  if (!text.starts_with('%')) {
    const auto found = std::ranges::find(equation.inputs, text, &equation::EquationInput::name);
    if (found != equation.inputs.end())
      return Operand{-1, static_cast<std::int32_t>(found - equation.inputs.begin())};
    return at.error(fmt::format("no input is called '{}'", shown(text)));
  }
  const std::size_t dot = std::min(text.find('.'), text.size() - 1);
  const auto operation = read_number<std::int32_t>(text.substr(1, dot - 1), 0),
             result = read_number<std::int32_t>(text.substr(dot + 1), 0);
  if (operation && result) return Operand{*operation, *result};
  return at.error(fmt::format("expected an input or a result such as %0.0, found '{}'", shown(text)));
}

class AttributeReader {
 public:
  AttributeReader(const JsonNode& attributes, const Json& json, equation::Operation& operation)
      : at_(attributes), json_(json), operation_(operation), details_(operation.details) {}

  Status read() {
    if (operation_.verb == Verb::sum) details_.axis = -1;
    WEFT_TRY_STATUS(at_.expect_only(kRuleAttributes));
    WEFT_TRY_STATUS(read_window());
    WEFT_TRY_STATUS(read_numbers());
    WEFT_TRY_STATUS(read_words());
    return read_groups();
  }

 private:
  Status number(const char* key, std::int32_t least, std::int32_t most, std::int32_t& into) {
    if (!at_.has(key)) return {};
    WEFT_TRY(value, at_.whole(key, least, most));
    into = value;
    return {};
  }

  Status pair(const char* key, std::int32_t most, std::array<std::int32_t, 2>& into) {
    if (!at_.has(key)) return {};
    WEFT_TRY(values, at_.wholes(key, 1, most));
    if (values.size() != 2)
      return at_.error(fmt::format("expected two numbers in {}, found {}", key, values.size()));
    into = {values[0], values[1]};
    return {};
  }

  Status read_window() {
    WEFT_TRY_STATUS(pair("kernel", kLargestKernel, details_.kernel));
    WEFT_TRY_STATUS(pair("stride", kLargestStride, details_.stride));
    if (!at_.has("pad")) return {};
    WEFT_TRY(pad, at_.text("pad"));
    if (pad != "same" && pad != "valid")
      return at_.error(fmt::format("expected pad to be same or valid, found '{}'", shown(pad)));
    details_.same_padding = pad == "same";
    return {};
  }

  Status read_numbers() {
    WEFT_TRY_STATUS(number("axis", 0, kMostRank - 1, details_.axis));
    WEFT_TRY_STATUS(number("dim", 0, kMostRank - 1, details_.axis));
    WEFT_TRY_STATUS(number("degree", 1, kMostParts, details_.parts));
    WEFT_TRY_STATUS(number("parts", 2, kMostParts, details_.parts));
    WEFT_TRY_STATUS(number("root", 0, kMostTensorRank - 1, details_.root));
    WEFT_TRY_STATUS(number("shift", -kMostTensorRank, kMostTensorRank, details_.shift));
    details_.evenly = at_.has("parts");
    if (operation_.verb == Verb::split) WEFT_TRY_STATUS(number("n", 2, kMostParts, details_.parts));
    if (operation_.verb == Verb::all_to_all) {
      WEFT_TRY(cut, at_.whole("split", 0, kMostRank - 1));
      WEFT_TRY(joined, at_.whole("concat", 0, kMostRank - 1));
      details_.axis = cut;
      details_.other_axis = joined;
    }
    if (at_.has("perm")) {
      WEFT_TRY(order, at_.wholes("perm", 0, kMostRank - 1));
      details_.order = std::move(order);
    }
    WEFT_TRY(materialize, at_.truth("materialize", false));
    details_.materialize = materialize;
    return {};
  }

  Status read_words() {
    if (at_.has("act")) {
      WEFT_TRY(word, at_.text("act"));
      if (word != "none" && word != "relu")
        return at_.error(fmt::format("expected act to be none or relu, found '{}'", shown(word)));
      details_.then_relu = word == "relu";
    }
    if (at_.has("reduce")) {
      WEFT_TRY(word, at_.text("reduce"));
      constexpr std::array<std::string_view, 4> kKinds = {"sum", "mean", "max", "min"};
      const auto found = std::ranges::find(kKinds, word);
      if (found == kKinds.end())
        return at_.error(fmt::format("expected reduce to be sum, mean, max or min, found '{}'", shown(word)));
      details_.kind = static_cast<equation::ReduceKind>(found - kKinds.begin());
    }
    if (!at_.has("factor")) return {};
    if (json_["factor"] == "1/N") {
      details_.factor_is_one_over_ranks = true;
      return {};
    }
    WEFT_TRY(factor, at_.number("factor", 1));
    details_.factor = factor;
    return {};
  }

  Status read_groups() {
    if (!at_.has("groups")) return {};
    WEFT_TRY(groups, at_.list("groups"));
    WEFT_TRY_STATUS(expect_at_most(at_, groups.size(), kMostTensorRank, "groups"));
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const Json& list = json_["groups"][k];
      if (!list.is_array() || list.empty() || list.size() > kMostTensorRank)
        return groups[k].error(fmt::format("expected a list of 1 to {} ranks", kMostTensorRank));
      std::vector<std::int32_t> group;
      for (const Json& rank : list) {
        WEFT_TRY(value, JsonNode(rank).whole(0, kMostTensorRank - 1));
        group.push_back(value);
      }
      details_.groups.push_back(std::move(group));
    }
    return {};
  }

  const JsonNode& at_;
  const Json& json_;
  equation::Operation& operation_;
  Details& details_;
};

Result<equation::Operation> read_operation(const JsonNode& at, const Json& json, const Equation& equation) {
  WEFT_TRY(word, at.text("op"));
  const auto verb = equation::find_verb(word);
  if (!verb)
    return at.error(fmt::format("no operation is called '{}'", shown(word)),
                    did_you_mean(word, equation::verb_names()));
  equation::Operation operation{.verb = *verb, .operands = {}, .details = {}};
  operation.details.spreads =
      word == "add" || word == "mul" || word == "sub";  // the operator names of rules on a mesh
  if (at.has("attrs")) {
    WEFT_TRY(attributes, at.at("attrs"));
    WEFT_TRY_STATUS(AttributeReader(attributes, json["attrs"], operation).read());
  }
  WEFT_TRY(texts, at.texts("in"));
  WEFT_TRY_STATUS(expect_at_most(at, texts.size(), kMostOperands, "operands"));
  for (const std::string_view text : texts) {
    WEFT_TRY(operand, read_operand(at, text, equation));
    operation.operands.push_back(operand);
  }
  return operation;
}

Status read_side(const JsonNode& top, const Json& json, const char* key, const Equation& equation,
                 std::vector<equation::Operation>& side) {
  WEFT_TRY(nodes, top.list(key));
  WEFT_TRY_STATUS(expect_at_most(top, nodes.size(), kMostOperations, "operations"));
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    WEFT_TRY_STATUS(nodes[k].expect_object());
    WEFT_TRY(operation, read_operation(nodes[k], json[key][k], equation));
    side.push_back(std::move(operation));
  }
  return {};
}

Status read_layout(const JsonNode& at, equation::EquationInput& input) {
  WEFT_TRY(layout, at.text("layout"));
  if (layout == "local") {
    input.holding = equation::Holding::local;
  } else if (layout == "replicated") {
    input.holding = equation::Holding::replicated;
  } else if (layout.size() == 9 && layout.starts_with("sharded:") && layout[8] >= '0' &&
             layout[8] < '0' + kMostRank) {
    input.holding = equation::Holding::sharded;
    input.sharded_dim = layout[8] - '0';
  } else {
    return at.error(
        fmt::format("expected a layout of local, replicated or sharded:0, found '{}'", shown(layout)));
  }
  return {};
}

Status read_inputs(const JsonNode& top, const Json& json, Equation& equation) {
  WEFT_TRY(inputs, top.at("inputs"));
  WEFT_TRY_STATUS(inputs.expect_object());
  WEFT_TRY_STATUS(expect_at_most(inputs, json["inputs"].size(), kMostInputs, "inputs"));
  for (const auto& [name, value] : json["inputs"].items()) {
    if (name.empty() || name[0] == '%')
      return inputs.error(fmt::format("'{}' cannot name an input", shown(name)));
    WEFT_TRY(at, inputs.at(name.c_str()));
    equation::EquationInput input;
    input.name = name;
    if (at.has("layout")) WEFT_TRY_STATUS(read_layout(at, input));
    WEFT_TRY(sizes, at.wholes(at.has("layout") ? "global_shape" : "template_shape", 1, kLargestSize));
    WEFT_TRY_STATUS(expect_at_most(at, sizes.size(), kMostRank, "sizes"));
    input.example.assign(sizes.begin(), sizes.end());
    equation.inputs.push_back(std::move(input));
  }
  return {};
}

Status read_outputs(const JsonNode& top, Equation& equation) {
  WEFT_TRY(nodes, top.list("outputs"));
  WEFT_TRY_STATUS(expect_at_most(top, nodes.size(), kMostOutputs, "outputs"));
  for (const JsonNode& node : nodes) {
    std::array<Operand, 2> pair;
    for (const std::size_t k : {0u, 1u}) {
      WEFT_TRY(text, node.text(k == 0 ? "source" : "target"));
      WEFT_TRY(operand, read_operand(node, text, equation));
      pair[k] = operand;
    }
    equation.outputs.push_back(pair);
  }
  return {};
}

Json to_json(const rule::Counterexample& example) {
  Json json = Json::object();
  for (const auto& input : example.inputs) {
    Json& at = json["inputs"][input.name];
    at["shape"] = input.sizes;
    if (!input.values.empty()) at["values"] = input.values;
  }
  if (example.ranks > 0) json["ranks"] = example.ranks;
  json["output"] = example.output;
  if (!example.at.empty() || !example.left.empty()) json["at"] = example.at;
  json["left"] = example.left;
  json["right"] = example.right;
  json["left_shape"] = example.left_sizes;
  json["right_shape"] = example.right_sizes;
  return json;
}

// For lines that may not be a rule.
std::string id_of(std::string_view line) {
  const auto json = line.size() > kMostLineBytes ? Json() : Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string()) return {};
  return json["id"].get<std::string>();
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<Equation> read_rule(std::string_view line) {
  if (line.size() > kMostLineBytes)
    return user_error(
        fmt::format("expected at most {} bytes in a line, found {}", kMostLineBytes, line.size()));
  WEFT_TRY(json, parse_json(line));
  const JsonNode top(json);
  WEFT_TRY_STATUS(top.expect_object());
  Equation equation;
  WEFT_TRY(id, top.text("id"));
  equation.id = id;
  WEFT_TRY_STATUS(read_inputs(top, json, equation));
  WEFT_TRY_STATUS(read_side(top, json, "source", equation, equation.source));
  WEFT_TRY_STATUS(read_side(top, json, "target", equation, equation.target));
  WEFT_TRY_STATUS(read_outputs(top, equation));
  if (top.has("ranks")) {
    WEFT_TRY(ranks, top.wholes("ranks", 1, kMostTensorRank));
    if (ranks.empty() || ranks.size() > kMostTensorRank)
      return top.error(fmt::format("expected 1 to {} rank counts, found {}", kMostTensorRank, ranks.size()));
    equation.ranks = std::move(ranks);
  }
  WEFT_TRY_STATUS(equation::check_form(equation));
  return equation;
}

std::optional<RuleLine> RuleLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++number_;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto equation = read_rule(line);
    std::string id = equation.ok() ? equation->id : id_of(line);
    return RuleLine{number_, std::move(id), std::move(equation)};
  }
  return std::nullopt;
}

std::string write_verdict(std::string_view id, const rule::Verdict& verdict, double seconds) {
  nlohmann::ordered_json json;
  json["id"] = id;
  json["verdict"] = name(verdict.judgement);
  json["guard"] = nullptr;
  if (!verdict.guard.empty()) json["guard"] = verdict.guard;
  json["counterexample"] = nullptr;
  if (!verdict.counterexamples.empty()) json["counterexample"] = to_json(verdict.counterexamples[0]);
  const bool holds = rule::holds(verdict);
  json["error_probability"] = nullptr;
  if (holds) json["error_probability"] = verdict.error_probability;
  json["seconds"] = seconds;
  if (holds) {
    json["rounding"] = name(verdict.rounding);
    json["rounding_bound"] = verdict.rounding_bound;
    json["unseen_share"] = verdict.unseen_share;
    json["real_runs"] = verdict.real_runs;
    if (const std::string range = rule::print(verdict.range); !range.empty()) json["range"] = range;
  }
  json["shapes"] = verdict.shapes;
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  return dump(json);
}

std::string write_bad_line(const RuleLine& line) {
  const Error& error = line.equation.error();
  nlohmann::ordered_json json;
  json["id"] = nullptr;
  if (!line.id.empty()) json["id"] = line.id;
  json["verdict"] = nullptr;
  json["line"] = line.number;
  json["error"] = error.message;
  if (!error.hint.empty()) json["hint"] = error.hint;
  return dump(json);
}

}  // namespace weft::formats
