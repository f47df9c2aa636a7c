// test/unit/case/model_case.h -- random models with positional dimensions, and their results.
//
// Nearly all sizes are 2, so that only the file tells which dimensions correspond: the hardest case
// for code that assigns index names.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/interpret.h"

namespace weft::formats {

class PlacedModel {
 public:
  PlacedModel(Random& random, int nodes) : random_(random) {
    for (const Shape& shape : {Shape{2, 2}, Shape{2, 2, 2}, Shape{2, 4}}) add_source("x", shape);
    sources_ = 3;
    for (const Shape& shape : {Shape{2, 2}, Shape{4, 2}, Shape{2}, Shape{1, 2}}) add_source("w", shape);
    while (nodes_.size() < static_cast<std::size_t>(nodes)) add_node();
  }

  std::string text() const {
    const auto outputs = fmt::format(R"("{}", "{}")", values_[values_.size() - 2].id, values_.back().id);
    return fmt::format(
        R"({{"format": "weft-graph-1", "name": "placed", "inputs": [{}], "weights": [{}],
 "nodes": [
  {}],
 "outputs": [{}]}})",
        list(0, sources_), list(sources_, 7), fmt::join(nodes_, ",\n  "), outputs);
  }

  // Evaluates the plan by the operators' definitions.
  void expect_outputs(const plan::Graph& graph) const {
    std::map<std::string, ops::Tensor<double>, std::less<>> sources;
    for (std::size_t i = 0; i < 7; ++i) sources[values_[i].id] = {values_[i].shape, values_[i].data};
    const auto outputs = ops::interpret<double>(graph, [&](std::string_view name) {
      const auto found = sources.find(name);
      return found == sources.end() ? nullptr : &found->second;
    });
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    for (std::size_t k = 0; k < 2; ++k) {
      const Value& expected = values_[values_.size() - 2 + k];
      ASSERT_EQ((*outputs)[k].sizes, expected.shape);
      for (std::size_t i = 0; i < expected.data.size(); ++i)
        ASSERT_NEAR((*outputs)[k].data[i], expected.data[i], 1e-9 * (1 + std::abs(expected.data[i])));
    }
  }

 private:
  using Shape = std::vector<std::int64_t>;
  struct Value {
    std::string id;
    Shape shape;
    std::vector<double> data;
  };

  static std::int64_t elements(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }

  // The coordinates of element `at` of a shape, and back. In dimensions of size 1, every coordinate
  // maps to 0.
  static Shape point(const Shape& shape, std::int64_t at) {
    Shape found(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; at /= shape[d]) found[d] = at % shape[d];
    return found;
  }
  static double at(const Value& value, const Shape& where) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < value.shape.size(); ++d)
      place =
          place * value.shape[d] + (value.shape[d] == 1 ? 0 : where[where.size() - value.shape.size() + d]);
    return value.data[static_cast<std::size_t>(place)];
  }

  template <class Compute>
  void add_value(std::string id, const Shape& shape, Compute compute) {
    Value made{std::move(id), shape, {}};
    for (std::int64_t i = 0; i < elements(shape); ++i) made.data.push_back(compute(point(shape, i)));
    values_.push_back(std::move(made));
  }

  void add_source(std::string_view kind, const Shape& shape) {
    add_value(fmt::format("{}{}", kind, values_.size()), shape,
              [&](const Shape&) { return 2 * random_.uniform() - 1; });
  }

  std::string list(std::size_t begin, std::size_t end) const {
    std::string text;
    for (std::size_t i = begin; i < end; ++i)
      text += fmt::format(R"({}{{"id": "{}", "shape": [{}]}})", i == begin ? "" : ", ", values_[i].id,
                          fmt::join(values_[i].shape, ", "));
    return text;
  }

  // Prefers recent values.
  Value pick() {
    const auto count = static_cast<std::int64_t>(values_.size());
    return values_[static_cast<std::size_t>(
        std::max(random_.between(0, count - 1), random_.between(0, count - 1)))];
  }

  template <class Compute>
  void add(std::string_view op, const std::vector<Value>& operands, const std::string& attributes,
           const Shape& shape, Compute compute) {
    std::vector<std::string> ids;
    for (const Value& operand : operands) ids.push_back("\"" + operand.id + "\"");
    const std::string id = fmt::format("n{}", nodes_.size());
    nodes_.push_back(fmt::format(R"({{"id": "{}", "op": "{}", "in": [{}], "attrs": {{{}}}, "shape": [{}]}})",
                                 id, op, fmt::join(ids, ", "), attributes, fmt::join(shape, ", ")));
    add_value(id, shape, compute);
  }

  void add_node() {
    const Value a = pick(), b = pick();
    switch (random_.below(7)) {
      case 0:
      case 1: return add_matmul(a, b);
      case 2: return add_pointwise(a, b);
      case 3: return add_transpose(a);
      case 4: return add_reshape(a);
      case 5: return add_concat(a, b);
      default: return add("relu", {a}, "", a.shape, [&](const Shape& p) { return std::max(at(a, p), 0.0); });
    }
  }

  void add_matmul(const Value& a, const Value& b) {
    const std::size_t rank = a.shape.size(), of_b = b.shape.size();
    if (of_b < 2 || of_b > rank || a.shape.back() != b.shape[of_b - 2]) return;
    for (std::size_t d = 0; d + 2 < of_b; ++d)
      if (b.shape[d] != a.shape[rank - of_b + d]) return;
    Shape shape = a.shape;
    shape.back() = b.shape.back();
    add("matmul", {a, b}, R"("act": "none")", shape, [&](const Shape& p) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.shape.back(); ++k) {
        Shape left = p, right = p;
        left.back() = right[right.size() - 2] = k;
        sum += at(a, left) * at(b, right);
      }
      return sum;
    });
  }

  void add_pointwise(const Value& a, const Value& b) {
    Shape shape = a.shape.size() >= b.shape.size() ? a.shape : b.shape;
    for (const Value* value : {&a, &b})
      for (std::size_t d = 0; d < value->shape.size(); ++d) {
        std::int64_t& size = shape[shape.size() - value->shape.size() + d];
        if (value->shape[d] != size && value->shape[d] != 1 && size != 1) return;
        size = std::max(size, value->shape[d]);
      }
    const bool adds = random_.below(2) == 0;
    add(adds ? "add" : "mul", {a, b}, "", shape,
        [&](const Shape& p) { return adds ? at(a, p) + at(b, p) : at(a, p) * at(b, p); });
  }

  void add_transpose(const Value& a) {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < a.shape.size(); ++d)
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random_.below(d + 1)), d);
    Shape shape;
    for (const std::size_t d : order) shape.push_back(a.shape[d]);
    add("transpose", {a}, fmt::format(R"("perm": [{}])", fmt::join(order, ", ")), shape, [&](const Shape& p) {
      Shape from(p.size());
      for (std::size_t d = 0; d < p.size(); ++d) from[order[d]] = p[d];
      return at(a, from);
    });
  }

  void add_reshape(const Value& a) {
    static const std::vector<Shape> kShapes = {{4},    {2, 2}, {1, 4},    {8},
                                               {2, 4}, {4, 2}, {2, 2, 2}, {2, 1, 4}};
    const Shape& shape = kShapes[random_.below(kShapes.size())];
    if (elements(shape) != elements(a.shape)) return;
    std::size_t next = 0;
    add("reshape", {a}, "", shape, [&](const Shape&) { return a.data[next++]; });
  }

  void add_concat(const Value& a, const Value& b) {
    const std::size_t axis = random_.below(a.shape.size());
    if (a.shape.size() != b.shape.size() || elements(a.shape) > 64) return;
    for (std::size_t d = 0; d < a.shape.size(); ++d)
      if (d != axis && a.shape[d] != b.shape[d]) return;
    Shape shape = a.shape;
    shape[axis] += b.shape[axis];
    add("concat", {a, b}, fmt::format(R"("axis": {})", axis), shape, [&](const Shape& p) {
      if (p[axis] < a.shape[axis]) return at(a, p);
      Shape rest = p;
      rest[axis] -= a.shape[axis];
      return at(b, rest);
    });
  }

  Random& random_;
  std::size_t sources_ = 0;  // inputs
  std::vector<Value> values_;
  std::vector<std::string> nodes_;
};

}  // namespace weft::formats
