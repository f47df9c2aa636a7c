// The recurrence kernel compared with its definition: decays with any of the indices, in both
// directions, row by row.
#include "kernels_case.h"
#include "weft/device/cpu/recurrence.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::device::cpu {
namespace {

struct Decays {
  std::string type;
  std::int64_t elements;
  Recurrence shape;
};

TEST(KernelsRecurrence, MatchesItsDefinition) {
  Random random(31);
  constexpr std::int64_t kRows = 3, kSteps = 5, kHeads = 2, kWidth = 19;
  const std::vector<std::int64_t> by_row = {0, kSteps, 2 * kSteps}, none(kRows, 0);
  const Decays all[] = {
      // one decay for all; per step; per row and step; per head and step; per element
      {"f32[]", 1, {kSteps, kHeads * kWidth, kHeads * kWidth, false, false, 0, none, {0}}},
      {"f32[s=5]", kSteps, {kSteps, kHeads * kWidth, kHeads * kWidth, false, false, 1, none, {0}}},
      {"f32[b=3,s=5]",
       kRows * kSteps,
       {kSteps, kHeads * kWidth, kHeads * kWidth, false, false, 1, by_row, {0}}},
      {"f32[s=5,h=2]",
       kSteps * kHeads,
       {kSteps, kHeads * kWidth, kWidth, false, false, kHeads, none, {0, 1}}},
      {"f32[b=3,s=5,h=2,e=19]",
       kRows * kSteps * kHeads * kWidth,
       {kSteps,
        kHeads * kWidth,
        kHeads * kWidth,
        true,
        false,
        kHeads * kWidth,
        {0, kSteps * kHeads * kWidth, 2 * kSteps * kHeads * kWidth},
        {0}}},
  };
  for (const Decays& decays : all)
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(decays.type);
      Recurrence shape = decays.shape;
      shape.reverse = reverse;
      const auto decay = random_floats(decays.elements, random);
      const auto x = random_floats(kRows * kSteps * kHeads * kWidth, random);
      auto whole = unwritten(static_cast<std::int64_t>(x.size())), parts = whole;
      recur(shape, 0, kRows, decay.data(), x.data(), whole.data());
      EXPECT_TRUE(near(whole, reference("recurrence", {{decays.type, decay}, {"f32[b=3,s=5,h=2,e=19]", x}},
                                        fmt::format("{{along=s, reverse={}}}", reverse ? 1 : 0))[0]));
      in_pieces(kRows, random, [&](std::int64_t begin, std::int64_t end) {
        recur(shape, begin, end, decay.data(), x.data(), parts.data());
      });
      EXPECT_TRUE(same_bits(whole, parts));
    }
}

// A row that only has steps keeps its sum in a register. Infinity and NaN propagate.
TEST(KernelsRecurrence, RunsAlongAContiguousRow) {
  Random random(32);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t steps : {1, 2, 64, 1001}) {
    auto x = random_floats(2 * steps, random);
    const Recurrence shape{.steps = steps, .inner = 1, .run = 1, .row_starts = {0, 0}};
    const std::vector<float> one = {1};
    auto y = unwritten(2 * steps);
    recur(shape, 0, 2, one.data(), x.data(), y.data());
    EXPECT_TRUE(near(y, reference("recurrence", {{"f32[]", one}, {fmt::format("f32[b=2,s={}]", steps), x}},
                                  "{along=s}")[0]));
    x[0] = kInfinity;
    recur(shape, 0, 2, one.data(), x.data(), y.data());
    EXPECT_EQ(y[static_cast<std::size_t>(steps) - 1], kInfinity);
    x.back() = -kInfinity;
    x[static_cast<std::size_t>(steps)] = kInfinity;
    recur(shape, 0, 2, one.data(), x.data(), y.data());
    EXPECT_EQ(std::isnan(y.back()), steps > 1);
  }
}

}  // namespace
}  // namespace weft::device::cpu
