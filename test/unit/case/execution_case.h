// test/unit/case/execution_case.h -- runs a plan by kernels, and the same plan by operator
// definitions.
#pragma once
#include <memory>
#include <string>

#include "ops_case.h"
#include "weft/language/bind.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/exec/rank.h"

namespace weft::exec {

using Tensors = ops::Tensors<double>;

// A shipped model in train mode; tensors without a declared type get this one. Or its training plan
// with Adam, in f32.
plan::Graph bound_model(std::string_view model, std::vector<language::SizeOverride> sizes,
                        plan::DType precision = plan::DType::f32);
plan::Graph training_plan(std::string_view model, std::vector<language::SizeOverride> sizes);
// The same for a precision by name, "bf16": master weights, moments and the loss are f32.
plan::Graph narrow_training_plan(std::string_view model, std::vector<language::SizeOverride> sizes,
                                 std::string_view precision);

// Whether WEFT_TEST_DEVICE names a device other than the CPU.
bool on_another_device();
// A rank that runs the plan on the device that WEFT_TEST_DEVICE names (make test-gpu). Throws on
// errors.
std::unique_ptr<Rank> start(const plan::Graph& graph, int workers);
std::unique_ptr<Rank> start_here(const plan::Graph& graph, int workers);  // on the CPU

// Every input, parameter and state of the plan: real numbers around zero, integers below `labels`.
Tensors random_sources(const plan::Graph& graph, std::int64_t labels, Random& random);

void fill(Rank& rank, const Tensors& sources);
ops::Tensor<double> read(const Rank& rank, const program::Port& port);

// Contents of the rank after a step, by name: outputs, parameters and states.
Tensors contents(const Rank& rank);

// The same, by the definition of every operator.
Tensors interpreted(const plan::Graph& graph, const Tensors& sources);

// Fails the test unless `found` has all tensors of `expected`, each element within the tolerance.
void expect_near(const Tensors& found, const Tensors& expected, double relative, double absolute,
                 const std::string& what);

}  // namespace weft::exec
