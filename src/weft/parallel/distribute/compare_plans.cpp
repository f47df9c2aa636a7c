#include "weft/parallel/distribute/compare_plans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "weft/parallel/distribute/draw_sources.h"
#include "weft/parallel/distribute/meaning.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using ops::Field;
using ops::Tensor;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;
using spmd::MeshTensor;

constexpr double kAlike = 1e-9;        // relative to a tensor's largest element
constexpr double kRounding = 0x1p-50;  // relative change of the operands that measures the effect of rounding
constexpr double kTimesRounding = 1e3;
constexpr std::array<double, 3> kPeaks = {40, 6, 1};  // exp(40 * 40) overflows

double largest(const Tensor<double>& tensor) {
  double found = 0;
  for (const double x : tensor.data)
    if (std::isfinite(x)) found = std::max(found, std::abs(x));
  return found;
}

// The largest difference between two tensors; infinite where only one of them is finite.
double distance(const Tensor<double>& a, const Tensor<double>& b) {
  if (a.data.size() != b.data.size()) return std::numeric_limits<double>::infinity();
  double found = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double x = a.data[i], y = b.data[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::abs(x - y);
    found = std::max(found, std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity());
  }
  return found;
}

bool alike(const Tensor<Field>& a, const Tensor<Field>& b) { return a.data == b.data; }
bool alike(const Tensor<double>& a, const Tensor<double>& b) { return distance(a, b) <= kAlike * largest(b); }

template <class T>
class Comparison {
 public:
  Comparison(const ComparedPlans& plans, Random& random)
      : plans_(plans),
        plan_(*plans.plan),
        random_(random),
        leads_to_(whole_numbers({plans.original, plans.graph})) {}

  Result<std::optional<Disagreement>> run(std::int64_t& elements) {
    WEFT_TRY(expected, draw_and_run());
    WEFT_TRY_STATUS(cut_sources());
    WEFT_TRY(held, spmd::interpret_on_mesh<T>(asked_of_ranks(), plan_.mesh, *plans_.ranks, mesh_sources(),
                                              numbers_, kMostProvenElements));
    WEFT_TRY_STATUS(see_own(held));
    std::map<std::string_view, std::size_t> places;
    for (std::size_t o = 0; o < plans_.original->outputs().size(); ++o)
      places.emplace(plans_.original->text(plans_.original->outputs()[o].name), o);
    std::vector<std::size_t> differ;  // outputs of the single-device plan
    std::vector<double> apart;
    for (std::size_t o = 0; o < graph().outputs().size(); ++o) {
      const plan::Output& output = graph().outputs()[o];
      const auto found = places.find(graph().text(output.name));
      if (found == places.end())
        return user_error(
            fmt::format("the distributed plan has an output {} that the plan of one device does not have",
                        graph().text(output.name)));
      const std::size_t place = found->second;
      const Result<Tensor<T>> joined =
          spmd::join_from_mesh<T>(held[o], graph().type(output.value), plan_.mesh, numbers_);
      elements += expected[place].elements();
      if (joined.ok() && alike(*joined, expected[place])) continue;
      differ.push_back(place);
      if constexpr (std::is_same_v<T, double>)
        apart.push_back(joined.ok() ? distance(*joined, expected[place])
                                    : std::numeric_limits<double>::infinity());
    }
    if (plans_.differing != nullptr)
      for (const std::size_t o : differ)
        plans_.differing->emplace(plans_.original->text(plans_.original->outputs()[o].name));
    if (differ.empty() || plans_.differing != nullptr) return std::optional<Disagreement>();
    if constexpr (std::is_same_v<T, double>) {
      WEFT_TRY(is_rounding, rounding_explains(expected, differ, apart));
      if (is_rounding) return std::optional<Disagreement>();
    }
    return locate();
  }

 private:
  const plan::Graph& graph() const { return *plans_.graph; }
  // The plan with its own decisions appended to its outputs.
  const plan::Graph& asked_of_ranks() const { return plans_.own != nullptr ? plans_.own->asked() : graph(); }
  using Whole = std::map<std::string, Tensor<T>, std::less<>>;

  Result<std::vector<Tensor<T>>> whole_run(const plan::Graph& plan, const Whole& values) const {
    const ops::Sources<T> sources = [&](std::string_view name) -> const Tensor<T>* {
      const auto found = values.find(name);
      return found == values.end() ? nullptr : &found->second;
    };
    return ops::interpret<T>(plan, sources, numbers_, kMostProvenElements);
  }
  spmd::MeshSources<T> mesh_sources() const {
    return [this](std::string_view name) -> const MeshTensor<T>* {
      const auto found = cut_.find(name);
      return found == cut_.end() ? nullptr : &found->second;
    };
  }

  // Over the field, draws values that show a new decision outcome. In floats, uses the highest
  // peaks that leave most results finite: deep models overflow early.
  Result<std::vector<Tensor<T>>> draw_and_run() {
    if constexpr (std::is_same_v<T, Field>) {
      const auto draw = [&](Ties ties) -> Result<std::vector<Tensor<T>>> {
        numbers_.key = balanced_key(random_);
        WEFT_TRY_STATUS(draw_sources({.ties = ties}));
        return whole_run(plans_.choices != nullptr ? plans_.choices->asked() : *plans_.original, whole_);
      };
      if (plans_.choices == nullptr) return draw(Ties::none);
      return search_choices(*plans_.choices, draw);
    } else {
      for (const double peak : kPeaks) {
        WEFT_TRY_STATUS(draw_sources({.peak = peak}));
        WEFT_TRY(expected, whole_run(*plans_.original, whole_));
        if (peak == kPeaks.back() || mostly_numbers(expected)) return expected;
      }
      return user_error("no values were sampled");
    }
  }
  static bool mostly_numbers(const std::vector<Tensor<T>>& tensors) {
    std::int64_t numbers = 0, all = 0;
    for (const Tensor<T>& tensor : tensors) {
      all += tensor.elements();
      numbers += std::ranges::count_if(tensor.data, [](T x) { return std::isfinite(x); });
    }
    return 2 * numbers >= all;
  }

  // Records the plan's own decisions as its ranks computed them.
  Status see_own(const std::vector<MeshTensor<T>>& held) const {
    if constexpr (std::is_same_v<T, Field>) {
      if (plans_.own == nullptr || plans_.own->none()) return {};
      Choices::Values values(held.size());
      for (std::size_t o = graph().outputs().size(); o < held.size(); ++o) {
        const plan::Type type = asked_of_ranks().type(asked_of_ranks().outputs()[o].value);
        WEFT_TRY(joined, spmd::join_from_mesh<T>(held[o], type, plan_.mesh, numbers_));
        values[o] = std::move(joined);
      }
      if (plans_.choices != nullptr)
        plans_.own->see_beside(values, *plans_.choices);
      else
        plans_.own->see(values);
    }
    return {};
  }

  Status draw_sources(const DrawOptions& options) {
    whole_.clear();
    for (std::size_t n = 0; n < graph().node_count(); ++n) {
      const NodeView node = graph().view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      const plan::Type type = node.result_type(0);
      if (type.elements() > kMostProvenElements)
        return user_error(fmt::format("{} is too large to prove by running: {}", describe(graph(), node.id()),
                                      print(type, graph().symbols())),
                          "prove it at smaller sizes");
      const auto leads_to = leads_to_.find(node.word(0));
      whole_.emplace(node.word(0),
                     draw_source<T>(node, leads_to == leads_to_.end() ? WholeNumbers() : leads_to->second,
                                    options, numbers_, random_));
    }
    return {};
  }

  Status cut_sources() {
    cut_.clear();
    for (std::size_t n = 0; n < graph().node_count(); ++n) {
      const NodeView node = graph().view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      WEFT_TRY(shares, spmd::split_for_mesh<T>(whole_.find(node.word(0))->second, node.result_type(0),
                                               plans_.ranks->layouts[node.result(0).value], plan_.mesh,
                                               numbers_, random_));
      cut_.emplace(node.word(0), std::move(shares));
    }
    return {};
  }

  // Whether the outputs differ as much when the operands change by a rounding error.
  Result<bool> rounding_explains(const std::vector<Tensor<T>>& expected,
                                 const std::vector<std::size_t>& differ, const std::vector<double>& apart) {
    Whole changed = whole_;
    for (std::size_t n = 0; n < graph().node_count(); ++n) {
      const NodeView node = graph().view(NodeId(n));
      if (!ops::is_source(node.op()) || !plan::is_real(node.result_type(0).dtype)) continue;
      for (T& x : changed.find(node.word(0))->second.data) x *= 1 + kRounding * (2 * random_.uniform() - 1);
    }
    WEFT_TRY(other, whole_run(*plans_.original, changed));
    for (std::size_t i = 0; i < differ.size(); ++i)
      if (!(apart[i] <= kTimesRounding * distance(other[differ[i]], expected[differ[i]]))) return false;
    return true;
  }

  static plan::Graph with_all_values(const plan::Graph& graph) {
    plan::Graph all = graph.clone();
    all.clear_outputs();
    for (std::size_t v = 0; v < graph.value_count(); ++v)
      all.add_output(all.symbol(fmt::format("value {}", v)), ValueId(v));
    return all;
  }

  // Runs both plans again with every value as an output and finds the first that differs.
  Result<std::optional<Disagreement>> locate() {
    const plan::Graph whole = with_all_values(*plans_.open), spread = with_all_values(graph());
    WEFT_TRY(expected, whole_run(whole, whole_));
    WEFT_TRY(held,
             spmd::interpret_on_mesh<T>(spread, plan_.mesh, mesh_sources(), numbers_, kMostProvenElements));
    for (std::size_t v = 0; v < graph().value_count(); ++v) {
      const ValueId meant = counterpart_of(*plans_.open, plan_, ValueId(v));
      if (!meant.valid()) continue;
      const plan::Type type = graph().type(ValueId(v));
      const Tensor<T>& right = expected[meant.value];
      const Result<Tensor<T>> joined = spmd::join_from_mesh<T>(held[v], type, plan_.mesh, numbers_);
      if (joined.ok() && alike(*joined, right)) continue;
      return std::optional(blame(ValueId(v), held[v], right));
    }
    return std::optional(
        Disagreement{NodeId(0u), -1, "the outputs of the two plans differ, but no intermediate value does"});
  }

  static bool fits(const Tensor<T>& tensor, const plan::Type& type) {
    return std::ranges::equal(tensor.sizes, type.dims, {}, {}, &plan::Dim::size);
  }

  Disagreement blame(ValueId value, const MeshTensor<T>& held, const Tensor<T>& right) {
    const NodeId node = graph().value(value).producer;
    Disagreement found{node, -1, {}};
    const bool adds = std::ranges::any_of(held.layout.axes, [](const plan::AxisLayout& axis) {
      return axis.is_partial() || axis.is_varying();
    });
    const std::string where = fmt::format("node {}, {}{}", describe(graph(), node),
                                          print(held.layout, plan_.mesh, graph().symbols()),
                                          std::is_same_v<T, double> ? ", in f64" : "");
    if (!adds && fits(right, graph().type(value))) {
      const Result<MeshTensor<T>> wanted =
          spmd::split_for_mesh<T>(right, graph().type(value), held.layout, plan_.mesh, numbers_, random_);
      for (std::size_t rank = 0; wanted.ok() && rank < held.ranks.size(); ++rank)
        if (!alike(held.ranks[rank], wanted->ranks[rank])) {
          found.rank = static_cast<std::int32_t>(rank);
          found.what = fmt::format("{}: rank {} does not hold its shard", where, rank);
          return found;
        }
    }
    found.what = fmt::format("{}: the shards of the ranks do not combine to the value", where);
    return found;
  }

  const ComparedPlans& plans_;
  const DistributedPlan& plan_;
  Random& random_;
  const std::map<std::string, WholeNumbers, std::less<>> leads_to_;  // by source
  ops::Numbers<T> numbers_;
  Whole whole_;
  std::map<std::string, MeshTensor<T>, std::less<>> cut_;
};

}  // namespace

std::uint64_t balanced_key(Random& random) {
  constexpr int kAsked = 64, kFewest = 24;
  for (;;) {
    ops::Numbers<Field> numbers;
    numbers.key = random.next();
    int above = 0;
    for (int i = 0; i < kAsked; ++i) above += numbers.less(Field(), Field(random.next()));
    if (above >= kFewest && above <= kAsked - kFewest) return numbers.key;
  }
}

template <class T>
Result<std::optional<Disagreement>> compare(const ComparedPlans& plans, Random& random,
                                            std::int64_t& elements) {
  return Comparison<T>(plans, random).run(elements);
}

template Result<std::optional<Disagreement>> compare<Field>(const ComparedPlans&, Random&, std::int64_t&);
template Result<std::optional<Disagreement>> compare<double>(const ComparedPlans&, Random&, std::int64_t&);

}  // namespace weft::distribute
