// input, parameter, state: values that come from outside the plan.
//
//   %0 = input {name=x, type=f32[b=64,d=784]}
//   %1 = parameter {name=w, type=f32[d=784,f=512], init=normal, b=0.02}
//
// An input is new in every step. A parameter is trained. A state is carried from step to step but
// not trained: running statistics, an optimizer's moments. `a` and `b` are the arguments of `init`:
// the value of constant, mean and deviation of normal, low and high of uniform. On a mesh, `layout`
// states how the ranks hold the value: "sliced(b) on gpu".
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sources.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr plan::AttributeSpec kNameSpec = {"name", AttributeKind::word};
constexpr plan::AttributeSpec kTypeSpec = {"type", AttributeKind::type};
constexpr plan::AttributeSpec kLayoutSpec = {"layout", AttributeKind::word, false, 0, ""};
constexpr std::array<plan::AttributeSpec, 3> kGiven = {kNameSpec, kTypeSpec, kLayoutSpec};
constexpr std::array<plan::AttributeSpec, 6> kInitialized = {
    {kNameSpec,
     kTypeSpec,
     {"init", AttributeKind::word, false, 0, "zeros"},
     {"a", AttributeKind::real, false},
     {"b", AttributeKind::real, false},
     kLayoutSpec}};
constexpr std::size_t kName = 0, kType = 1, kInit = 2, kA = 3, kB = 4;

constexpr std::array<std::string_view, 5> kInitials = {"zeros", "ones", "constant", "normal", "uniform"};

Status check_initial(std::string_view kind, double a, double b) {
  if (std::ranges::find(kInitials, kind) == kInitials.end())
    return user_error(fmt::format("unknown initial value '{}'", kind), did_you_mean(kind, kInitials));
  if (kind == "normal" && b < 0)
    return user_error(fmt::format("normal needs a deviation of at least 0, found {}", b));
  if (kind == "uniform" && b < a)
    return user_error(fmt::format("uniform needs low <= high, found {} and {}", a, b));
  return {};
}

class Source final : public OperatorOf<Source> {
 public:
  Source(std::string_view name, bool has_initial) : name_(name), has_initial_(has_initial) {}

  std::string_view name() const override { return name_; }
  std::span<const plan::AttributeSpec> attributes() const override {
    if (has_initial_) return kInitialized;
    return kGiven;
  }
  std::size_t min_inputs() const override { return 0; }
  std::size_t max_inputs() const override { return 0; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    if (node.word(kName).empty()) return user_error("a source needs a name");
    if (has_initial_) WEFT_TRY_STATUS(check_initial(node.word(kInit), node.real(kA), node.real(kB)));
    WEFT_TRY_STATUS(
        plan::check_layout(node.word(attributes().size() - 1), node.type(kType), node.graph().symbols()));
    return results.add(node.type(kType));
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView&) const override { return {}; }

  template <class T>
  void evaluate(Evaluation<T>&) const {
    WEFT_CHECK(false, "a source does not compute its value");
  }

 private:
  std::string_view name_;
  bool has_initial_;
};

}  // namespace

// Called for every node, often: comparing addresses is fast.
bool is_source(const plan::Operator& op) { return &op == &input() || &op == &parameter() || &op == &state(); }

std::string_view layout_of(const NodeView& source) {
  return source.word(source.node().attributes.size() - 1);
}

const Operator& input() {
  static const Source op("input", false);
  return op;
}

const Operator& parameter() {
  static const Source op("parameter", true);
  return op;
}

const Operator& state() {
  static const Source op("state", true);
  return op;
}

}  // namespace weft::ops
