// ONNX operators compute in Weft what ONNX specifies: each case is compared with loops written
// here.
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "onnx_case.h"

namespace weft::imports {
namespace {

class OnnxOperators : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_onnx()) GTEST_SKIP() << "built without libonnx";
  }
};

TEST_F(OnnxOperators, SplitsAlongAnAxis) {
  const Shape shape = {2, 7, 3};
  const auto x = numbers(shape);
  for (const bool given : {true, false}) {
    OnnxFile file;
    file.input("x", shape);
    if (given) file.wholes("sizes", {3, 1, 3});
    if (given)
      file.node("Split", {"x", "sizes"}, {"a", "b", "c"}, {{"axis", {-2}, true}});
    else  // equal sizes, the last one smaller
      file.node("Split", {"x"}, {"a", "b", "c"}, {{"axis", {1}, true}, {"num_outputs", {3}, true}});
    file.node("Relu", {"a"}, {"ra"}).node("Relu", {"b"}, {"rb"}).node("Relu", {"c"}, {"rc"});
    for (const std::string_view name : {"ra", "rb", "rc"}) file.output(name, {});
    const auto found = computed(file, {{"x", x}});
    ASSERT_EQ(found.size(), 3u);
    const std::int64_t begins[] = {0, 3, given ? 4 : 6}, ends[] = {3, given ? 4 : 6, 7};
    for (std::size_t part = 0; part < 3; ++part) {
      std::vector<double> wanted;
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t s = begins[part]; s < ends[part]; ++s)
          for (std::int64_t d = 0; d < 3; ++d)
            wanted.push_back(std::max(0.0, x[static_cast<std::size_t>((b * 7 + s) * 3 + d)]));
      expect_near(found[part], wanted);
    }
  }
}

TEST_F(OnnxOperators, SlicesWithPositionsFromEitherEnd) {
  const Shape shape = {3, 5, 4};
  const auto x = numbers(shape);
  OnnxFile file;
  file.input("x", shape)
      .wholes("starts", {1, -3})
      .wholes("ends", {std::numeric_limits<std::int64_t>::max(), -1})
      .wholes("axes", {0, 1})
      .node("Slice", {"x", "starts", "ends", "axes"}, {"part"})
      .node("Neg", {"part"}, {"y"})
      .output("y", {});
  std::vector<double> wanted;
  for (std::size_t a = 1; a < 3; ++a)
    for (std::size_t b = 2; b < 4; ++b)
      for (std::size_t c = 0; c < 4; ++c) wanted.push_back(-x[(a * 5 + b) * 4 + c]);
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);

  OnnxFile steps;
  steps.input("x", shape).wholes("starts", {0}).wholes("ends", {3}).wholes("axes", {0}).wholes("steps", {2});
  steps.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"}).output("y", {});
  expect_refused(steps, "steps: expected 1, found 2");
  OnnxFile none;
  none.input("x", shape)
      .wholes("starts", {4})
      .wholes("ends", {2})
      .node("Slice", {"x", "starts", "ends"}, {"y"})
      .output("y", {});
  expect_refused(none, "expected positions");
}

// A class token: one row shared by all images, in front of their patches; its result is read at
// position 0.
TEST_F(OnnxOperators, ExpandAndGatherOfOnePosition) {
  const auto x = numbers({2, 3, 4}), token = numbers({1, 1, 4}, 2);
  OnnxFile file;
  file.input("x", {2, 3, 4})
      .floats("token", {1, 1, 4}, as_floats(token))
      .wholes("shape", {2, -1, -1})
      .wholes("minus", {-1})
      .wholes("ones", {1, 1, 1})
      .node("Equal", {"shape", "minus"}, {"open"})
      .node("Where", {"open", "ones", "shape"}, {"sizes"})
      .node("Expand", {"token", "sizes"}, {"tokens"})
      .node("Concat", {"tokens", "x"}, {"all"}, {{"axis", {1}, true}})
      .node("Tanh", {"all"}, {"t"})
      .whole("zero", 0)
      .node("Gather", {"t", "zero"}, {"y"}, {{"axis", {1}, true}})
      .output("y", {})
      .output("t", {});
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 2u);
  std::vector<double> first, all;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t s = 0; s < 4; ++s)
      for (std::size_t d = 0; d < 4; ++d) {
        all.push_back(std::tanh(s == 0 ? token[d] : x[(b * 3 + s - 1) * 4 + d]));
        if (s == 0) first.push_back(all.back());
      }
  expect_near(found[0], first);
  expect_near(found[1], all);
}

TEST_F(OnnxOperators, WhereSelectsByComparisonsAndBoolTensors) {
  const auto x = numbers({3, 3}), y = numbers({3, 3}, 5), row = numbers({3}, 9);
  const std::vector<char> mask = {1, 0, 0, 1, 1, 0, 1, 1, 1};
  OnnxFile file;
  file.input("x", {3, 3})
      .input("y", {3, 3})
      .floats("row", {3}, as_floats(row))
      .tensor("mask", {3, 3}, mask, OnnxFile::kBool)
      .floats("half", {}, {0.5f})
      .node("Greater", {"x", "y"}, {"more"})
      .node("LessOrEqual", {"x", "half"}, {"small"})
      .node("Not", {"small"}, {"large"})
      .node("And", {"more", "mask"}, {"both"})
      .node("Or", {"both", "large"}, {"any"})
      .node("Where", {"any", "x", "row"}, {"a"})
      .node("Where", {"mask", "half", "y"}, {"b"})
      .node("Cast", {"both"}, {"c"}, {{"to", {1}, true}})
      .output("a", {})
      .output("b", {})
      .output("c", {});
  std::vector<double> a, b, c;
  for (std::size_t i = 0; i < 9; ++i) {
    const bool both = x[i] > y[i] && mask[i] != 0;
    a.push_back(both || x[i] > 0.5 ? x[i] : row[i % 3]);
    b.push_back(mask[i] != 0 ? 0.5 : y[i]);
    c.push_back(both ? 1 : 0);
  }
  const auto found = computed(file, {{"x", x}, {"y", y}});
  ASSERT_EQ(found.size(), 3u);
  expect_near(found[0], a);
  expect_near(found[1], b);
  expect_near(found[2], c);

  OnnxFile wrong;
  wrong.input("x", {3}).input("y", {3}).node("Where", {"x", "x", "y"}, {"z"}).output("z", {});
  expect_refused(wrong, "expected a boolean tensor");
}

// The result's dims are in ONNX's order, whichever operand has them.
TEST_F(OnnxOperators, BroadcastsOperands) {
  const auto x = numbers({2, 1, 3}), y = numbers({4, 1}, 3);
  OnnxFile file;
  file.input("x", {2, 1, 3}).input("y", {4, 1}).node("Sub", {"x", "y"}, {"z"}).output("z", {});
  std::vector<double> wanted;
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t c = 0; c < 3; ++c) wanted.push_back(x[a * 3 + c] - y[b]);
  const auto found = computed(file, {{"x", x}, {"y", y}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);
}

TEST_F(OnnxOperators, Reductions) {
  const Shape shape = {2, 3, 4};
  const auto x = numbers(shape);
  const std::pair<const char*, std::function<double(double, double)>> kinds[] = {
      {"ReduceSum", [](double a, double b) { return a + b; }},
      {"ReduceMax", [](double a, double b) { return std::max(a, b); }},
      {"ReduceMin", [](double a, double b) { return std::min(a, b); }}};
  for (const auto& [name, join] : kinds)
    for (const bool keeps : {true, false}) {
      OnnxFile file;
      file.input("x", shape).wholes("axes", {-1, 0});
      const OnnxFile::Attribute keepdims{"keepdims", {keeps ? 1 : 0}, true};
      if (std::string_view(name) == "ReduceSum")
        file.node(name, {"x", "axes"}, {"r"}, {keepdims});
      else
        file.node(name, {"x"}, {"r"}, {keepdims, {"axes", {-1, 0}}});
      file.node("Exp", {"r"}, {"y"}).output("y", {});
      std::vector<double> wanted;
      for (std::size_t s = 0; s < 3; ++s) {
        double joined = x[s * 4];
        for (std::size_t i = 1; i < 8; ++i) joined = join(joined, x[((i / 4) * 3 + s) * 4 + i % 4]);
        wanted.push_back(std::exp(joined));
      }
      const auto found = computed(file, {{"x", x}});
      ASSERT_EQ(found.size(), 1u);
      expect_near(found[0], wanted);
    }
}

TEST_F(OnnxOperators, EinsumByLetters) {
  const auto q = numbers({2, 3, 2, 4}), k = numbers({2, 5, 2, 4}, 4);
  OnnxFile file;
  file.input("q", {2, 3, 2, 4})
      .input("k", {2, 5, 2, 4})
      .node("Einsum", {"q", "k"}, {"y"}, {{"equation", {}, false, "bqhd, bkhd -> bhqk"}})
      .output("y", {});
  std::vector<double> wanted;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 5; ++j) {
          double sum = 0;
          for (std::size_t d = 0; d < 4; ++d)
            sum += q[((b * 3 + i) * 2 + h) * 4 + d] * k[((b * 5 + j) * 2 + h) * 4 + d];
          wanted.push_back(sum);
        }
  const auto found = computed(file, {{"q", q}, {"k", k}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);

  // Without an arrow, the letters that occur once, in order: here "ik".
  const auto a = numbers({2, 3}), b = numbers({4, 3}, 2);
  OnnxFile implicit;
  implicit.input("a", {2, 3})
      .input("b", {4, 3})
      .node("Einsum", {"a", "b"}, {"y"}, {{"equation", {}, false, "ij,kj"}})
      .output("y", {});
  wanted.clear();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      wanted.push_back(a[i * 3] * b[j * 3] + a[i * 3 + 1] * b[j * 3 + 1] + a[i * 3 + 2] * b[j * 3 + 2]);
  const auto product = computed(implicit, {{"a", a}, {"b", b}});
  ASSERT_EQ(product.size(), 1u);
  expect_near(product[0], wanted);

  for (const auto& [equation, message] :
       {std::pair{"ii,kj->ik", "a letter once per operand"}, std::pair{"...j,kj->k", "expected letters"},
        std::pair{"ij,kj->il", "each letter of the result"}, std::pair{"ij,jk->ik", "'j' is 3 and 4"}}) {
    OnnxFile wrong;
    wrong.input("a", {2, 3})
        .input("b", {4, 3})
        .node("Einsum", {"a", "b"}, {"y"}, {{"equation", {}, false, equation}})
        .output("y", {});
    expect_refused(wrong, message);
  }
}

TEST_F(OnnxOperators, ConvTransposeUpsamplesAnImage) {
  const Shape image = {1, 2, 3, 4}, weight = {2, 3, 3, 3};
  const auto x = numbers(image), w = numbers(weight, 7), bias = numbers({3}, 3);
  OnnxFile file;
  file.input("x", image)
      .floats("w", weight, as_floats(w))
      .floats("bias", {3}, as_floats(bias))
      .node("ConvTranspose", {"x", "w", "bias"}, {"y"},
            {{"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}, {"output_padding", {1, 1}}})
      .output("y", {});
  constexpr std::int64_t kHigh = 6, kWide = 8;
  std::vector<double> wanted;
  for (std::size_t o = 0; o < 3; ++o) wanted.insert(wanted.end(), kHigh * kWide, bias[o]);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t o = 0; o < 3; ++o)
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t v = 0; v < 4; ++v)
          for (std::int64_t r = 0; r < 3; ++r)
            for (std::int64_t q = 0; q < 3; ++q) {
              const std::int64_t row = h * 2 - 1 + r, column = v * 2 - 1 + q;
              if (row < 0 || column < 0 || row >= kHigh || column >= kWide) continue;
              wanted[static_cast<std::size_t>((o * kHigh + row) * kWide + column)] +=
                  x[static_cast<std::size_t>((i * 3 + h) * 4 + v)] *
                  w[static_cast<std::size_t>(((i * 3 + o) * 3 + r) * 3 + q)];
            }
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);
}

// Scores and labels flattened as exporters do; labels out of range are ignored.
TEST_F(OnnxOperators, ReadsLabelsThroughAReshape) {
  const auto scores = numbers({2, 3, 4});
  const std::vector<double> labels = {1, 3, -100, 0, 2, 2};
  OnnxFile file;
  file.input("scores", {2, 3, 4})
      .input("labels", {2, 3}, OnnxFile::kInt64)
      .wholes("rows", {-1, 4})
      .wholes("flat", {-1})
      .node("Reshape", {"scores", "rows"}, {"s"})
      .node("Cast", {"labels"}, {"cast"}, {{"to", {7}, true}})
      .node("Reshape", {"cast", "flat"}, {"l"})
      .node("SoftmaxCrossEntropyLoss", {"s", "l"}, {"loss"}, {{"ignore_index", {-100}, true}})
      .output("loss", {});
  double sum = 0;
  for (std::size_t row = 0; row < 6; ++row) {
    if (labels[row] < 0) continue;
    double total = 0;
    for (std::size_t c = 0; c < 4; ++c) total += std::exp(scores[row * 4 + c]);
    sum += std::log(total) - scores[row * 4 + static_cast<std::size_t>(labels[row])];
  }
  const auto found = computed(file, {{"scores", scores}, {"labels", labels}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], {sum / 5});

  OnnxFile wrong;
  wrong.input("x", {2, 3})
      .input("labels", {2, 3}, OnnxFile::kInt64)
      .node("Add", {"x", "labels"}, {"y"})
      .output("y", {});
  wrong.node("SoftmaxCrossEntropyLoss", {"y", "labels"}, {"loss"});
  expect_refused(wrong, "is an integer input");
}

// An unknown attribute, or one of another kind, must not be ignored silently.
TEST_F(OnnxOperators, RejectUnknownAttributes) {
  const auto refused = [](std::string_view operation, const OnnxFile::Attribute& attribute,
                          std::string_view message) {
    OnnxFile file;
    file.input("x", {1, 2, 4, 4}).floats("w", {2, 2, 3, 3}, as_floats(numbers({2, 2, 3, 3})));
    if (operation == "Conv")
      file.node(operation, {"x", "w"}, {"y"}, {attribute});
    else
      file.node(operation, {"x"}, {"y"}, {attribute});
    expect_refused(file.output("y", {}), message);
  };
  for (const std::string_view operation :
       {"Relu", "Conv", "Softmax", "Cast", "Flatten", "ReduceSum", "Split", "Transpose", "Gelu"})
    refused(operation, {"wings", {1}, true}, "unknown attribute: wings");
  refused("Squeeze", {"axes", {0}}, "unknown attribute: axes");  // an operand from opset 13 on
  refused("Clip", {"min", {0}, true}, "unknown attribute: min");
  refused("Softmax", {"axis", {}, false, "1"}, "axis: expected a whole number, found a word");
  refused("Conv", {"strides", {2}, true}, "strides: expected a list of whole numbers, found a whole number");
  refused("Conv", {"kernel_shape", {2, 2}}, "kernel_shape: expected [3, 3], found [2, 2]");
  refused("Gelu", {"approximate", {}, false, "erf"}, "approximate: expected none or tanh");
}

// A parameter with one element is trained like any other: the bias of a single class.
TEST_F(OnnxOperators, TensorsOfOneElementAreParameters) {
  const auto x = numbers({3, 2}), w = numbers({2, 1}, 4);
  OnnxFile file;
  file.input("x", {3, 2})
      .floats("w", {2, 1}, as_floats(w))
      .floats("bias", {1}, {0.5f})
      .floats("more", {1}, {0.25f})
      .node("Gemm", {"x", "w", "bias"}, {"g"})
      .node("Add", {"g", "more"}, {"y"})
      .output("y", {});
  std::vector<double> wanted;
  for (std::size_t i = 0; i < 3; ++i) wanted.push_back(x[2 * i] * w[0] + x[2 * i + 1] * w[1] + 0.75);
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);
  EXPECT_EQ(import_onnx(file.bytes(), "m")->model.parameters, 4);
}

// Constants have a type and dims: casts truncate, and quotients of floats keep fractions.
TEST_F(OnnxOperators, ConstantsKeepTheirTypeAndDims) {
  const auto x = numbers({7});
  OnnxFile file;
  file.input("x", {7})
      .floats("fraction", {}, {2.75f})
      .node("Cast", {"fraction"}, {"whole"}, {{"to", {7}, true}})
      .node("Cast", {"whole"}, {"two"}, {{"to", {1}, true}})
      .node("Shape", {"x"}, {"size"}, {{"start", {-1}, true}})
      .node("Cast", {"size"}, {"seven"}, {{"to", {1}, true}})
      .node("Div", {"seven", "two"}, {"half"})
      .node("Sqrt", {"half"}, {"root"})
      .wholes("first", {0})
      .node("Unsqueeze", {"root", "first"}, {"wide"})
      .node("Mul", {"x", "wide"}, {"z"})
      .node("Softmax", {"z"}, {"y"}, {{"axis", {0}, true}})  // along the new dim, of size 1
      .node("Add", {"y", "z"}, {"sum"})
      .output("sum", {});
  std::vector<double> wanted;
  for (const double one : x) wanted.push_back(1 + one * std::sqrt(3.5));
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[0][i], wanted[i], 1e-6);
}

// A dropout in training mode is kept; one that is off or unspecified is dropped.
TEST_F(OnnxOperators, KeepsActiveDropouts) {
  for (const bool trains : {true, false}) {
    OnnxFile file;
    file.input("x", {2, 3})
        .floats("ratio", {}, {0.25f})
        .tensor("trains", {}, std::vector<char>{trains}, OnnxFile::kBool)
        .node("Dropout", {"x", "ratio", "trains"}, {"kept"})
        .node("Tanh", {"kept"}, {"y"})
        .output("y", {});
    const auto model = import_onnx(file.bytes(), "m");
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->model.text.find("dropout(x, rate => 0.25)") != std::string::npos, trains)
        << model->model.text;
  }
}

// One name is used for different sizes in two reshapes.
TEST_F(OnnxOperators, ReshapesMayReuseNamesWithOtherSizes) {
  const auto x = numbers({2, 3, 4});
  OnnxFile file;
  file.input("x", {2, 3, 4})
      .wholes("a", {2, 2, 6})
      .wholes("b", {2, 6, 2})
      .wholes("c", {2, 1, 3, 2, 2})
      .wholes("d", {2, 12})
      .node("Reshape", {"x", "a"}, {"p"})
      .node("Tanh", {"p"}, {"pt"})
      .node("Reshape", {"pt", "b"}, {"q"})
      .node("Neg", {"q"}, {"qn"})
      .node("Reshape", {"qn", "c"}, {"r"})
      .node("Abs", {"r"}, {"ra"})
      .node("Reshape", {"ra", "d"}, {"y"})
      .output("y", {});
  std::vector<double> wanted;
  for (const double one : x) wanted.push_back(std::abs(std::tanh(one)));
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);
}

}  // namespace
}  // namespace weft::imports
