#include "weft/formats/model_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/formats/json_node.h"
#include "weft/formats/model_attributes.h"
#include "weft/formats/model_form.h"
#include "weft/formats/value.h"
#include "weft/plan/graph/type.h"

namespace weft::formats {
namespace {

using Operation = ModelOperation;

struct Known {
  std::string_view name;
  std::size_t fewest, most;  // number of operands
  // Attributes that it may have.
  std::array<std::string_view, 6> attributes = {};
};

constexpr std::size_t kMany = 4096;
constexpr auto kKnown = std::to_array<Known>({
    {"matmul", 2, 2, {"act"}},
    {"conv2d", 2, 2, {"kernel", "stride", "pad", "pads", "groups", "act"}},
    {"pool_max", 1, 1, {"kernel", "stride", "pad", "pads"}},
    {"pool_avg", 1, 1, {"kernel", "stride", "pad", "pads"}},
    {"add", 2, 2, {}},
    {"mul", 2, 2, {}},
    {"scale", 1, 1, {"factor"}},
    {"relu", 1, 1, {}},
    {"sigmoid", 1, 1, {}},
    {"tanh", 1, 1, {}},
    {"gelu", 1, 1, {}},
    {"softmax", 1, 1, {"axis"}},
    {"layernorm", 1, 3, {"axis", "eps"}},
    {"batchnorm", 5, 5, {"eps"}},
    {"dropout", 1, 1, {"p"}},
    {"reshape", 1, 1, {"shape"}},
    {"transpose", 1, 1, {"perm"}},
    {"concat", 1, kMany, {"axis"}},
    {"embedding_sum", 2, 2, {}},
    {"slice", 1, 1, {}},
    {"reduce", 1, 1, {}},
    {"broadcast", 1, 1, {}},
    {"select", 1, 3, {}},
    {"einsum", 1, kMany, {}},
    {"conv2d_transpose", 2, 2, {}},
});

// Operations that a file may use.
constexpr auto kNamed = std::span(kKnown).first(static_cast<std::size_t>(kLastFileOperation) + 1);

const Known& known(Operation operation) { return kKnown[static_cast<std::size_t>(operation)]; }

// Ids become names in the plan, where spaces are significant.
bool is_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.-/:").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, fits);
}

Error inside(std::string_view id, const Error& error) {
  return user_error(fmt::format("{}: {}", id, error.message), error.hint);
}

class ModelReader {
 public:
  Result<ModelFile> read(const JsonNode& top) {
    WEFT_TRY(format, top.text("format"));
    if (format != "weft-graph-1")
      return user_error(fmt::format("expected format weft-graph-1, found '{}'", shown(format)));
    WEFT_TRY(name, top.text("name"));
    file_.name = shown(name);
    if (top.has("dtype")) {
      WEFT_TRY(dtype, top.text("dtype"));
      if (dtype != "f32") return user_error(fmt::format("expected dtype f32, found '{}'", shown(dtype)));
    }
    WEFT_TRY(inputs, top.list("inputs"));
    WEFT_TRY(weights, top.list("weights"));
    WEFT_TRY(nodes, top.list("nodes"));
    WEFT_TRY(outputs, top.list("outputs"));
    if (const std::size_t values = inputs.size() + weights.size() + nodes.size(); values > kMostModelValues)
      return user_error(
          fmt::format("expected at most {} inputs, weights and nodes, found {}", kMostModelValues, values));
    file_.inputs = static_cast<std::uint32_t>(inputs.size());
    file_.weights = static_cast<std::uint32_t>(weights.size());
    for (const auto* values : {&inputs, &weights, &nodes})
      for (const JsonNode& value : *values) WEFT_TRY_STATUS(read_value(value));
    for (const JsonNode& node : nodes) {
      const std::string& id = file_.values[file_.result(file_.nodes.size())].id;
      auto made = read_node(node);
      if (!made.ok()) return inside(id, made.error());
      file_.nodes.push_back(std::move(*made));
      if (const Status fine = check_form(file_, file_.nodes.size() - 1); !fine.ok())
        return inside(id, fine.error());
    }
    WEFT_TRY_STATUS(read_outputs(top, outputs.size()));
    return std::move(file_);
  }

 private:
  Status read_value(const JsonNode& node) {
    WEFT_TRY(id, node.text("id"));
    if (!is_id(id))
      return node.error(fmt::format("expected an id of letters, digits and _.-/:, found '{}'", shown(id)));
    WEFT_TRY(shape, read_shape(node));
    const auto value = static_cast<std::uint32_t>(file_.values.size());
    if (!numbers_.emplace(id, value).second)
      return node.error(fmt::format("expected every id once, found {} twice", id));
    file_.values.push_back({std::string(id), std::move(shape)});
    return {};
  }

  static Result<ModelShape> read_shape(const JsonNode& node) {
    WEFT_TRY(sizes, node.wholes("shape", 1, kMostModelSize));
    if (sizes.empty() || sizes.size() > kMostModelRank)
      return node.error(
          fmt::format("expected a shape of 1 to {} dims, found {}", kMostModelRank, sizes.size()));
    std::int64_t elements = 1;
    for (const std::int32_t size : sizes) {
      // Checked before multiplying, so that the product fits in 64 bits.
      if (elements > (plan::kLargestValueBytes >> 2) / size)
        return node.error(fmt::format("tensor too large: [{}]", fmt::join(sizes, ", ")));
      elements *= size;
    }
    return ModelShape(sizes.begin(), sizes.end());
  }

  static Result<Operation> read_operation(const JsonNode& node, std::string_view word) {
    for (std::size_t i = 0; i < kNamed.size(); ++i)
      if (kNamed[i].name == word) return static_cast<Operation>(i);
    std::vector<std::string_view> names;
    for (const Known& each : kNamed) names.push_back(each.name);
    std::string hint = did_you_mean(word, names);
    if (hint.empty()) hint = fmt::format("known are {}", fmt::join(names, ", "));
    return node.error(fmt::format("expected an operation, found '{}'", shown(word)), std::move(hint));
  }

  Result<ModelNode> read_node(const JsonNode& node) const {
    ModelNode made;
    WEFT_TRY(word, node.text("op"));
    WEFT_TRY(operation, read_operation(node, word));
    made.operation = operation;
    WEFT_TRY(operands, node.texts("in"));
    const Known& kind = known(operation);
    if (operands.size() < kind.fewest || operands.size() > kind.most)
      return user_error(fmt::format("{} takes {} operands, found {}", kind.name,
                                    kind.fewest == kind.most
                                        ? fmt::format("{}", kind.fewest)
                                        : fmt::format("{} to {}", kind.fewest, kind.most),
                                    operands.size()));
    for (const std::string_view operand : operands) {
      const auto found = numbers_.find(std::string(operand));
      if (found == numbers_.end())
        return user_error(fmt::format("expected an input, a weight or a node, found '{}'", shown(operand)));
      if (found->second >= file_.result(file_.nodes.size()))
        return user_error(fmt::format("expected an operand that an earlier node produces, found {}", operand),
                          "list nodes in topological order; a graph has no cycles");
      made.operands.push_back(found->second);
    }
    static const Json kNone = Json::object();
    WEFT_TRY(attributes, node.has("attrs") ? node.at("attrs") : Result<JsonNode>(JsonNode(kNone)));
    WEFT_TRY_STATUS(attributes.expect_only(kind.attributes));
    WEFT_TRY_STATUS(read_attributes(attributes, file_, made));
    return made;
  }

  Status read_outputs(const JsonNode& top, std::size_t count) {
    if (count == 0) return user_error("expected at least one output, found none");
    WEFT_TRY(ids, top.texts("outputs"));
    std::vector<bool> seen(file_.values.size(), false);
    for (const std::string_view id : ids) {
      const auto found = numbers_.find(std::string(id));
      if (found == numbers_.end())
        return user_error(
            fmt::format("outputs: expected an input, a weight or a node, found '{}'", shown(id)));
      if (seen[found->second])
        return user_error(fmt::format("outputs: expected every output once, found {} twice", id));
      seen[found->second] = true;
      file_.outputs.push_back(found->second);
    }
    return {};
  }

  ModelFile file_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // value number by id
};

}  // namespace

std::string_view name(ModelOperation operation) { return known(operation).name; }

std::string print_shape(const ModelShape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<ModelFile> parse_model_file(std::string_view text) {
  WEFT_TRY(json, parse_json(text));
  return ModelReader().read(JsonNode(json));
}

}  // namespace weft::formats
