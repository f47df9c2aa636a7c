#include "execution_case.h"

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

#include "weft/device/element_access.h"
#include "weft/language/shipped.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/ops/operators.h"

namespace weft::exec {
namespace {

const language::Catalog& catalog() {
  static const language::Catalog shipped = [] {
    language::Catalog made;
    language::load_shipped(made);
    return made;
  }();
  return shipped;
}

template <class T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

plan::Graph bound_model(std::string_view model, std::vector<language::SizeOverride> sizes,
                        plan::DType precision) {
  language::BindOptions options;
  options.precision = precision;
  options.sizes = std::move(sizes);
  options.mode = language::Mode::train;
  return std::move(or_throw(language::bind(catalog(), language::syntax::Name{model, {}}, options)).graph);
}

plan::Graph training_plan(std::string_view model, std::vector<language::SizeOverride> sizes) {
  return std::move(or_throw(train::make_training_plan(bound_model(model, std::move(sizes)), {})).graph);
}

plan::Graph narrow_training_plan(std::string_view model, std::vector<language::SizeOverride> sizes,
                                 std::string_view precision) {
  train::TrainingOptions options;
  options.precision = train::find_precision(precision).value();
  const plan::Graph narrow = bound_model(model, std::move(sizes), options.precision.compute);
  return std::move(
      or_throw(train::make_training_plan(or_throw(train::with_wide_losses(narrow)), options)).graph);
}

bool on_another_device() { return std::getenv("WEFT_TEST_DEVICE") != nullptr; }

std::unique_ptr<Rank> start(const plan::Graph& graph, int workers) {
  const char* const name = std::getenv("WEFT_TEST_DEVICE");
  if (name == nullptr) return start_here(graph, workers);
  auto shared = std::make_shared<plan::Graph>(graph.clone());
  static const std::shared_ptr<device::Device> device = or_throw(device::open_device(name));
  return or_throw(
      Rank::start(or_throw(program::compile(
                      shared, {.workers = 1, .any_float = true, .accelerated = true, .tiles = false})),
                  {.device = device}));
}

std::unique_ptr<Rank> start_here(const plan::Graph& graph, int workers) {
  auto shared = std::make_shared<plan::Graph>(graph.clone());
  return or_throw(
      Rank::start(or_throw(program::compile(shared, {.workers = workers})), {.workers = workers}));
}

Tensors random_sources(const plan::Graph& graph, std::int64_t labels, Random& random) {
  Tensors tensors;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() != &ops::input() && &node.op() != &ops::parameter() && &node.op() != &ops::state())
      continue;
    const plan::Type type = node.result_type(0);
    ops::Tensor<double> tensor;
    for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
    const bool zero = &node.op() == &ops::state() && type.rank() == 0;  // the step counter
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      // Rounded to a float, so that both executions start from the same numbers. States stay
      // positive: they may be variances.
      const double real = static_cast<float>(random.uniform() - (&node.op() == &ops::state() ? 0 : 0.5));
      tensor.data.push_back(zero                        ? 0
                            : plan::is_real(type.dtype) ? real
                                                        : static_cast<double>(random.between(0, labels - 1)));
    }
    tensors[std::string(node.word(0))] = std::move(tensor);
  }
  return tensors;
}

void fill(Rank& rank, const Tensors& sources) {
  const auto& program = rank.program();
  for (const auto* ports : {&program.inputs, &program.parameters, &program.states})
    for (const program::Port& port : *ports) {
      const ops::Tensor<double>& tensor = sources.at(port.name);
      const Status written = rank.write(port, [&](std::span<std::byte> memory) {
        for (std::int64_t i = 0; i < tensor.elements(); ++i)
          device::store_element(port.place.dtype, memory.data(), i, tensor.data[static_cast<std::size_t>(i)]);
      });
      if (!written.ok()) throw std::runtime_error(written.error().message);
    }
}

ops::Tensor<double> read(const Rank& rank, const program::Port& port) {
  ops::Tensor<double> tensor;
  for (const program::Axis& axis : port.place.axes) tensor.sizes.push_back(axis.size);
  const HostBytes held = or_throw(rank.read(port));
  for (std::int64_t i = 0; i < port.place.elements(); ++i)
    tensor.data.push_back(device::load_element(port.place.dtype, held.data(), i));
  return tensor;
}

Tensors contents(const Rank& rank) {
  Tensors tensors;
  const auto& program = rank.program();
  for (const auto* ports : {&program.outputs, &program.parameters, &program.states})
    for (const program::Port& port : *ports) tensors[port.name] = read(rank, port);
  return tensors;
}

Tensors interpreted(const plan::Graph& graph, const Tensors& sources) {
  const auto find = [&](std::string_view name) {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  };
  std::vector<ops::Tensor<double>> outputs = or_throw(ops::interpret<double>(graph, find));
  Tensors tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const plan::Output& output = graph.outputs()[i];
    const Symbol name = output.updates.valid() ? output.updates : output.name;
    tensors[std::string(graph.text(name))] = std::move(outputs[i]);
  }
  return tensors;
}

void expect_near(const Tensors& found, const Tensors& expected, double relative, double absolute,
                 const std::string& what) {
  for (const auto& [name, tensor] : expected) {
    const auto at = found.find(name);
    ASSERT_NE(at, found.end()) << what << ": no " << name;
    ASSERT_EQ(at->second.data.size(), tensor.data.size()) << what << ": " << name;
    for (std::size_t i = 0; i < tensor.data.size(); ++i) {
      const double a = at->second.data[i], b = tensor.data[i];
      if (std::isnan(a) && std::isnan(b)) continue;
      if (a == b) continue;
      ASSERT_LE(std::fabs(a - b), absolute + relative * std::fabs(b))
          << what << ": " << name << "[" << i << "] is " << a << ", expected " << b;
    }
  }
}

}  // namespace weft::exec
