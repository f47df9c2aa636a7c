// read(print(g)) = g, for random plans.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"

namespace weft::plan {
namespace {

// A plan grown by adding whatever is valid: sources, pointwise operators, contractions, windows,
// views, under scopes and labels with unusual names, in all phases.
class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed) {
    graph.name = pick({"m", "a plan", "\"quoted\"", "back\\slash"});
    for (int i = 0; i < 3; ++i) add_source();
    const std::int64_t nodes = random_.between(0, 40);
    for (std::int64_t i = 0; i < nodes; ++i) add_node();
    const std::int64_t outputs = random_.between(0, 3);
    for (std::int64_t i = 0; i < outputs; ++i)
      if (random_.below(2) == 0)
        graph.add_output(graph.symbol(fmt::format("out {}", i)), any_value());
      else
        graph.add_update(fmt::format("source {}", i), any_value());
  }

  Graph graph;

 private:
  std::string_view pick(std::initializer_list<std::string_view> words) {
    return words.begin()[random_.below(words.size())];
  }
  ValueId any_value() { return ValueId(random_.below(graph.value_count())); }
  Phase any_phase() { return static_cast<Phase>(random_.below(phase_names().size())); }
  Symbol any_index() { return graph.symbol(pick({"b", "s", "d", "h", "odd name", "3d", "\xc3\xa9"})); }

  void move_somewhere() {
    if (random_.below(3) == 0) {
      ScopeId parent =
          scopes_.empty() || random_.below(2) ? ScopeId() : scopes_[random_.below(scopes_.size())];
      scopes_.push_back(graph.add_scope(
          {parent,
           graph.symbol(pick({"block", "a.b", "7", "x y"}) == "7" ? fmt::format("l{}", scopes_.size())
                                                                  : fmt::format("s.{}", scopes_.size())),
           static_cast<std::int32_t>(random_.between(-1, 3))}));
    }
    graph.set_scope(scopes_.empty() || random_.below(2) ? ScopeId() : scopes_[random_.below(scopes_.size())]);
    graph.set_label(random_.below(3) ? graph.symbol(pick({"q", "k", "two words", "12", ""})) : Symbol());
    graph.set_when({any_phase()});
  }

  // A node does not read from a later phase than its own.
  void run_after(std::initializer_list<ValueId> operands) {
    for (const ValueId operand : operands)
      graph.set_when(std::max(graph.when(), graph.node(graph.value(operand).producer).when));
  }

  void add_source() {
    move_somewhere();
    std::vector<Dim> dims;
    const std::int64_t rank = random_.between(0, 4);
    for (std::int64_t i = 0; i < rank; ++i) {
      const Dim dim{any_index(), random_.between(1, 4)};
      bool known = false;
      for (const Dim& other : dims) known = known || other.index == dim.index;
      if (!known) dims.push_back(dim);
    }
    const auto dtype = kAllDTypes[random_.below(kAllDTypes.size())];
    const TypeId type = *graph.intern_type(dtype, dims);
    const std::string name = fmt::format("source {}", sources_++);
    if (random_.below(2))
      (void)ops::add_input(graph, name, type);
    else
      (void)ops::add_parameter(graph, name, type,
                               {.kind = "normal", .a = random_.uniform(), .b = 1e-300 * random_.uniform()});
  }

  // Most random nodes do not type-check; those add nothing, which is also a property of add().
  void add_node() {
    move_somewhere();
    const ValueId x = any_value(), y = any_value();
    run_after({x, y});
    const Type type = graph.type(x);
    std::vector<Symbol> kept;
    for (const Dim& dim : type.dims)
      if (random_.below(2)) kept.push_back(dim.index);
    switch (random_.below(10)) {
      case 0: (void)ops::add_pointwise(graph, ops::add(), {x, y}); break;
      case 1: (void)ops::add_pointwise(graph, ops::exp(), {x}); break;
      case 2: (void)ops::add_contract(graph, {x, y}, kept); break;
      case 3: (void)ops::add_reduce(graph, "max", x, kept); break;
      case 4: (void)ops::add_layer_norm(graph, x, kept, 1e-12); break;
      case 5:
        (void)ops::add_constant(
            graph, random_.below(4) ? random_.uniform() * 1e10 : -std::numeric_limits<double>::infinity(),
            DType::f32);
        break;
      case 6: (void)ops::add_cast(graph, x, kAllDTypes[random_.below(kAllDTypes.size())]); break;
      case 7:
        if (!kept.empty()) (void)ops::add_slice(graph, x, kept[0], 0, random_.between(1, 3));
        break;
      case 8: (void)ops::add_gather(graph, x, y, any_index()); break;
      case 9: add_source(); break;
    }
  }

  Random random_;
  std::vector<ScopeId> scopes_;
  int sources_ = 0;
};

RC_GTEST_PROP(PlanText, ReadsWhatItPrints, (std::uint64_t seed)) {
  const RandomPlan random(seed);
  const std::string text = print(random.graph);
  auto read_back = read(text, ops::all());
  RC_ASSERT(read_back.ok());
  RC_ASSERT(print(*read_back) == text);
  RC_ASSERT(structural_hash(*read_back) == structural_hash(random.graph));
  RC_ASSERT(verify(random.graph).ok());
  RC_ASSERT(verify(*read_back).ok());
  for (std::size_t o = 0; o < random.graph.outputs().size(); ++o)
    RC_ASSERT(read_back->updated(read_back->outputs()[o]) == random.graph.updated(random.graph.outputs()[o]));
  const Graph clone = random.graph.clone();
  RC_ASSERT(print(clone) == text);
  for (std::size_t n = 0; n < random.graph.node_count(); ++n) {
    RC_ASSERT(read_back->node(NodeId(n)).when == random.graph.node(NodeId(n)).when);
    RC_ASSERT(clone.node(NodeId(n)).when == random.graph.node(NodeId(n)).when);
  }
}

// A single forward node that reads from the backward pass must be rejected.
RC_GTEST_PROP(PlanText, RejectsReadsFromALaterPhase, (std::uint64_t seed)) {
  RandomPlan random(seed);
  const ValueId last(random.graph.value_count() - 1);
  const Phase made = random.graph.phase(random.graph.value(last).producer);
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
    Graph graph = random.graph.clone();
    graph.set_when({phase});
    // To another dtype: a cast to its own dtype would add no node.
    RC_ASSERT(
        ops::add_cast(graph, last, graph.type(last).dtype == DType::f64 ? DType::f32 : DType::f64).ok());
    RC_ASSERT(verify(graph).ok() == (made <= phase));
    RC_ASSERT(read(print(graph), ops::all()).ok() == (made <= phase));
  }
}

TEST(PlanVerify, NamesTheNodeThatReadsFromALaterPhase) {
  const auto fault = [](Phase made, Phase reading) {
    Graph graph;
    graph.set_when({made});
    const ValueId x = *ops::add_input(graph, "x", *graph.intern_type(DType::f32, {}));
    graph.set_when({reading});
    graph.set_label(graph.symbol("h"));
    (void)ops::add_pointwise(graph, ops::exp(), {x});
    const Status status = verify(graph);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(
      fault(Phase::backward, Phase::forward),
      "node %1 (exp at h): runs in the forward phase and reads %0, which is made in the backward phase");
  EXPECT_EQ(fault(Phase::update, Phase::forward),
            "node %1 (exp at h): runs in the forward phase and reads %0, which is made in the update phase");
  EXPECT_EQ(fault(Phase::update, Phase::backward),
            "node %1 (exp at h): runs in the backward phase and reads %0, which is made in the update phase");
  EXPECT_EQ(fault(Phase::forward, Phase::backward), "ok");
  EXPECT_EQ(fault(Phase::backward, Phase::update), "ok");
}

// Removing, repeating or changing bytes gives an error or another plan, never a crash.
RC_GTEST_PROP(PlanText, SurvivesDamage, (std::uint64_t seed, std::uint16_t place, std::uint8_t byte)) {
  std::string text = print(RandomPlan(seed).graph);
  text[place % text.size()] = static_cast<char>(byte);
  if (auto damaged = read(text, ops::all()); damaged.ok()) {
    const Status verified = verify(*damaged);
    const bool answered = verified.ok() || !verified.error().message.empty();
    RC_ASSERT(answered);
  }
  text.resize(place % text.size());
  (void)read(text, ops::all());
}

TEST(PlanHash, IgnoresOrderLabelsAndDeadNodes) {
  const auto hash = [](std::string_view text) { return structural_hash(*read(text, ops::all())); };
  const Digest one = hash(
      "plan a\n%0 = input {name=x, type=f32[b=2]}\n%1 = input {name=y, type=f32[b=2]}\n"
      "%2 = exp %0\n%3 = add %2, %1 @sum\nreturn r=%3\n");
  const Digest renumbered = hash(
      "plan b\n%0 = input {name=y, type=f32[b=2]}\n%1 = input {name=x, type=f32[b=2]}\n"
      "%2 = log %0\n%3 = exp %1\n%4 = add %3, %0\nreturn r=%4\n");
  const Digest other = hash(
      "plan a\n%0 = input {name=x, type=f32[b=2]}\n%1 = input {name=y, type=f32[b=2]}\n"
      "%2 = exp %0\n%3 = add %1, %2\nreturn r=%3\n");
  EXPECT_EQ(one, renumbered);
  EXPECT_NE(one, other);  // addition is not known to commute here: that is a rule's business
  EXPECT_EQ(one.hex(), "6a0128a74618ff5cfce596365609c2c2");  // the same on every machine and in every run
}

}  // namespace
}  // namespace weft::plan
