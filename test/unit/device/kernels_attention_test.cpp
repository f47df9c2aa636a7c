// Attention kernels compared with their definitions, with tiles that do not divide the sizes.
#include "kernels_case.h"
#include "weft/device/cpu/attention.h"
#include "weft/device/cpu/narrow.h"
#include "weft/program/tasks/items.h"

namespace weft::device::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Shape {
  std::int64_t queries, keys, inner, values, sharing;
  bool causal = false;
  std::int64_t window = 0, begin = 0;  // 0: no window
  bool masked = false;
};

// q[h,g,s,e], k[h,t,e], v[h,t,f]: two heads of keys, each for `sharing` heads of queries.
class Case {
 public:
  static constexpr std::int64_t kHeads = 2;

  Case(const Shape& shape, Random& random) : shape_(shape) {
    const auto [s, t, e, f, g, causal, window, begin, masked] = shape;
    q = random_floats(kHeads * g * s * e, random);
    k = random_floats(kHeads * t * e, random);
    v = random_floats(kHeads * t * f, random);
    dy = random_floats(kHeads * g * s * f, random);
    for (std::int64_t i = 0; i < kHeads * t; ++i) mask.push_back(random.below(3) == 0 ? 0 : 1);
    how.of.over = {Symbol(0), t};
    how.of.along = {Symbol(1), s};
    how.of.causal = causal;
    how.of.window = window > 0 ? static_cast<double>(window) : std::numeric_limits<double>::infinity();
    how.of.begin = begin;
    how.of.divisor = 1.7;
    how.queries = s, how.keys = t, how.inner = e, how.values = f, how.sharing = g;
    const auto rows = [&, sharing = shape.sharing](std::int64_t length, std::int64_t width, bool shared) {
      AttentionRows made;
      for (std::int64_t head = 0; head < kHeads * sharing; ++head)
        made.heads.push_back((shared ? head / sharing : head) * length * width);
      made.step = width;
      return made;
    };
    how.q = how.dq = rows(s, e, false);
    how.y = how.dy = rows(s, f, false);
    how.log_sum = rows(s, 1, false);
    how.k = how.dk = rows(t, e, true);
    how.v = how.dv = rows(t, f, true);
    how.mask = rows(t, 1, true);
    how.mask.step = 0;
    how.mask_step = 1;
  }

  std::int64_t tiles() const {
    return kHeads * how.sharing * ((how.queries + program::kQueryTile - 1) / program::kQueryTile);
  }
  std::string attributes() const {
    std::string text = fmt::format("{{over=t, along=s, inner=[e], divisor=1.7, causal={}, begin={}",
                                   shape_.causal ? 1 : 0, shape_.begin);
    if (shape_.window > 0) text += fmt::format(", window={}", shape_.window);
    return text + "}";
  }
  std::vector<Operand> operands() const {
    const auto [s, t, e, f, g, causal, window, begin, masked] = shape_;
    return {{fmt::format("f32[h=2,g={},s={},e={}]", g, s, e), q},
            {fmt::format("f32[h=2,t={},e={}]", t, e), k},
            {fmt::format("f32[h=2,t={},f={}]", t, f), v}};
  }
  Operand mask_operand() const {
    std::vector<float> truth(mask.begin(), mask.end());
    return {fmt::format("bool[h=2,t={}]", shape_.keys), truth};
  }
  const std::uint8_t* mask_or_none() const { return shape_.masked ? mask.data() : nullptr; }

  Attention how;
  std::vector<float> q, k, v, dy;
  std::vector<std::uint8_t> mask;

 private:
  Shape shape_;
};

const Shape kShapes[] = {
    {.queries = 1, .keys = 1, .inner = 1, .values = 1, .sharing = 1},
    {.queries = 200, .keys = 410, .inner = 5, .values = 7, .sharing = 1},
    {.queries = 210, .keys = 210, .inner = 16, .values = 3, .sharing = 2, .causal = true},
    {.queries = 3, .keys = 400, .inner = 4, .values = 4, .sharing = 1, .causal = true, .begin = 390},
    {.queries = 400, .keys = 400, .inner = 2, .values = 2, .sharing = 1, .causal = true, .window = 9},
    {.queries = 9, .keys = 5, .inner = 3, .values = 8, .sharing = 3, .causal = true, .window = 2},
    {.queries = 193, .keys = 385, .inner = 3, .values = 5, .sharing = 1, .masked = true},
    {.queries = 40, .keys = 40, .inner = 17, .values = 33, .sharing = 2, .causal = true, .masked = true},
};

// In rows without visible keys both sums are -inf, which a tolerance cannot compare.
bool same_sums(std::vector<float> found, std::vector<double> expected) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (expected[i] == static_cast<double>(kNever)) {
      if (found[i] != kNever) return false;
      found[i] = 0;
      expected[i] = 0;
    }
  return near(found, expected);
}

std::vector<float> scratch(const Case& c) {
  return std::vector<float>(attention_scratch_bytes(c.how) / sizeof(float));
}

TEST(KernelsAttention, MatchesItsDefinition) {
  Random random(41);
  for (const Shape& shape : kShapes) {
    const Case c(shape, random);
    SCOPED_TRACE(c.attributes());
    auto room = scratch(c);
    const std::int64_t rows = Case::kHeads * shape.sharing * shape.queries;
    auto y = unwritten(rows * shape.values), parts = y, sums = unwritten(rows), some = sums;
    attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), c.mask_or_none(), y.data(), sums.data(),
           room.data());
    auto operands = c.operands();
    if (shape.masked) operands.push_back(c.mask_operand());
    const auto expected = reference("attention", operands, c.attributes(), 2);
    EXPECT_TRUE(near(y, expected[0]));
    EXPECT_TRUE(same_sums(sums, expected[1]));
    in_pieces(c.tiles(), random, [&](std::int64_t begin, std::int64_t end) {
      attend(c.how, begin, end, c.q.data(), c.k.data(), c.v.data(), c.mask_or_none(), parts.data(),
             some.data(), room.data());
    });
    EXPECT_TRUE(same_bits(y, parts));
  }
}

TEST(KernelsAttention, GradientMatchesItsDefinition) {
  Random random(42);
  for (const Shape& shape : kShapes) {
    const Case c(shape, random);
    SCOPED_TRACE(c.attributes());
    auto room = scratch(c);
    const std::int64_t rows = Case::kHeads * shape.sharing * shape.queries;
    auto y = unwritten(rows * shape.values), sums = unwritten(rows);
    attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), c.mask_or_none(), y.data(), sums.data(),
           room.data());
    auto dq = unwritten(static_cast<std::int64_t>(c.q.size())),
         dk = unwritten(static_cast<std::int64_t>(c.k.size())),
         dv = unwritten(static_cast<std::int64_t>(c.v.size()));
    attend_gradient(c.how, 0, Case::kHeads, c.q.data(), c.k.data(), c.v.data(), y.data(), sums.data(),
                    c.dy.data(), c.mask_or_none(), {dq.data(), dk.data(), dv.data()}, room.data());
    auto operands = c.operands();
    const std::string row = fmt::format("h=2,g={},s={}", shape.sharing, shape.queries);
    operands.push_back({fmt::format("f32[{},f={}]", row, shape.values), y});
    operands.push_back({fmt::format("f32[{}]", row), sums});
    operands.push_back({fmt::format("f32[{},f={}]", row, shape.values), c.dy});
    if (shape.masked) operands.push_back(c.mask_operand());
    const auto expected = reference("attention-gradient", operands, c.attributes(), 3);
    EXPECT_TRUE(near(dq, expected[0]));
    EXPECT_TRUE(near(dk, expected[1]));
    EXPECT_TRUE(near(dv, expected[2]));
  }
}

// Rows of a narrow type, and the same numbers as f32.
struct NarrowRows {
  NarrowRows(plan::DType type, std::vector<float>& numbers) : dtype(type), bytes(numbers.size() * 2) {
    const auto n = static_cast<std::int64_t>(numbers.size());
    narrow(type, numbers.data(), bytes.data(), n);
    widen(type, bytes.data(), numbers.data(), n);
  }

  AttentionInput input() const { return {dtype, bytes.data()}; }
  AttentionOutput output() { return {dtype, bytes.data()}; }
  bool is_rounded(std::vector<float> exact) const { return NarrowRows(dtype, exact).bytes == bytes; }

  plan::DType dtype;
  std::vector<std::byte> bytes;
};

// Gradients of queries, keys and values computed from f32 numbers, and from the same numbers in a
// narrow type.
struct BothSlopes {
  std::array<std::vector<float>, 3> wide;
  std::array<NarrowRows, 3> narrow;
};
BothSlopes both_slopes(const Case& c, const std::array<const NarrowRows*, 4>& q_k_v_dy, std::vector<float> y,
                       const std::vector<float>& sums, std::vector<float>& room) {
  const auto& [q, k, v, dy] = q_k_v_dy;
  const NarrowRows y_read(q->dtype, y);  // also rounds y
  BothSlopes made{{c.q, c.k, c.v}, {*q, *k, *v}};
  auto& [dq, dk, dv] = made.wide;
  attend_gradient(c.how, 0, Case::kHeads, c.q.data(), c.k.data(), c.v.data(), y.data(), sums.data(),
                  c.dy.data(), c.mask_or_none(), {dq.data(), dk.data(), dv.data()}, room.data());
  auto& [dq_to, dk_to, dv_to] = made.narrow;
  attend_gradient(c.how, 0, Case::kHeads, q->input(), k->input(), v->input(), y_read.input(), sums.data(),
                  dy->input(), c.mask_or_none(), {dq_to.output(), dk_to.output(), dv_to.output()},
                  room.data());
  return made;
}

// Bitwise equal to f32 on the same numbers, rounded once.
TEST(KernelsAttention, NarrowResultsAreRoundedF32Results) {
  Random random(44);
  for (const plan::DType dtype : {plan::DType::bf16, plan::DType::f16})
    for (const Shape& shape : kShapes) {
      Case c(shape, random);
      c.how.products = Bf16Products::widened;
      SCOPED_TRACE(c.attributes());
      const NarrowRows q(dtype, c.q), k(dtype, c.k), v(dtype, c.v), dy(dtype, c.dy);
      const std::int64_t rows = Case::kHeads * shape.sharing * shape.queries;
      auto wide_room = scratch(c);
      auto y = unwritten(rows * shape.values), sums = unwritten(rows), other_sums = sums;
      attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), c.mask_or_none(), y.data(), sums.data(),
             wide_room.data());
      c.how.narrow = true;
      auto room = scratch(c);
      std::vector<float> none(y.size());
      NarrowRows rounded(dtype, none);
      attend(c.how, 0, c.tiles(), q.input(), k.input(), v.input(), c.mask_or_none(), rounded.output(),
             other_sums.data(), room.data());
      EXPECT_TRUE(rounded.is_rounded(y));
      EXPECT_TRUE(same_bits(sums, other_sums));

      const BothSlopes slopes = both_slopes(c, {&q, &k, &v, &dy}, y, sums, room);
      for (std::size_t i = 0; i < slopes.wide.size(); ++i)
        EXPECT_TRUE(slopes.narrow[i].is_rounded(slopes.wide[i])) << "qkv"[i];
    }
}

// Compares rows stored as bf16 with their expected values, within 1/64 of the largest.
void expect_bf16(const NarrowRows& found, const std::vector<float>& expected, std::string_view what) {
  std::vector<float> numbers(expected.size());
  widen(plan::DType::bf16, found.bytes.data(), numbers.data(), static_cast<std::int64_t>(numbers.size()));
  float largest = 0;
  for (const float x : expected) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_NEAR(numbers[i], expected[i], largest / 64) << what << " " << i;
}

// With bf16 instructions, weights and gradients are rounded too. Results do not depend on how tiles
// are grouped.
TEST(KernelsAttention, Bf16ProductsAreNearF32Results) {
  Random random(45);
  for (const Bf16Products way : {Bf16Products::avx512, Bf16Products::amx})
    for (const Shape& shape : kShapes) {
      if (!has(way)) continue;
      Case c(shape, random);
      SCOPED_TRACE(c.attributes());
      const NarrowRows q(plan::DType::bf16, c.q), k(plan::DType::bf16, c.k), v(plan::DType::bf16, c.v),
          dy(plan::DType::bf16, c.dy);
      const std::int64_t rows = Case::kHeads * shape.sharing * shape.queries;
      c.how.narrow = true;
      c.how.products = way;
      auto room = scratch(c);
      auto y = unwritten(rows * shape.values), sums = unwritten(rows), own_sums = sums;
      attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), c.mask_or_none(), y.data(), sums.data(),
             room.data());
      std::vector<float> none(y.size());
      NarrowRows rounded(plan::DType::bf16, none), apart = rounded;
      attend(c.how, 0, c.tiles(), q.input(), k.input(), v.input(), c.mask_or_none(), rounded.output(),
             own_sums.data(), room.data());
      for (std::int64_t tile = c.tiles(); tile-- > 0;)
        attend(c.how, tile, tile + 1, q.input(), k.input(), v.input(), c.mask_or_none(), apart.output(),
               own_sums.data(), room.data());
      EXPECT_EQ(apart.bytes, rounded.bytes);
      expect_bf16(rounded, y, "y");
      for (std::size_t i = 0; i < sums.size(); ++i)
        if (std::isfinite(sums[i]))
          ASSERT_NEAR(own_sums[i], sums[i], 1e-4);
        else
          ASSERT_EQ(own_sums[i], sums[i]);

      const BothSlopes slopes = both_slopes(c, {&q, &k, &v, &dy}, y, sums, room);
      for (std::size_t i = 0; i < slopes.wide.size(); ++i)
        expect_bf16(slopes.narrow[i], slopes.wide[i], i == 0 ? "dq" : i == 1 ? "dk" : "dv");
    }
}

// Masked keys do not matter, whatever their values; a NaN in a visible key propagates.
TEST(KernelsAttention, IgnoresMaskedKeys) {
  Random random(43);
  Case c({.queries = 4, .keys = 4, .inner = 3, .values = 2, .sharing = 1, .causal = true}, random);
  auto room = scratch(c);
  auto y = unwritten(16), sums = unwritten(8), other = unwritten(16);
  attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), nullptr, y.data(), sums.data(),
         room.data());
  for (std::size_t e = 0; e < 3; ++e) c.k[9 + e] = std::numeric_limits<float>::quiet_NaN();  // the last key
  attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), nullptr, other.data(), sums.data(),
         room.data());
  EXPECT_TRUE(std::equal(y.begin(), y.begin() + 6, other.begin()));
  EXPECT_TRUE(std::isnan(other[6]));

  const std::vector<std::uint8_t> none(8, 0);
  attend(c.how, 0, c.tiles(), c.q.data(), c.k.data(), c.v.data(), none.data(), other.data(), sums.data(),
         room.data());
  EXPECT_EQ(other, std::vector<float>(16, 0.0f));
  EXPECT_EQ(sums, std::vector<float>(8, kNever));
}

}  // namespace
}  // namespace weft::device::cpu
