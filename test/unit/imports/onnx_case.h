// What an imported ONNX file computes, by the operators' reference semantics.
#pragma once
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "onnx_file.h"
#include "weft/language/bind.h"
#include "weft/plan/ops/interpret.h"
#include "weft/translate/imports/onnx.h"

namespace weft::imports {

using Shape = OnnxFile::Shape;
using Values = std::map<std::string, std::vector<double>, std::less<>>;

inline std::int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Numbers that all differ, with both signs.
inline std::vector<double> numbers(const Shape& shape, double seed = 1) {
  std::vector<double> made(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = std::round(16 * std::sin(seed + 1.7 * static_cast<double>(i))) / 8;
  return made;
}

inline std::vector<float> as_floats(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

inline bool can_read_onnx() {
  const auto none = import_onnx("", "m");
  return none.error().message.find("built without") == std::string::npos;
}

// The outputs of the imported model, by the operators' reference semantics.
inline std::vector<std::vector<double>> computed(const OnnxFile& file, const Values& inputs) {
  const std::string bytes = file.bytes();
  const auto model = import_onnx(bytes, "m");
  EXPECT_TRUE(model.ok()) << model.error().message << "\n" << model.error().hint;
  if (!model.ok()) return {};
  SCOPED_TRACE(model->model.text);
  const auto source = language::parse_and_keep(model->model.text);
  EXPECT_TRUE(source.ok()) << source.error().message;
  if (!source.ok()) return {};
  language::Catalog catalog;
  for (const language::syntax::Statement* statement : (*source)->script.statements) {
    const Status defined = language::define(catalog, *source, *statement, {});
    EXPECT_TRUE(defined.ok()) << defined.error().message << "\n" << defined.error().hint;
    if (!defined.ok()) return {};
  }
  language::BindOptions options;
  options.mode = language::Mode::infer;
  const auto bound =
      language::bind(catalog, language::syntax::Name{.text = model->model.name, .span = {}}, options);
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  if (!bound.ok()) return {};
  std::map<std::string, ops::Tensor<double>, std::less<>> sources;
  for (std::size_t n = 0; n < bound->graph.node_count(); ++n) {
    const plan::NodeView node = bound->graph.view(plan::NodeId(n));
    if (node.input_count() > 0 || node.op().attributes().empty()) continue;
    const std::string name(node.op().name() == "constant" ? "" : node.word(0));
    std::vector<double> data;
    if (const auto given = inputs.find(name); given != inputs.end()) data = given->second;
    for (const auto& tensor : model->weights.tensors) {
      if (tensor.name != name) continue;
      for (std::size_t i = 0; i < tensor.data.size() / sizeof(float); ++i) {
        float number = 0;
        std::memcpy(&number, tensor.data.data() + i * sizeof number, sizeof number);
        data.push_back(static_cast<double>(number));
      }
    }
    ops::Tensor<double> tensor;
    for (const plan::Dim& dim : node.result_type(0).dims) tensor.sizes.push_back(dim.size);
    tensor.data = std::move(data);
    sources.emplace(name, std::move(tensor));
  }
  const auto outputs =
      ops::interpret<double>(bound->graph, [&](std::string_view name) -> const ops::Tensor<double>* {
        const auto found = sources.find(name);
        return found == sources.end() ? nullptr : &found->second;
      });
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  if (!outputs.ok()) return {};
  std::vector<std::vector<double>> made;
  for (const auto& output : *outputs) made.push_back(output.data);
  return made;
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-9) << "element " << i;
}

// An import must fail with this in its message.
inline void expect_refused(const OnnxFile& file, std::string_view message) {
  const auto model = import_onnx(file.bytes(), "m");
  ASSERT_FALSE(model.ok()) << model->model.text;
  EXPECT_NE(model.error().message.find(message), std::string::npos) << model.error().message;
}

}  // namespace weft::imports
