// Kernels that run by row or by channel: gather, scatter-add, cross-entropy, batch-norm, rotary and
// dropout, each compared with ops/.
#include <fmt/format.h>

#include "kernels_case.h"
#include "weft/device/cpu/batch_norm.h"
#include "weft/device/cpu/cross_entropy.h"
#include "weft/device/cpu/dropout.h"
#include "weft/device/cpu/gather.h"
#include "weft/device/cpu/rotary.h"

namespace weft::device::cpu {
namespace {

TEST(KernelsRows, GatherReadsRowsAndZerosOutOfRange) {
  Random random(9);
  for (const auto& [count, rows, width] : {std::tuple{1, 1, 1}, {7, 5, 3}, {40, 9, 33}}) {
    const auto positions = random_positions(count, rows, random);
    const auto table = random_floats(rows * width, random);
    auto y = unwritten(count * width);
    in_pieces(
        count, random, [&, count = count, rows = rows, width = width](std::int64_t begin, std::int64_t end) {
          const std::array<Gather::Loop, 1> inside = {{{width, 1}}};
          gather(Gather({{count, 0}}, inside, rows, {{{rows, width}}}), positions.data(), begin, end,
                 reinterpret_cast<const std::byte*>(table.data()), reinterpret_cast<std::byte*>(y.data()));
        });
    EXPECT_TRUE(near(y,
                     reference("gather",
                               {{fmt::format("i32[s={}]", count), positions},
                                {fmt::format("f32[v={},d={}]", rows, width), table}},
                               "{along=v}")[0],
                     0));
  }
}

TEST(KernelsRows, FindsStridedRows) {
  const RowParts one{{{6, 10}}}, two{{{2, 100}, {3, 7}}}, three{{{2, 1}, {1, 50}, {3, 20}}};
  EXPECT_EQ(one.at(5), 50);
  EXPECT_EQ(two.at(0), 0);
  EXPECT_EQ(two.at(2), 14);
  EXPECT_EQ(two.at(3), 100);
  EXPECT_EQ(two.at(5), 114);
  EXPECT_EQ(three.at(4), 21);
}

TEST(KernelsRows, ScatterAddAddsInOrder) {
  Random random(10);
  for (const auto& [count, rows, width] : {std::tuple{1, 1, 1}, {7, 5, 3}, {40, 9, 33}}) {
    const auto positions = random_positions(count, rows, random);
    const auto x = random_floats(count * width, random);
    auto whole = unwritten(rows * width), parts = whole;
    ScatterAdd scatter{.loops = {{count, 1, width, 0}}, .run = width, .rows = rows, .row = {{{rows, width}}}};
    scatter.items = rows, scatter.item = width;
    scatter_add(scatter, positions.data(), 0, rows, x.data(), whole.data());
    EXPECT_TRUE(near(whole, reference("scatter-add",
                                      {{fmt::format("i32[s={}]", count), positions},
                                       {fmt::format("f32[s={},d={}]", count, width), x}},
                                      fmt::format("{{along=n, size={}, to=[n,d]}}", rows))[0]));
    in_pieces(rows, random, [&](std::int64_t begin, std::int64_t end) {
      scatter_add(scatter, positions.data(), begin, end, x.data(), parts.data());
    });
    EXPECT_TRUE(same_bits(whole, parts));
  }
}

TEST(KernelsRows, CrossEntropyIgnoresLabelsOutOfRange) {
  Random random(11);
  for (const auto& [rows, classes] : {std::pair{1, 1}, {9, 10}, {17, 131}}) {
    auto logits = random_floats(rows * classes, random);
    for (float& logit : logits) logit *= 30;
    const auto labels = random_positions(rows, classes, random);
    const auto dloss = random_floats(rows, random);
    const std::string of_logits = fmt::format("f32[b={},c={}]", rows, classes),
                      of_labels = fmt::format("i32[b={}]", rows), of_loss = fmt::format("f32[b={}]", rows);
    auto loss = unwritten(rows), dlogits = unwritten(rows * classes), in_place = logits;
    in_pieces(rows, random, [&, classes = classes](std::int64_t begin, std::int64_t end) {
      cross_entropy(begin, end, classes, logits.data(), labels.data(), loss.data());
      cross_entropy_gradient(begin, end, classes, logits.data(), labels.data(), dloss.data(), dlogits.data());
    });
    EXPECT_TRUE(
        near(loss, reference("cross-entropy", {{of_logits, logits}, {of_labels, labels}}, "{over=c}")[0]));
    EXPECT_TRUE(near(dlogits,
                     reference("cross-entropy-gradient",
                               {{of_logits, logits}, {of_labels, labels}, {of_loss, dloss}}, "{over=c}")[0]));
    cross_entropy_gradient(0, rows, classes, in_place.data(), labels.data(), dloss.data(), in_place.data());
    EXPECT_TRUE(same_bits(dlogits, in_place));
  }
}

TEST(KernelsRows, BatchNormTrainsAndInfers) {
  Random random(12);
  for (const auto& [batch, channels, inner] :
       {std::tuple{1, 1, 1}, {1, 3, 1}, {5, 70, 1}, {3, 7, 9}, {4, 130, 64}, {2, 5, 33}}) {
    const BatchNorm norm{batch, channels, inner, 1e-3f, 0.25f};
    const auto x = random_floats(batch * channels * inner, random), mean = random_floats(channels, random);
    auto variance = random_floats(channels, random);
    for (float& element : variance) element = std::abs(element) + 0.1f;
    const std::string per_channel = fmt::format("f32[c={}]", channels);
    const std::vector<Operand> operands = {{fmt::format("f32[b={},c={},h={}]", batch, channels, inner), x},
                                           {per_channel, mean},
                                           {per_channel, variance}};

    for (const bool train : {true, false}) {
      const auto expected = reference("batch-norm", operands,
                                      fmt::format("{{over=[b,h], epsilon={}, momentum=0.25, mode={}}}",
                                                  double{norm.epsilon}, train ? "train" : "infer"),
                                      4);
      struct Results {
        std::vector<float> y, mean, variance, rstd;
      };
      const auto run = [&](Results& r, std::int64_t begin, std::int64_t end) {
        if (train)
          batch_norm_train(norm, begin, end, x.data(), r.mean.data(), r.variance.data(), r.y.data(),
                           r.mean.data(), r.variance.data(), r.rstd.data());
        else
          batch_norm_infer(norm, begin, end, x.data(), mean.data(), variance.data(), r.y.data(),
                           r.rstd.data());
      };
      Results whole = {unwritten(batch * channels * inner), mean, variance, unwritten(channels)},
              parts = whole;
      run(whole, 0, channels);
      // With a batch of one element, the deviation is only epsilon and amplifies the rounding of x.
      EXPECT_TRUE(near(whole.y, expected[0]));
      EXPECT_TRUE(near(whole.mean, expected[1]));
      EXPECT_TRUE(near(whole.variance, expected[2]));
      EXPECT_TRUE(near(whole.rstd, expected[3]));
      in_pieces(channels, random, [&](std::int64_t begin, std::int64_t end) { run(parts, begin, end); });
      EXPECT_TRUE(same_bits(whole.y, parts.y));
      EXPECT_TRUE(same_bits(whole.mean, parts.mean));
      EXPECT_TRUE(same_bits(whole.variance, parts.variance));
      EXPECT_TRUE(same_bits(whole.rstd, parts.rstd));
    }
  }
}

TEST(KernelsRows, RotaryIsInvertible) {
  Random random(13);
  for (const auto& [batch, positions, heads, half] : {std::tuple{1, 1, 1, 1}, {2, 5, 3, 4}, {3, 9, 1, 13}}) {
    const std::int64_t rows = batch * positions * heads;
    const auto x = random_floats(rows * 2 * half, random);
    for (const bool inverse : {false, true}) {
      const Rotary rotary{positions, heads, half, inverse};
      auto cosines = unwritten(positions * half), sines = cosines, y = unwritten(rows * 2 * half),
           in_place = x;
      rotary_table(rotary, 100, 0, cosines.data(), sines.data());
      in_pieces(rows, random, [&](std::int64_t begin, std::int64_t end) {
        rotate_rows(rotary, begin, end, x.data(), cosines.data(), sines.data(), y.data());
      });
      EXPECT_TRUE(
          near(y, reference("rotary",
                            {{fmt::format("f32[b={},s={},h={},e={}]", batch, positions, heads, 2 * half), x}},
                            fmt::format("{{along=s, pairs=e, base=100, inverse={}}}", inverse ? 1 : 0))[0]));
      rotate_rows(rotary, 0, rows, in_place.data(), cosines.data(), sines.data(), in_place.data());
      EXPECT_TRUE(same_bits(y, in_place));
    }
  }
}

TEST(KernelsRows, ASliceOfPositionsUsesItsOffset) {
  const Rotary whole{7, 1, 3}, slice{4, 1, 3};
  std::vector<float> cosines(21), sines(21), later_cosines(12), later_sines(12);
  rotary_table(whole, 10000, 0, cosines.data(), sines.data());
  rotary_table(slice, 10000, 3, later_cosines.data(), later_sines.data());
  EXPECT_TRUE(same_bits(std::span(cosines).subspan(9), later_cosines));
  EXPECT_TRUE(same_bits(std::span(sines).subspan(9), later_sines));
}

TEST(KernelsRows, DropoutUsesTheMaskOfTheReference) {
  Random random(14);
  for (const std::int64_t n : {1, 4, 63, 64, 65, 1000})
    for (const double rate : {0.0, 0.1, 0.5, 0.999}) {
      const Dropout drop{.step = 3, .stream = 5, .rate = rate};
      const auto x = random_floats(n, random);
      auto whole = unwritten(n), parts = whole;
      dropout(drop, 0, n, x.data(), whole.data());
      for (std::int64_t i = 0; i < n; ++i) {
        const bool kept = static_cast<double>(uniform_at(3, 5, static_cast<std::uint64_t>(i))) >= rate;
        ASSERT_EQ(whole[i], kept ? x[i] / static_cast<float>(1 - rate) : 0.0f);
      }
      EXPECT_TRUE(near(
          whole, reference("dropout", {{fmt::format("f32[d={}]", n), x}, {"i64[]", std::vector<double>{3}}},
                           fmt::format("{{rate={}, stream=5}}", rate))[0]));
      in_pieces(n, random, [&](std::int64_t begin, std::int64_t end) {
        dropout(drop, static_cast<std::uint64_t>(begin), end - begin, x.data() + begin, parts.data() + begin);
      });
      EXPECT_TRUE(same_bits(whole, parts));
    }
}

TEST(KernelsRows, DropoutSupportsOffsetsBeyond32Bits) {
  const std::uint64_t far = (std::uint64_t{1} << 34) - 7;
  const std::vector<float> x(20, 1.0f);
  auto y = unwritten(20);
  dropout({.step = std::uint64_t{1} << 40, .stream = std::uint64_t{1} << 33, .rate = 0.5}, far, 20, x.data(),
          y.data());
  for (std::uint64_t i = 0; i < 20; ++i)
    EXPECT_EQ(y[i] != 0, uniform_at(std::uint64_t{1} << 40, std::uint64_t{1} << 33, far + i) >= 0.5f);
}

}  // namespace
}  // namespace weft::device::cpu
