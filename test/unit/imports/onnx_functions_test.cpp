// Functions that refer to indices, and mixtures of experts: each is compared with loops written here.
#include <algorithm>

#include "onnx_case.h"

namespace weft::imports {
namespace {

class OnnxFunctions : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_onnx()) GTEST_SKIP() << "built without libonnx";
  }
};

TEST_F(OnnxFunctions, RmsNormWithAndWithoutScale) {
  const auto x = numbers({2, 3, 4}), scale = numbers({4}, 5);
  for (const bool scaled : {true, false}) {
    OnnxFile file;
    file.input("x", {2, 3, 4}).floats("scale", {4}, as_floats(scale));
    if (scaled)
      file.node("RMSNormalization", {"x", "scale"}, {"y"}, {{"epsilon", {}, false, {}, 0.25F}});
    else
      file.node("RMSNormalization", {"x"}, {"y"}, {{"epsilon", {}, false, {}, 0.25F}});
    file.output("y", {});
    std::vector<double> wanted;
    for (std::size_t row = 0; row < 6; ++row) {
      double square = 0;
      for (std::size_t d = 0; d < 4; ++d) square += x[row * 4 + d] * x[row * 4 + d] / 4;
      for (std::size_t d = 0; d < 4; ++d)
        wanted.push_back(x[row * 4 + d] / std::sqrt(square + 0.25) * (scaled ? scale[d] : 1));
    }
    const auto found = computed(file, {{"x", x}});
    ASSERT_EQ(found.size(), 1u);
    expect_near(found[0], wanted);
  }
  OnnxFile other;
  other.input("x", {2, 3, 4}).node("RMSNormalization", {"x"}, {"y"}, {{"axis", {1}, true}}).output("y", {});
  expect_refused(other, "axis: expected the last dim");
  OnnxFile wide;
  wide.input("x", {2, 4}).floats("scale", {2}, {1, 2});
  wide.node("RMSNormalization", {"x", "scale"}, {"y"}).output("y", {});
  expect_refused(wide, "expected a scale with one number per feature");
}

TEST_F(OnnxFunctions, RotaryTurnsPairsAlongPositions) {
  const auto x = numbers({2, 1, 3, 4});
  OnnxFile file;
  file.input("x", {2, 1, 3, 4})
      .node("weft.Rotary", {"x"}, {"y"}, {{"base", {}, false, {}, 100.0F}})
      .output("y", {});
  std::vector<double> wanted(x.size());
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t i = 0; i < 2; ++i) {
        const double angle = static_cast<double>(s) * std::pow(100.0, -static_cast<double>(i) / 2);
        const std::size_t at = (b * 3 + s) * 4 + i;
        wanted[at] = x[at] * std::cos(angle) - x[at + 2] * std::sin(angle);
        wanted[at + 2] = x[at + 2] * std::cos(angle) + x[at] * std::sin(angle);
      }
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);

  OnnxFile odd;
  odd.input("x", {2, 3}).node("weft.Rotary", {"x"}, {"y"}).output("y", {});
  expect_refused(odd, "with an even e, found [2, 3]");
  OnnxFile negative;
  negative.input("x", {2, 4})
      .node("weft.Rotary", {"x"}, {"y"}, {{"base", {}, false, {}, -1.0F}})
      .output("y", {});
  expect_refused(negative, "base: expected a number above 0, found -1");
}

TEST_F(OnnxFunctions, BandKeepsScoresNearTheDiagonal) {
  const auto x = numbers({2, 4, 5});
  struct Case {
    std::vector<OnnxFile::Attribute> attributes;
    std::int64_t lowest, highest;
  };
  for (const Case& one :
       {Case{{{"lowest", {0}, true}}, 0, 9}, Case{{{"lowest", {-1}, true}, {"highest", {1}, true}}, -1, 1},
        Case{{{"highest", {0}, true}}, -9, 0}, Case{{{"lowest", {0}, true}, {"highest", {2}, true}}, 0, 2},
        Case{{}, -9, 9}}) {
    OnnxFile file;
    file.input("x", {2, 4, 5})
        .node("weft.Band", {"x"}, {"inside"}, one.attributes)
        .node("Softmax", {"inside"}, {"y"}, {{"axis", {-1}, true}})
        .output("y", {});
    std::vector<double> wanted;
    for (std::size_t b = 0; b < 2; ++b)
      for (std::int64_t s = 0; s < 4; ++s) {
        const double* const row = &x[(b * 4 + static_cast<std::size_t>(s)) * 5];
        std::vector<double> powers;
        for (std::int64_t t = 0; t < 5; ++t)
          powers.push_back(s - t >= one.lowest && s - t <= one.highest ? std::exp(row[t]) : 0);
        const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
        for (const double power : powers) wanted.push_back(power / sum);
      }
    const auto found = computed(file, {{"x", x}});
    ASSERT_EQ(found.size(), 1u);
    expect_near(found[0], wanted);
  }
  OnnxFile flat;
  flat.input("x", {4}).node("weft.Band", {"x"}, {"y"}, {{"lowest", {0}, true}}).output("y", {});
  expect_refused(flat, "expected scores [.., s, t], found [4]");
}

TEST_F(OnnxFunctions, TopKGivesValuesAndPositions) {
  const auto x = numbers({2, 3, 5});
  OnnxFile file;
  file.input("x", {2, 3, 5})
      .wholes("k", {2})
      .node("TopK", {"x", "k"}, {"values", "positions"})
      .node("Cast", {"positions"}, {"y"}, {{"to", {1}, true}})
      .output("values", {})
      .output("y", {});
  std::vector<double> values, positions;
  for (std::size_t row = 0; row < 6; ++row) {
    std::vector<std::size_t> order = {0, 1, 2, 3, 4};
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return x[row * 5 + a] > x[row * 5 + b]; });
    for (const std::size_t at : {order[0], order[1]}) {
      values.push_back(x[row * 5 + at]);
      positions.push_back(static_cast<double>(at));
    }
  }
  const auto found = computed(file, {{"x", x}});
  ASSERT_EQ(found.size(), 2u);
  expect_near(found[0], values);
  expect_near(found[1], positions);

  for (const std::int64_t k : {0, 6}) {
    OnnxFile wrong;
    wrong.input("x", {2, 5}).wholes("k", {k}).node("TopK", {"x", "k"}, {"y", ""}).output("y", {});
    expect_refused(wrong, "k: expected 1 to 5, found " + std::to_string(k));
  }
  OnnxFile least;
  least.input("x", {2, 5}).wholes("k", {1});
  least.node("TopK", {"x", "k"}, {"y", ""}, {{"largest", {0}, true}}).output("y", {});
  expect_refused(least, "expected the largest of the last dim");
}

// Two of three experts, each a product with its own number, for each of two rows per batch.
TEST_F(OnnxFunctions, ExpertsGiveTheSumOfTheChosen) {
  const auto x = numbers({2, 2, 4}), scores = numbers({2, 2, 3}, 7);
  const std::vector<float> factors = {2, 3, 5};
  OnnxFile file;
  file.input("x", {2, 2, 4})
      .input("scores", {2, 2, 3})
      .wholes("k", {2})
      .wholes("apart", {2, 3, 2, 4})
      .wholes("together", {2, 6, 4})
      .floats("factors", {1, 3, 1, 1}, factors)
      .node("TopK", {"scores", "k"}, {"shares", "chosen"})
      .node("weft.ExpertSlots", {"chosen"}, {"slots"}, {{"experts", {3}, true}, {"capacity", {2}, true}})
      .node("weft.ExpertSend", {"x", "slots"}, {"sent"})
      .node("Reshape", {"sent", "apart"}, {"rows"})
      .node("Mul", {"rows", "factors"}, {"done"})
      .node("Reshape", {"done", "together"}, {"flat"})
      .node("weft.ExpertMix", {"shares", "slots", "flat"}, {"y"})
      .output("y", {});
  std::vector<double> wanted;
  for (std::size_t row = 0; row < 4; ++row) {
    const double* const own = &scores[row * 3];
    const auto least = static_cast<std::size_t>(std::min_element(own, own + 3) - own);
    double factor = 0;
    for (std::size_t e = 0; e < 3; ++e)
      if (e != least) factor += own[e] * static_cast<double>(factors[e]);
    for (std::size_t d = 0; d < 4; ++d) wanted.push_back(x[row * 4 + d] * factor);
  }
  const auto found = computed(file, {{"x", x}, {"scores", scores}});
  ASSERT_EQ(found.size(), 1u);
  expect_near(found[0], wanted);

  OnnxFile other;  // positions that are no result of TopK
  other.input("x", {2, 2, 4})
      .node("weft.ExpertSlots", {"x"}, {"y"}, {{"experts", {3}, true}, {"capacity", {2}, true}});
  other.output("y", {});
  expect_refused(other, "expected positions [b, s, k] from TopK");
  OnnxFile none;
  none.input("x", {2, 2, 4}).wholes("k", {1}).node("TopK", {"x", "k"}, {"", "chosen"});
  none.node("weft.ExpertSlots", {"chosen"}, {"y"}, {{"experts", {0}, true}, {"capacity", {2}, true}})
      .output("y", {});
  expect_refused(none, "expected experts and capacity of 1 or more, found 0 and 2");
}

TEST_F(OnnxFunctions, PositionsAsNumbers) {
  OnnxFile file;
  file.input("ids", {2, 3}, OnnxFile::kInt64)
      .floats("table", {5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
      .floats("one", {}, {1})
      .node("Gather", {"table", "ids"}, {"rows"})
      .node("Cast", {"ids"}, {"number"}, {{"to", {1}, true}})
      .node("Equal", {"number", "one"}, {"equal"})
      .node("Cast", {"equal"}, {"y"}, {{"to", {1}, true}})
      .output("rows", {})
      .output("y", {});
  const auto found = computed(file, {{"ids", {0, 1, 4, 1, 3, 2}}});
  ASSERT_EQ(found.size(), 2u);
  expect_near(found[0], {0, 1, 2, 3, 8, 9, 2, 3, 6, 7, 4, 5});
  expect_near(found[1], {0, 1, 0, 1, 0, 0});
}

// A tensor without dims cannot be split or merged.
TEST_F(OnnxFunctions, RejectReshapesOfScalars) {
  OnnxFile file;
  file.input("x", {2, 3})
      .wholes("one", {1})
      .node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", {0}, true}})
      .node("Reshape", {"sum", "one"}, {"y"})
      .output("y", {});
  expect_refused(file, "expected tensors of one dim or more, found a reshape of [] to [1]");
}

}  // namespace
}  // namespace weft::imports
