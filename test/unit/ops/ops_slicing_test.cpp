// Signatures are guarantees: along an index that a signature calls parallel, results of slices can
// be concatenated; along one that it calls reduced, results of slices combine by the monoid. Here
// every operator is checked, exactly, in the prime field.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;

struct Cut {
  std::int64_t begin, end;
};

// The slice of x along one of its dims. `cut` counts in loop steps of `step` elements each.
Tensor<Field> sliced(const Tensor<Field>& x, std::size_t dim, Cut cut, std::int64_t step) {
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < dim; ++i) outer *= x.sizes[i];
  for (std::size_t i = dim + 1; i < x.sizes.size(); ++i) inner *= x.sizes[i];
  Tensor<Field> part{x.sizes, {}};
  part.sizes[dim] = (cut.end - cut.begin) * step;
  for (std::int64_t o = 0; o < outer; ++o) {
    const auto from = x.data.begin() + (o * x.sizes[dim] + cut.begin * step) * inner;
    part.data.insert(part.data.end(), from, from + part.sizes[dim] * inner);
  }
  return part;
}

plan::TypeId resized(plan::Graph& graph, plan::Type type,
                     const std::function<void(std::vector<plan::Dim>&)>& change) {
  std::vector<plan::Dim> dims(type.dims.begin(), type.dims.end());
  change(dims);
  return *graph.intern_type(type.dtype, dims);
}

// The node's attributes for a slice: types in them shrink along the index.
std::vector<plan::AttributeValue> attributes_for(plan::Graph& graph, const plan::NodeView& node, Symbol index,
                                                 Cut cut) {
  std::vector<plan::AttributeValue> values;
  const auto specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) switch (specs[k].kind) {
      case AttributeKind::integer: values.emplace_back(node.integer(k)); break;
      case AttributeKind::real: values.emplace_back(node.real(k)); break;
      case AttributeKind::word:
      case AttributeKind::index: values.emplace_back(node.symbol(k)); break;
      case AttributeKind::indices: values.emplace_back(node.indices(k)); break;
      case AttributeKind::dtype: values.emplace_back(node.dtype(k)); break;
      case AttributeKind::type:
        values.emplace_back(resized(graph, node.type(k), [&](std::vector<plan::Dim>& dims) {
          for (plan::Dim& dim : dims)
            if (dim.index == index) dim.size = cut.end - cut.begin;
        }));
        break;
    }
  return values;
}

// The node's results on slices of its operands.
std::vector<Tensor<Field>> evaluate_slice(plan::Graph& graph, plan::NodeId id,
                                          const std::vector<Tensor<Field>>& operands, const Slicing& slicing,
                                          std::int64_t size, Cut cut, const Numbers<Field>& numbers) {
  const plan::NodeView node = graph.view(id);
  std::vector<Tensor<Field>> parts = operands;
  std::vector<plan::ValueId> inputs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int dim = slicing.operands[i];
    plan::TypeId type = graph.value(node.input(i)).type;
    if (dim >= 0) {
      const auto at = static_cast<std::size_t>(dim);
      const std::int64_t step =
          operands[i].sizes[at] / size;  // more than one where an index is split or merged
      parts[i] = sliced(operands[i], at, cut, step);
      type = resized(graph, graph.type(type),
                     [&](std::vector<plan::Dim>& dims) { dims[at].size = parts[i].sizes[at]; });
    }
    inputs.push_back(*add_input(graph, fmt::format("part{}_{}", graph.node_count(), i), type));
  }
  const auto attributes = attributes_for(graph, node, slicing.index, cut);
  const Result<plan::NodeId> part = graph.add(node.op(), inputs, attributes);
  if (!part.ok()) throw std::runtime_error(part.error().message);
  std::vector<const Tensor<Field>*> pointers;
  for (const Tensor<Field>& tensor : parts) pointers.push_back(&tensor);
  return evaluate<Field>(graph.view(*part), pointers, numbers);
}

void combine(Tensor<Field>& total, const Tensor<Field>& part, plan::Monoid monoid,
             const Numbers<Field>& numbers) {
  for (std::size_t i = 0; i < total.data.size(); ++i) {
    Field& element = total.data[i];
    if (monoid == plan::Monoid::sum) element += part.data[i];
    if (monoid == plan::Monoid::max) element = numbers.max(element, part.data[i]);
    if (monoid == plan::Monoid::min) element = numbers.min(element, part.data[i]);
  }
}

// Returns the number of slicings tried.
int check_slicings(const Case& c) {
  SCOPED_TRACE(text_of(c));
  plan::Graph graph = graph_of(c);
  const plan::NodeId id(graph.node_count() - 1);
  const Numbers<Field> numbers{.key = 77};
  Random random(5);
  const Tensors<Field> inputs = random_inputs(c, graph, numbers, random);
  std::vector<Tensor<Field>> operands;
  std::vector<const Tensor<Field>*> pointers;
  for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(inputs.at(fmt::format("x{}", i)));
  for (const Tensor<Field>& tensor : operands) pointers.push_back(&tensor);
  const std::vector<Tensor<Field>> whole = evaluate<Field>(graph.view(id), pointers, numbers);

  int tried = 0;
  const plan::Signature signature = operator_of(graph.view(id)).signature(graph.view(id));
  for (const Slicing& slicing : legal_slicings(signature)) {
    const std::int64_t size = signature.find(slicing.index)->size;
    if (slicing.positional || size < 2) continue;
    SCOPED_TRACE(fmt::format("index {}", graph.text(slicing.index)));
    ++tried;
    const Cut low{0, (size + 1) / 2}, high{(size + 1) / 2, size};  // uneven where possible
    const auto first = evaluate_slice(graph, id, operands, slicing, size, low, numbers);
    const auto second = evaluate_slice(graph, id, operands, slicing, size, high, numbers);
    for (std::size_t k = 0; k < whole.size(); ++k) {
      const int dim = slicing.results[k];
      if (dim >= 0) {
        const auto at = static_cast<std::size_t>(dim);
        const std::int64_t step = whole[k].sizes[at] / size;
        EXPECT_EQ(first[k].data, sliced(whole[k], at, low, step).data);
        EXPECT_EQ(second[k].data, sliced(whole[k], at, high, step).data);
      } else if (slicing.partial != plan::Monoid::none) {
        Tensor<Field> total = first[k];
        combine(total, second[k], slicing.partial, numbers);
        EXPECT_EQ(total.data, whole[k].data);
      } else {
        ADD_FAILURE() << "result " << k << " does not keep a parallel index";
      }
    }
  }
  return tried;
}

TEST(OpsSlicing, SlicesComposeTheWhole) {
  for (const Case& c : all_cases()) check_slicings(c);
}

// Operators that cannot be sliced, or whose indices are all positional.
const std::set<std::string, std::less<>> kNothingToSlice = {"input",    "parameter", "state",   "constant",
                                                            "position", "dropout",   "exchange"};

TEST(OpsSlicing, TestsEveryOperator) {
  std::set<std::string, std::less<>> tried;
  for (const Case& c : all_cases())
    if (check_slicings(c) > 0) tried.insert(c.op);
  for (const std::string_view name : all().names())
    EXPECT_NE(tried.contains(name), kNothingToSlice.contains(name)) << name;
}

// A loop must name existing dims; each dim of each operand and result belongs to at most one
// parallel or reduced loop, and every dim of every result to some loop.
TEST(OpsSlicing, SignaturesCoverEveryDim) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(text_of(c));
    const plan::Graph graph = graph_of(c);
    const plan::NodeView node = graph.view(plan::NodeId(graph.node_count() - 1));
    const plan::Signature signature = operator_of(node).signature(node);
    std::set<std::pair<std::size_t, int>> walked;
    std::set<Symbol> names;
    for (const plan::Loop& loop : signature.loops) {
      EXPECT_TRUE(names.insert(loop.index).second) << graph.text(loop.index);
      ASSERT_EQ(loop.operands.size(), node.input_count());
      ASSERT_EQ(loop.results.size(), node.result_count());
      for (std::size_t i = 0; i < loop.operands.size(); ++i)
        EXPECT_LT(loop.operands[i], static_cast<int>(node.input_type(i).rank()));
      for (std::size_t k = 0; k < loop.results.size(); ++k) {
        EXPECT_LT(loop.results[k], static_cast<int>(node.result_type(k).rank()));
        const bool kept = loop.results[k] >= 0;
        EXPECT_TRUE(!kept || walked.emplace(k, loop.results[k]).second);
        EXPECT_TRUE(kept || loop.role != plan::Role::parallel || loop.monoid != plan::Monoid::none)
            << graph.text(loop.index);
        EXPECT_TRUE(!kept || loop.role != plan::Role::reduced) << graph.text(loop.index);
      }
      const bool lacked = std::ranges::any_of(loop.results, [](int dim) { return dim < 0; });
      EXPECT_EQ(loop.role == plan::Role::reduced || (loop.role == plan::Role::parallel && lacked),
                loop.monoid != plan::Monoid::none);
    }
    for (std::size_t k = 0; k < node.result_count(); ++k)
      for (int dim = 0; dim < static_cast<int>(node.result_type(k).rank()); ++dim)
        EXPECT_TRUE(walked.contains({k, dim})) << "result " << k << " dim " << dim;
  }
}

TEST(OpsSlicing, WorkIsFiniteAndCountsBytes) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(text_of(c));
    const plan::Graph graph = graph_of(c);
    const plan::NodeView node = graph.view(plan::NodeId(graph.node_count() - 1));
    const plan::Work work = node.op().work(node);
    EXPECT_GE(work.flops, work.multiply_adds);
    EXPECT_EQ(work.bytes_written > 0, !node.op().is_view());
  }
}

}  // namespace
}  // namespace weft::ops
