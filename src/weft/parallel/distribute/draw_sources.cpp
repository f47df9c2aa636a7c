#include "weft/parallel/distribute/draw_sources.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::size_t kOver = 0, kScatterSize = 1, kClasses = 0;  // attributes
constexpr std::int64_t kFewSteps = 8;                 // for counters and steps, which occur as exponents
constexpr std::int64_t kPeakOneIn = 16, kTrueIn = 8;  // one in so many
constexpr std::int64_t kLimitOf = 4,
                       kZeroOneIn = 4;  // a counter near a limit: 3 in 4; an all-zero tensor: 1 in 4

// The number of rows or classes that the node selects from with the integers of an operand; 0:
// none.
std::int64_t picked_by(const NodeView& node, std::size_t operand) {
  const plan::Operator* op = &node.op();
  if (op == &ops::gather() && operand == 0) return node.input_type(1).size_of(node.symbol(kOver));
  if (op == &ops::scatter_add() && operand == 0) return node.integer(kScatterSize);
  if ((op == &ops::cross_entropy() || op == &ops::cross_entropy_gradient()) && operand == 1)
    return node.input_type(0).size_of(node.symbol(kOver));
  if (op == &ops::linear_cross_entropy() && operand == 2)
    return node.input_type(1).size_of(node.symbol(kOver));
  if (op == &ops::labelled()) return node.integer(kClasses);
  return 0;
}

// All numbers from -1 to `size`, one past either end, in random order, each once before any
// repeats.
class Deck {
 public:
  Deck(std::int64_t size, Random& random) : random_(random) {
    constexpr std::int64_t kMost = 4096;
    for (std::int64_t number = -1; number <= std::min(size, kMost); ++number) numbers_.push_back(number);
    if (size > kMost) numbers_.push_back(size - 1), numbers_.push_back(size);
  }

  std::int64_t next() {
    if (left_ == 0) left_ = numbers_.size();
    std::swap(numbers_[random_.below(left_)], numbers_[left_ - 1]);
    return numbers_[--left_];
  }

 private:
  Random& random_;
  std::vector<std::int64_t> numbers_;
  std::size_t left_ = 0;
};

// Near a multiple of a limit, mostly just below it, since counters are incremented before they are
// compared.
std::int64_t draw_near(const std::vector<std::int64_t>& limits, Random& random) {
  constexpr std::array<std::int64_t, 6> kNear = {-1, -1, -1, 0, -2, 1};
  const std::int64_t limit = limits[random.below(limits.size())];
  return std::max<std::int64_t>(0, limit * random.between(1, 2) + kNear[random.below(kNear.size())]);
}

template <class T>
T draw_real(bool is_state, double peak, const ops::Numbers<T>& numbers, Random& random) {
  if constexpr (std::is_same_v<T, ops::Field>) return ops::Field(random.next());
  double drawn = 2 * random.uniform() - 1;
  if (is_state) drawn = 0.25 + (drawn < 0 ? -drawn : drawn);
  if (random.below(kPeakOneIn) == 0) drawn *= peak;
  return numbers.from(drawn);
}

template <class V>
void add_new(std::vector<V>& known, V value) {
  if (std::ranges::find(known, value) == known.end()) known.push_back(value);
}

void find_whole_numbers(const plan::Graph& graph, std::map<std::string, WholeNumbers, std::less<>>& found) {
  constexpr std::int64_t kLargestLimit = std::int64_t{1} << 30;
  std::vector<NodeId> from(graph.value_count());  // the source of a value's integers
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    NodeId source = ops::is_source(node.op()) ? node.id() : NodeId();
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const NodeId origin = from[node.input(i).value];
      if (!origin.valid()) continue;
      source = origin;
      WholeNumbers& leads_to = found[std::string(graph.view(origin).word(0))];
      if (const std::int64_t size = picked_by(node, i); size > 0) add_new(leads_to.sizes, size);
      for (const ValueId other : node.node().inputs) {
        const NodeView maker = graph.view(graph.value(other).producer);
        if (&maker.op() != &ops::constant()) continue;
        const double limit = maker.real(0);
        if (limit > 1 && limit <= kLargestLimit && limit == std::floor(limit))
          add_new(leads_to.limits, static_cast<std::int64_t>(limit));
      }
    }
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (plan::is_integer(node.result_type(k).dtype)) from[node.result(k).value] = source;
  }
}

}  // namespace

std::map<std::string, WholeNumbers, std::less<>> whole_numbers(
    const std::vector<const plan::Graph*>& graphs) {
  std::map<std::string, WholeNumbers, std::less<>> found;
  for (const plan::Graph* graph : graphs) find_whole_numbers(*graph, found);
  return found;
}

template <class T>
ops::Tensor<T> draw_source(const NodeView& source, const WholeNumbers& leads_to, const DrawOptions& options,
                           const ops::Numbers<T>& numbers, Random& random) {
  const plan::Type type = source.result_type(0);
  ops::Tensor<T> tensor;
  for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
  const bool is_state = &source.op() == &ops::state();
  const bool ties = options.ties != Ties::none && !is_state;
  const bool is_zero = ties && options.ties == Ties::with_zeros && random.below(kZeroOneIn) == 0;
  std::vector<Deck> decks;
  for (const std::int64_t size : leads_to.sizes) decks.emplace_back(size, random);
  for (std::int64_t e = 0; e < type.elements(); ++e) {
    if (plan::is_real(type.dtype) && ties)
      tensor.data.push_back(numbers.from_integer(is_zero ? 0 : random.between(-1, 1)));
    else if (plan::is_real(type.dtype))
      tensor.data.push_back(draw_real<T>(is_state, options.peak, numbers, random));
    else if (type.dtype == plan::DType::boolean)
      tensor.data.push_back(numbers.from_integer(random.below(kTrueIn) != 0));
    else if (!decks.empty())
      tensor.data.push_back(numbers.from_integer(decks[random.below(decks.size())].next()));
    else if (!leads_to.limits.empty() && random.below(kLimitOf) != 0)
      tensor.data.push_back(numbers.from_integer(draw_near(leads_to.limits, random)));
    else
      tensor.data.push_back(numbers.from_integer(random.between(is_state ? 1 : -1, kFewSteps)));
  }
  return tensor;
}

template ops::Tensor<double> draw_source(const NodeView&, const WholeNumbers&, const DrawOptions&,
                                         const ops::Numbers<double>&, Random&);
template ops::Tensor<ops::Field> draw_source(const NodeView&, const WholeNumbers&, const DrawOptions&,
                                             const ops::Numbers<ops::Field>&, Random&);

}  // namespace weft::distribute
