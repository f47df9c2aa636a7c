#include "weft/rules/rule/run_instance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/mesh.h"
#include "weft/rules/rule/row_positions.h"

namespace weft::rule {
namespace {

using ops::Field;
using ops::Numbers;
using ops::Rounded;
using ops::Tensor;

// With a larger relative error, a number's difference is not meaningful.
constexpr double kDoubles = 1e-6, kSixteenBits = 0.1;

bool is_input(const plan::NodeView& node) { return &node.op() == &ops::input(); }

// draw(dtype, input) returns one element.
template <class T, class Draw>
std::vector<Tensor<T>> fill_inputs(const plan::Graph& graph, Draw draw) {
  std::vector<Tensor<T>> inputs;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (!is_input(node)) continue;
    const plan::Type type = node.result_type(0);
    Tensor<T>& tensor = inputs.emplace_back();
    for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
    tensor.data.resize(static_cast<std::size_t>(type.elements()));
    for (T& element : tensor.data) element = draw(type.dtype, inputs.size() - 1);
  }
  return inputs;
}

template <class T>
class Run {
 public:
  Run(const RuleInstance& instance, const plan::Graph& graph, Random& random, Numbers<T> numbers)
      : instance_(instance), graph_(graph), random_(random), numbers_(numbers) {}

  // Runs both sides. Different layouts on the two sides are a difference.
  Result<InstanceRun<T>> run(std::vector<Tensor<T>> inputs) {
    made_.inputs = std::move(inputs);
    WEFT_TRY_STATUS(instance_.distributed() ? on_mesh() : on_one_device());
    return std::move(made_);
  }

 private:
  std::size_t outputs() const { return graph_.outputs().size() / 2; }

  Status on_one_device() {
    std::map<std::string_view, const Tensor<T>*> tensors;
    std::size_t next = 0;
    for (std::size_t id = 0; id < graph_.node_count(); ++id) {
      const plan::NodeView node = graph_.view(plan::NodeId(id));
      if (is_input(node)) tensors.emplace(node.word(0), &made_.inputs[next++]);
    }
    WEFT_TRY(all, ops::interpret<T>(
                      graph_, [&](std::string_view name) { return tensors.at(name); }, numbers_));
    for (std::size_t k = 0; k < all.size(); ++k)
      (k < outputs() ? made_.left : made_.right).push_back(std::move(all[k]));
    return {};
  }

  Status on_mesh() {
    std::map<std::string_view, spmd::MeshTensor<T>> held;
    std::size_t next = 0;
    for (std::size_t id = 0; id < graph_.node_count(); ++id) {
      const plan::NodeView node = graph_.view(plan::NodeId(id));
      if (!is_input(node)) continue;
      WEFT_TRY(shares, spmd::split_for_mesh<T>(made_.inputs[next++], node.result_type(0),
                                               instance_.layouts[node.result(0).value], instance_.mesh,
                                               numbers_, random_));
      held.emplace(node.word(0), std::move(shares));
    }
    WEFT_TRY(all,
             spmd::interpret_on_mesh<T>(
                 graph_, instance_.mesh, [&](std::string_view name) { return &held.at(name); }, numbers_));
    for (std::size_t k = 0; k < outputs(); ++k) {
      const spmd::MeshTensor<T>&left = all[k], &right = all[k + outputs()];
      if (left.layout != right.layout) {
        made_.difference =
            Difference{static_cast<std::int32_t>(k), -1, print(left.layout, instance_.mesh, graph_.symbols()),
                       print(right.layout, instance_.mesh, graph_.symbols())};
        return {};
      }
      WEFT_TRY(whole_left, whole(left, k));
      WEFT_TRY(whole_right, whole(right, k));
      made_.left.push_back(std::move(whole_left));
      made_.right.push_back(std::move(whole_right));
    }
    return {};
  }

  // The ranks' shares as one tensor; a varying value is the concatenation of all ranks' values.
  Result<Tensor<T>> whole(const spmd::MeshTensor<T>& held, std::size_t output) {
    const bool varies =
        std::ranges::any_of(held.layout.axes, [](const plan::AxisLayout& axis) { return axis.is_varying(); });
    if (!varies) {
      const plan::Type type = graph_.type(graph_.outputs()[output].value);
      WEFT_TRY(joined, spmd::join_from_mesh<T>(held, type, instance_.mesh, numbers_));
      if constexpr (std::is_same_v<T, Rounded>)
        for (T& element : joined.data) element = numbers_.stored(element, type.dtype);
      return joined;
    }
    Tensor<T> all;
    for (const Tensor<T>& rank : held.ranks)
      all.data.insert(all.data.end(), rank.data.begin(), rank.data.end());
    all.sizes = {all.elements()};
    return all;
  }

  const RuleInstance& instance_;
  const plan::Graph& graph_;
  Random& random_;
  Numbers<T> numbers_;
  InstanceRun<T> made_;
};

// Compares all outputs. Returns the first difference that rounding cannot explain.
std::optional<Difference> compare_all(const InstanceRun<Rounded>& run, RealEvidence& evidence,
                                      double telling) {
  std::optional<Difference> difference;
  for (std::size_t k = 0; k < run.left.size(); ++k) {
    const auto at = add_compared(run.left[k], run.right[k], evidence, telling);
    if (!at || difference) continue;
    difference = Difference{static_cast<std::int32_t>(k), static_cast<std::int64_t>(*at),
                            shown(run.left[k].data[*at]), shown(run.right[k].data[*at])};
  }
  evidence.conclusive = std::min<std::int64_t>(evidence.conclusive, 1);
  return difference;
}

// The largest relative difference; infinity if undefined. Numbers that are 0 in f32 count as equal:
// doubles near underflow have few digits left.
double largest_apart(const InstanceRun<Rounded>& run) {
  constexpr double kNothing = 1e-60;
  double most = 0;
  for (std::size_t k = 0; k < run.left.size(); ++k)
    for (std::size_t i = 0; i < run.left[k].data.size(); ++i) {
      const double a = run.left[k].data[i].value, b = run.right[k].data[i].value;
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a) < kNothing && std::abs(b) < kNothing) continue;
      const double apart = std::abs(a - b) / std::max(std::abs(a), std::abs(b));
      most = std::max(most, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    }
  return most;
}

// Whether the sides are as close as f32 allows: in exp(s * c), the last bit of s is amplified by s
// * c, up to 745 in a double. Constants with fewer digits change results fundamentally.
bool is_small(const InstanceRun<Rounded>& run) {
  constexpr double kDigitsLost = 0x1p-12;
  return largest_apart(run) <= kDigitsLost;
}

void find_difference(InstanceRun<Field>& run) {
  for (std::size_t k = 0; !run.difference && k < run.left.size(); ++k)
    for (std::size_t i = 0; i < run.left[k].data.size(); ++i) {
      if (run.left[k].data[i] == run.right[k].data[i]) continue;
      run.difference = Difference{static_cast<std::int32_t>(k), static_cast<std::int64_t>(i),
                                  fmt::format("{}", run.left[k].data[i].residue()),
                                  fmt::format("{}", run.right[k].data[i].residue())};
      break;
    }
}

}  // namespace

void RealEvidence::add(const RealEvidence& other) {
  conclusive += other.conclusive;
  same &= other.same;
  loses |= other.loses;
  apart = std::max(apart, other.apart);
}

std::optional<std::size_t> add_compared(const Tensor<Rounded>& left, const Tensor<Rounded>& right,
                                        RealEvidence& evidence, double telling) {
  std::optional<std::size_t> different;
  for (std::size_t i = 0; i < left.data.size(); ++i) {
    const Rounded a = left.data[i], b = right.data[i];
    const ops::Agreement agreement = ops::compare(a, b);
    if (agreement == ops::Agreement::same || agreement == ops::Agreement::close) ++evidence.conclusive;
    if (agreement == ops::Agreement::same) continue;
    evidence.same &=
        a.value == b.value || a.is_lost() || b.is_lost() || (std::isnan(a.value) && std::isnan(b.value));
    // If a number is mostly rounding error, its difference is not meaningful.
    const double scale = std::max(std::abs(a.value), std::abs(b.value));
    if (agreement != ops::Agreement::different && a.error + b.error <= telling * scale)
      evidence.apart = std::max(evidence.apart, std::abs(a.value - b.value) / scale);
    if (agreement == ops::Agreement::different && !different) different = i;
  }
  return different;
}

std::string shown(Rounded value) {
  if (value.is_undefined()) return "undefined";
  if (value.is_too_large()) return "too large";
  return fmt::format("{}", value.value);
}

bool has_cast(const plan::Graph& graph) {
  for (std::size_t id = 0; id < graph.node_count(); ++id)
    if (graph.node(plan::NodeId(id)).op == &ops::cast()) return true;
  return false;
}

bool is_rounded(const plan::Graph& graph) {
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    for (std::size_t k = 0; k < node.result_count(); ++k) switch (node.result_type(k).dtype) {
        case plan::DType::bf16:
        case plan::DType::f16:
        case plan::DType::f8e4m3:
        case plan::DType::f8e5m2:
        case plan::DType::i32: return true;
        default: break;
      }
  }
  return has_cast(graph);
}

RealInputs draw_inputs(const RuleInstance& instance, const RealDraws& draws, Random& random) {
  return fill_inputs<Rounded>(instance.graph, [&](plan::DType dtype, std::size_t input) {
    return Rounded{draws.next(dtype, random, input), 0};
  });
}

Result<RealRun> run_real(const RuleInstance& instance, const RealDraws& draws, Random& random) {
  return run_real(instance, draw_inputs(instance, draws, random), random);
}

Result<RealRun> run_real(const RuleInstance& instance, RealInputs inputs, Random& random) {
  ops::RoundedNotes notes;
  const std::uint64_t key = random.next();
  const auto run_on = [&](const plan::Graph& graph, bool rounds) {
    notes.doubt = false;
    return Run<Rounded>(instance, graph, random, {.notes = &notes, .rounds = rounds, .key = key}).run(inputs);
  };
  WEFT_TRY(run, run_on(instance.judged_graph(), false));
  RealRun made;
  static_cast<InstanceRun<Rounded>&>(made) = std::move(run);
  if (made.difference) return made;
  RealEvidence found;
  auto difference = compare_all(made, found, kDoubles);
  // A comparison that rounding may have flipped explains any difference.
  if (!notes.doubt) made.difference = std::move(difference);
  if (notes.doubt || made.difference) found.conclusive = 0;
  if (made.difference && instance.held && instance.judges_rounded_constants && is_small(made)) {
    // Whether the difference comes only from rounding a constant: run with the exact constants.
    WEFT_TRY(written, run_on(instance.graph, false));
    RealEvidence as_written;
    constexpr double kLastBit = 0x1p-44;  // an exact 0.1 is rounded to a double too
    const bool same = !compare_all(written, as_written, kDoubles) || largest_apart(written) <= kLastBit;
    if (same && !notes.doubt) {
      made.difference.reset();
      found = as_written;
      found.conclusive = 1;
      found.same = false;
      found.loses = true;
      found.apart = largest_apart(made);
    }
  }
  made.evidence = found;
  if (made.difference || !is_rounded(instance.graph)) return made;

  WEFT_TRY(short_run, run_on(instance.judged_graph(), true));
  RealEvidence after;
  difference = compare_all(short_run, after, kSixteenBits);
  if (difference && instance.held && instance.judges_rounded_constants && is_small(short_run))
    difference.reset();
  if (difference) {
    const auto output = static_cast<std::size_t>(difference->output),
               at = static_cast<std::size_t>(difference->at);
    // Overflow of 16 bits by another order of the same operations counts as rounding.
    const bool too_large =
        short_run.left[output].data[at].is_overrun() || short_run.right[output].data[at].is_overrun();
    // Without a cast, a comparison flipped by rounding is harmless; with one, the cast must not be
    // removed.
    if (too_large || (notes.doubt && !has_cast(instance.graph))) difference.reset();
  }
  if (difference) {
    made.left = std::move(short_run.left);
    made.right = std::move(short_run.right);
    made.difference = std::move(difference);
    return made;
  }
  made.evidence.loses |= !after.same && found.same;
  made.evidence.same &= after.same;
  made.evidence.apart = std::max(found.apart, after.apart);
  return made;
}

Result<InstanceRun<Field>> run_field(const RuleInstance& instance, Random& random) {
  Numbers<Field> numbers;
  numbers.key = random.next();
  // Random field elements rarely name a row or class, so draw small ones; but not always, since
  // nonzero polynomials may vanish on small numbers.
  const RowUses uses = row_uses(instance.graph);
  const bool places = random.below(4) != 0;
  const auto inputs = fill_inputs<Field>(instance.graph, [&](plan::DType dtype, std::size_t input) {
    if (places && uses.inputs[input]) return numbers.from_integer(random.between(-1, uses.largest));
    return Field(dtype == plan::DType::boolean ? random.below(2) : random.next());
  });
  WEFT_TRY(run, Run<Field>(instance, instance.judged_graph(), random, numbers).run(inputs));
  find_difference(run);
  if (!run.difference || !instance.held || !instance.judges_rounded_constants) return run;
  WEFT_TRY(written, Run<Field>(instance, instance.graph, random, numbers).run(inputs));
  find_difference(written);
  if (written.difference) return run;
  run.difference.reset();
  run.by_constants = true;
  return run;
}

}  // namespace weft::rule
