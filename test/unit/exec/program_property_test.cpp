// Random plans, run by kernels and by definition. Fusion, layouts, buffer sharing and dependencies
// must not change results.
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/memory/check.h"

namespace weft::exec {
namespace {

using plan::Dim;
using plan::ValueId;

class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed) {
    graph_.name = "random";
    for (const char* name : {"a", "b", "c", "d"}) indices_.push_back(graph_.symbol(name));
    for (const Symbol index : indices_) sizes_[index] = random_.between(1, 6);
    for (int i = 0; i < 4; ++i) {
      const auto type = *graph_.intern_type(plan::DType::f32, some_dims());
      const std::string name = "x" + std::to_string(i);
      keep(i % 2 == 0 ? ops::add_input(graph_, name, type) : ops::add_parameter(graph_, name, type));
    }
  }

  plan::Graph make(int nodes) {
    for (int i = 0; i < nodes; ++i) add();
    for (int i = 0; i < 3; ++i) graph_.add_output(graph_.symbol("y" + std::to_string(i)), any());
    graph_.add_output(graph_.symbol("last"), values_.back());
    return std::move(graph_);
  }

 private:
  ValueId any() {
    // Prefers later values: plans are deep rather than wide.
    const std::size_t from = random_.below(3) == 0 ? 0 : values_.size() / 2;
    return values_[from + random_.below(values_.size() - from)];
  }

  std::vector<Dim> some_dims() {
    std::vector<Dim> dims;
    for (const Symbol index : shuffled(indices_))
      if (random_.below(2) == 0) dims.push_back({index, sizes_[index]});
    return dims;
  }

  std::vector<Symbol> shuffled(std::vector<Symbol> list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
    return list;
  }

  std::vector<Symbol> indices_of(ValueId value) { return ops::indices_of(graph_.type(value).dims); }

  std::vector<Symbol> subset(const std::vector<Symbol>& list, bool not_empty = false) {
    std::vector<Symbol> kept;
    for (const Symbol index : shuffled(list))
      if (random_.below(2) == 0) kept.push_back(index);
    if (kept.empty() && not_empty) kept.push_back(list[random_.below(list.size())]);
    return kept;
  }

  void keep(Result<ValueId> made) {
    if (!made.ok()) return;
    constexpr std::int64_t kMost = 1500;
    if (graph_.type(*made).elements() <= kMost && graph_.type(*made).dtype == plan::DType::f32)
      values_.push_back(*made);
  }

  // Keeps numbers near one after sums.
  void keep_small(Result<ValueId> made) {
    if (made.ok()) keep(ops::add_pointwise(graph_, ops::tanh(), {*made}));
  }

  void add() {
    const std::array<const ops::Operator*, 6> unary = {&ops::relu(), &ops::tanh(),      &ops::sigmoid(),
                                                       &ops::neg(),  &ops::gelu_tanh(), &ops::sin()};
    const std::array<const ops::Operator*, 4> binary = {&ops::add(), &ops::sub(), &ops::mul(),
                                                        &ops::maximum()};
    const ValueId x = any();
    switch (random_.below(13)) {
      case 0:
      case 1: return keep(ops::add_pointwise(graph_, *unary[random_.below(unary.size())], {x}));
      case 2:
      case 3:
      case 4:
        return keep_small(ops::add_pointwise(graph_, *binary[random_.below(binary.size())], {x, any()}));
      case 5: {
        // Compared with a number that none is close to: rounding must not decide.
        const auto limit = ops::add_constant(graph_, 0.1234567, plan::DType::f32);
        const auto mask = ops::add_pointwise(graph_, ops::greater(), {x, *limit});
        return keep(ops::add_pointwise(graph_, ops::select(), {*mask, any(), any()}));
      }
      case 6: {
        const std::array<std::string_view, 4> kinds = {"sum", "mean", "max", "min"};
        return keep_small(ops::add_reduce(graph_, kinds[random_.below(4)], x, subset(indices_of(x))));
      }
      case 7:
      case 8: {
        const ValueId y = any();
        std::vector<Symbol> all = indices_of(x);
        for (const Symbol index : indices_of(y))
          if (std::ranges::find(all, index) == all.end()) all.push_back(index);
        return keep_small(ops::add_contract(graph_, {x, y}, subset(all)));
      }
      case 9: {
        if (indices_of(x).empty()) return;
        const std::vector<Symbol> over = subset(indices_of(x), true);
        if (random_.below(2) == 0) return keep(ops::add_softmax(graph_, x, over));
        // A large epsilon: nearly equal numbers, scaled to deviation 1, would be mostly rounding
        // error.
        const auto norm = ops::add_layer_norm(graph_, x, over, 0.1);
        if (norm.ok()) keep(norm->y);
        return;
      }
      case 10: return keep(ops::add_transpose(graph_, x, shuffled(indices_of(x))));
      case 11: {
        // A kind of causal mask: positions are never stored.
        if (graph_.type(x).rank() < 2) return;
        const std::vector<Symbol> two = shuffled(indices_of(x));
        const auto first = ops::add_position(graph_, {two[0], graph_.type(x).size_of(two[0])});
        const auto second = ops::add_position(graph_, {two[1], graph_.type(x).size_of(two[1])});
        const auto mask = ops::add_pointwise(graph_, ops::less_equal(), {*first, *second});
        const auto zero = ops::add_constant(graph_, 0.5, plan::DType::f32);
        return keep(ops::add_pointwise(graph_, ops::select(), {*mask, x, *zero}));
      }
      default: {
        if (graph_.type(x).rank() == 0) return;
        const Symbol along = indices_of(x)[random_.below(graph_.type(x).rank())];
        const std::int64_t size = graph_.type(x).size_of(along);
        if (size < 2) return;
        // A slice, padded with zeros, so that indices keep their sizes.
        const std::int64_t begin = random_.between(0, size - 2), end = random_.between(begin + 1, size);
        const auto part = ops::add_slice(graph_, x, along, begin, end);
        if (part.ok()) keep(ops::add_pad(graph_, *part, along, begin, size - end));
      }
    }
  }

  Random random_;
  plan::Graph graph_;
  std::vector<Symbol> indices_;
  std::map<Symbol, std::int64_t> sizes_;
  std::vector<ValueId> values_;
};

TEST(ProgramProperty, RandomPlansMatchTheirDefinition) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const plan::Graph graph = RandomPlan(seed).make(4 + static_cast<int>(seed % 40));
    Random random(seed);
    const Tensors sources = random_sources(graph, 2, random);
    const auto rank = start(graph, 1 + static_cast<int>(seed % 3));
    fill(*rank, sources);
    ASSERT_TRUE(rank->step().ok());
    ASSERT_TRUE(rank->step().ok());  // a second step must not depend on leftovers of the first
    const auto& program = rank->program();
    expect_near(contents(*rank), interpreted(graph, sources), 1e-3, 1e-4,
                "seed " + std::to_string(seed) + "\n" + plan::print(graph) + program::print(program));
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_GE(program.work_bytes, program.work_lower_bound);
  }
}

}  // namespace
}  // namespace weft::exec
