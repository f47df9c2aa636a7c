#include "weft/translate/imports/onnx_norms.h"

#include <cstring>
#include <optional>
#include <set>

namespace weft::imports {
namespace {

class NormJoiner {
 public:
  explicit NormJoiner(OnnxGraph& graph) : graph_(graph) {
    for (const OnnxTensor& tensor : graph.tensors) tensors_.emplace(tensor.name, &tensor);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const OnnxNode& node = graph.nodes[n];
      for (const std::string& output : node.outputs) makers_.emplace(output, n);
      const auto value = node.attributes.find("value");
      if (node.operation == "Constant" && value != node.attributes.end() && !node.outputs.empty())
        tensors_.emplace(node.outputs.front(), &value->second.tensor);
    }
  }

  void run() {
    bool any = false;
    for (OnnxNode& node : graph_.nodes)
      if (const auto norm = norm_at(node)) {
        // It takes the place of the norm's last node: x is computed before all of the norm's nodes.
        OnnxNode joined{"LayerNormalization", node.name, {norm->x}, node.outputs, {}};
        joined.attributes["axis"].whole = -1;
        joined.attributes["epsilon"].number = norm->epsilon;
        node = std::move(joined);
        any = true;
      }
    if (any) drop_unread();
  }

 private:
  struct Norm {
    std::string x;
    double epsilon;
  };

  const OnnxNode* maker(const std::string& name, std::string_view operation, std::size_t inputs) const {
    const auto found = makers_.find(name);
    if (found == makers_.end()) return nullptr;
    const OnnxNode& node = graph_.nodes[found->second];
    return node.operation == operation && node.inputs.size() >= inputs ? &node : nullptr;
  }

  std::optional<double> number(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    const OnnxTensor& tensor = *found->second;
    if (tensor.dtype != plan::DType::f32 || tensor.bytes.size() != sizeof(float)) return std::nullopt;
    float value = 0;
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return as_written(value);
  }

  // The operand of a mean over the last dim with keepdims, if this is one. Axes are an operand from
  // opset 18 on.
  std::optional<std::string> averaged(const std::string& name) const {
    const OnnxNode* const mean = maker(name, "ReduceMean", 1);
    if (mean == nullptr) return std::nullopt;
    const auto keeps = mean->attributes.find("keepdims");
    if (keeps != mean->attributes.end() && keeps->second.whole == 0) return std::nullopt;
    std::vector<std::int64_t> axes;
    if (const auto own = mean->attributes.find("axes"); own != mean->attributes.end())
      axes = own->second.wholes;
    if (mean->inputs.size() > 1)
      if (const auto found = tensors_.find(mean->inputs[1]);
          found != tensors_.end() && found->second->dtype == plan::DType::i64) {
        axes.resize(found->second->bytes.size() / sizeof(std::int64_t));
        std::memcpy(axes.data(), found->second->bytes.data(), axes.size() * sizeof(std::int64_t));
      }
    return axes == std::vector<std::int64_t>{-1} ? std::optional(mean->inputs[0]) : std::nullopt;
  }

  // x, if this is x - mean(x).
  std::optional<std::string> centred(const std::string& name) const {
    const OnnxNode* const less = maker(name, "Sub", 2);
    if (less == nullptr) return std::nullopt;
    const auto x = averaged(less->inputs[1]);
    return x == less->inputs[0] ? x : std::nullopt;
  }

  std::optional<Norm> norm_at(const OnnxNode& node) const {
    if (node.operation != "Div" || node.inputs.size() != 2 || node.outputs.size() != 1) return std::nullopt;
    const auto x = centred(node.inputs[0]);
    const OnnxNode* const root = maker(node.inputs[1], "Sqrt", 1);
    const OnnxNode* const sum = root != nullptr ? maker(root->inputs[0], "Add", 2) : nullptr;
    if (!x || sum == nullptr) return std::nullopt;
    const auto epsilon = number(sum->inputs[1]);
    const auto squares = averaged(sum->inputs[0]);
    if (!epsilon || !squares || !(*epsilon > 0 && *epsilon < 1)) return std::nullopt;
    std::optional<std::string> squared;
    if (const OnnxNode* const power = maker(*squares, "Pow", 2);
        power != nullptr && number(power->inputs[1]) == 2.0)
      squared = centred(power->inputs[0]);
    if (const OnnxNode* const product = maker(*squares, "Mul", 2);
        product != nullptr && product->inputs[0] == product->inputs[1])
      squared = centred(product->inputs[0]);
    if (squared != x) return std::nullopt;
    return Norm{*x, *epsilon};
  }

  void drop_unread() {
    std::set<std::string, std::less<>> read(graph_.outputs.begin(), graph_.outputs.end());
    std::vector<OnnxNode> kept;
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      OnnxNode& node = graph_.nodes[n];
      bool used = false;
      for (const std::string& output : node.outputs) used |= read.contains(output);
      if (!used) continue;
      read.insert(node.inputs.begin(), node.inputs.end());
      kept.push_back(std::move(node));
    }
    graph_.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  }

  OnnxGraph& graph_;
  std::map<std::string, const OnnxTensor*, std::less<>> tensors_;
  std::map<std::string, std::size_t, std::less<>> makers_;
};

}  // namespace

void join_norms(OnnxGraph& graph) { NormJoiner(graph).run(); }

}  // namespace weft::imports
