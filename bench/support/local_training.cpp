#include "support/local_training.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "support/training_rank.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"
#include "weft/ops/operators.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatches = 4;  // none is the same as the one before

// Batches that lie in memory.
class Batches final : public run::Feed {
 public:
  Batches(const plan::Graph& graph, std::int64_t labels) : batches_(kBatches) {
    Random random(7);
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(plan::NodeId(n));
      if (&node.op() != &ops::input()) continue;
      const plan::Type type = node.result_type(0);
      rows_ = type.dims[0].size;
      for (auto& batch : batches_) draw(random, type, labels, batch.emplace_back());
    }
  }

  std::string_view example() const override { return "rows"; }
  std::int64_t examples_per_step() const override { return rows_; }

  void fill(std::span<const run::InputMemory> inputs, std::int64_t step) const override {
    const auto& batch = batches_[static_cast<std::size_t>(step) % kBatches];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t row = batch[i].size() / static_cast<std::size_t>(rows_);
      std::memcpy(inputs[i].bytes.data(), batch[i].data() + row * static_cast<std::size_t>(inputs[i].first),
                  row * static_cast<std::size_t>(inputs[i].rows));
    }
  }

  std::int64_t test_examples() const override { return 0; }
  void fill_test(exec::Rank&, std::int64_t) const override {}

 private:
  static void draw(Random& random, const plan::Type& type, std::int64_t labels,
                   std::vector<std::byte>& input) {
    input.resize(static_cast<std::size_t>(type.bytes()));
    const std::int64_t most = plan::is_real(type.dtype) ? 16 : labels - 1;
    for (std::int64_t i = 0; i < type.elements(); ++i)
      device::store_element(type.dtype, input.data(), i, static_cast<double>(random.between(0, most)));
  }

  std::vector<std::vector<std::vector<std::byte>>> batches_;  // by batch and input
  std::int64_t rows_ = 1;
};

distribute::DistributedPlan data_parallel(const TrainedModel& model, std::int32_t ranks) {
  const train::TrainingPlan training = training_plan(model.model, model.sizes);
  const auto how = or_throw(distribute::read_distribution(fmt::format("rank={}: slice b", ranks)));
  return or_throw(distribute::distribute(training.graph, how));
}

// The first steps touch memory for the first time and wake processors.
std::int64_t warm_up(std::int64_t steps) { return std::clamp<std::int64_t>(steps / 5, 1, 50); }

}  // namespace

LocalTraining::LocalTraining(const TrainedModel& model, const run::LocalRanksOptions& options)
    : options_(options),
      plan_(data_parallel(model, options.ranks)),
      feed_(std::make_unique<Batches>(plan_.graph, model.labels)) {}

double LocalTraining::train(std::int64_t steps) const {
  const std::int64_t before = warm_up(steps);
  double begin = 0, end = 0;
  run::DistributedRun run;
  run.training.steps = before + steps;
  run.training.on_step = [&](const run::StepReport& report) -> Status {
    if (report.step == before) begin = report.seconds;
    end = report.seconds;
    return {};
  };
  or_throw(run::run_distributed(plan_, options_, *feed_, {}, run));
  return end - begin;
}

LocalTraining::Timelines LocalTraining::timelines(std::int64_t steps, bool overlap) const {
  run::LocalRanksOptions options = options_;
  options.overlap = overlap;
  run::DistributedRun run;
  run.measure_from = warm_up(steps);
  run.training.steps = *run.measure_from + steps;
  return or_throw(run::run_distributed(plan_, options, *feed_, {}, run)).timelines;
}

std::int64_t LocalTraining::parameter_elements() const {
  std::int64_t elements = 0;
  for (std::size_t n = 0; n < plan_.graph.node_count(); ++n)
    if (const plan::NodeView node = plan_.graph.view(plan::NodeId(n)); &node.op() == &ops::parameter())
      elements += node.result_type(0).elements();
  return elements;
}

}  // namespace weft::bench
