// The tiled loss compared with its definition, with tiles and ranges of classes that do not divide
// the sizes.
#include "kernels_case.h"
#include "weft/device/cpu/linear_cross_entropy.h"

namespace weft::device::cpu {
namespace {

struct LossShape {
  std::int64_t rows, classes, width, tile;
  bool by_class = true;
  double smoothing = 0;
  bool biased = false;
};

const LossShape kLossShapes[] = {
    {.rows = 1, .classes = 1, .width = 1, .tile = 1},
    {.rows = 5, .classes = 7, .width = 3, .tile = 2},
    {.rows = 6, .classes = 33, .width = 4, .tile = 3, .by_class = false},
    {.rows = 17, .classes = 5, .width = 9, .tile = 17, .smoothing = 0.3},
    {.rows = 9, .classes = 40, .width = 18, .tile = 4, .by_class = false, .smoothing = 0.1},
    {.rows = 5, .classes = 7, .width = 3, .tile = 2, .biased = true},
    {.rows = 9, .classes = 40, .width = 2, .tile = 4, .by_class = false, .smoothing = 0.1, .biased = true},
};

struct Slopes {
  std::vector<float> loss, dhidden, dwords, dbias;
};

Slopes tiled(const LossShape& shape, std::int64_t parts, const std::vector<float>& hidden,
             const std::vector<float>& words, const std::vector<std::int32_t>& labels,
             const std::vector<float>& bias = {}) {
  const program::LossTiles tiles{.rows = shape.rows,
                                 .classes = shape.classes,
                                 .width = shape.width,
                                 .tile = shape.tile,
                                 .by_class = shape.by_class,
                                 .parts = parts};
  Slopes made{unwritten(1), unwritten(shape.rows * shape.width), unwritten(shape.classes * shape.width),
              unwritten(shape.classes)};
  auto room = unwritten(tiles.room());
  const LinearLoss of{.tiles = tiles,
                      .weights = {static_cast<float>(1 - shape.smoothing),
                                  static_cast<float>(shape.smoothing / static_cast<double>(shape.classes))},
                      .hidden = hidden.data(),
                      .words = words.data(),
                      .bias = shape.biased ? bias.data() : nullptr,
                      .loss = made.loss.data(),
                      .dhidden = made.dhidden.data(),
                      .dwords = made.dwords.data(),
                      .dbias = shape.biased ? made.dbias.data() : nullptr,
                      .room = room.data()};
  for (std::int64_t i = 0; i < tiles.items(); ++i) linear_cross_entropy(of, i, i + 1, labels.data());
  return made;
}

TEST(KernelsLoss, MatchesItsDefinition) {
  Random random(51);
  for (const LossShape& shape : kLossShapes) {
    const auto hidden = random_floats(shape.rows * shape.width, random),
               words = random_floats(shape.classes * shape.width, random),
               bias = random_floats(shape.classes, random);
    const auto labels = random_positions(shape.rows, shape.classes, random);  // some labels are out of range
    std::vector<Operand> operands = {
        {fmt::format("f32[b={},d={}]", shape.rows, shape.width), hidden},
        {shape.by_class ? fmt::format("f32[v={},d={}]", shape.classes, shape.width)
                        : fmt::format("f32[d={},v={}]", shape.width, shape.classes),
         words},
        {fmt::format("i32[b={}]", shape.rows), labels}};
    if (shape.biased) operands.emplace_back(fmt::format("f32[v={}]", shape.classes), bias);
    const auto expected = reference("linear-cross-entropy", operands,
                                    fmt::format("{{over=v, inner=[d], smoothing={}}}", shape.smoothing),
                                    static_cast<int>(operands.size()));
    for (const std::int64_t parts : {1, 2, 5}) {
      if (parts > shape.classes) continue;
      SCOPED_TRACE(fmt::format("{} rows, {} classes, {} parts", shape.rows, shape.classes, parts));
      const Slopes found = tiled(shape, parts, hidden, words, labels, bias);
      EXPECT_TRUE(near(found.loss, expected[0]));
      EXPECT_TRUE(near(found.dhidden, expected[1]));
      EXPECT_TRUE(near(found.dwords, expected[2]));
      if (shape.biased) EXPECT_TRUE(near(found.dbias, expected[3]));
    }
  }
}

TEST(KernelsLoss, DoesNotOverflow) {
  const LossShape shape{.rows = 2, .classes = 3, .width = 1, .tile = 2};
  const Slopes found = tiled(shape, 2, {1, 1}, {1000, -1000, 999}, {0, 1});
  EXPECT_NEAR(found.loss[0], 2000 + 2 * std::log1p(std::exp(-1.0)), 1e-3);
}

}  // namespace
}  // namespace weft::device::cpu
