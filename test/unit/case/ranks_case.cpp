#include "ranks_case.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/device/element_access.h"
#include "weft/language/shipped.h"

namespace weft::session {
namespace {

template <class T>
T or_throw(Result<T> result, std::string_view about = "") {
  if (!result.ok()) throw std::runtime_error(fmt::format("{}: {}", about, result.error().message));
  return std::move(*result);
}

void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

}  // namespace

Learner learner(plan::Graph forward, train::Optimizer optimizer) {
  train::TrainingOptions options;
  options.optimizer = optimizer;
  options.learning_rate = optimizer == train::Optimizer::adam ? 1e-3 : 0.1;
  auto made = or_throw(train::make_training_plan(std::move(forward), options));
  std::shared_ptr<const run::Feed> feed = run::made_up_feed(made.graph, 3);
  return {std::move(made.graph), std::move(feed)};
}

Learner learner(std::string_view model, std::vector<language::SizeOverride> sizes,
                train::Optimizer optimizer) {
  return learner(exec::bound_model(model, std::move(sizes)), optimizer);
}

Learner created_learner(std::string_view text, train::Optimizer optimizer) {
  language::Catalog catalog;
  load_shipped(catalog);
  const auto source = or_throw(language::parse_and_keep(text));
  const auto& statement = source->script.statements.back()->as<language::syntax::CreateModel>();
  language::BindOptions options;
  options.mode = language::Mode::train;
  auto bound = or_throw(language::bind(catalog, language::ModelDefinition{source, &statement}, options));
  return learner(std::move(bound.graph), optimizer);
}

distribute::DistributedPlan spread(const Learner& learner, std::string_view distribution) {
  const auto read = or_throw(distribute::read_distribution(distribution), distribution);
  distribute::DistributeOptions options;
  options.smallest_share = 1;  // these tests have no large tensors
  return or_throw(distribute::distribute(learner.graph, read, options), distribution);
}

run::LocalRanksOptions on(std::int32_t ranks, comm::TransportKind transport) {
  run::LocalRanksOptions options;
  options.ranks = ranks;
  options.transport = transport;
  options.timeout = options.grace = std::chrono::seconds(10);
  return options;
}

run::Weights from_seed(std::uint64_t seed) {
  run::Weights weights;
  weights.model = "small";
  weights.seed = seed;
  return weights;
}

run::DistributedRun steps(std::int64_t count) {
  run::DistributedRun run;
  run.training.steps = count;
  run.check_every = 4;  // replicas must stay equal under any plan
  return run;
}

run::DistributedOutcome train(const Learner& learner, const distribute::DistributedPlan& plan,
                              const run::LocalRanksOptions& options, std::int64_t count) {
  return or_throw(run::run_distributed(plan, options, *learner.feed, from_seed(7), steps(count)));
}

run::DistributedOutcome train(const Learner& learner, std::string_view distribution,
                              const run::LocalRanksOptions& options, std::int64_t count) {
  return train(learner, spread(learner, distribution), options, count);
}

OneRank train_alone(const Learner& learner, std::int64_t count) {
  const auto rank = exec::start(learner.graph, 1);
  must(run::write_initial(*rank, 7));
  OneRank one{or_throw(run::run_training(*rank, *learner.feed, {.steps = count})), from_seed(7)};
  must(run::read_weights(*rank, one.weights));
  return one;
}

Apart apart(const run::Weights& a, const run::Weights& b, double least) {
  Apart found;
  const auto see = [&](const std::string& name, double relative, double absolute) {
    if (relative > found.relative) found.worst = name;
    found.relative = std::max(found.relative, relative);
    found.absolute = std::max(found.absolute, absolute);
  };
  if (a.tensors.size() != b.tensors.size()) see("how many", INFINITY, INFINITY);
  for (const auto& [name, tensor] : a.tensors) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end() || other->second.shape != tensor.shape) {
      see(name, INFINITY, INFINITY);
      continue;
    }
    double largest = least, difference = 0;
    const auto elements = static_cast<std::int64_t>(tensor.bytes.size()) / plan::size_in_bytes(tensor.dtype);
    for (std::int64_t i = 0; i < elements; ++i) {
      const double x = device::load_element(tensor.dtype, tensor.bytes.data(), i);
      const double y = device::load_element(tensor.dtype, other->second.bytes.data(), i);
      largest = std::max(largest, std::abs(x));
      difference = std::isfinite(x - y) ? std::max(difference, std::abs(x - y)) : INFINITY;
    }
    see(name, difference / largest, difference);
  }
  return found;
}

void expect_same_bits(const run::Weights& a, const run::Weights& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) EXPECT_EQ(tensor.bytes, b.tensors.at(name).bytes) << name;
}

}  // namespace weft::session
