// Training plans in which a flag decides about a whole step, with every change of
// changed_training.h: the proof rejects each change and accepts the original.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "changed_training.h"
#include "distribute_case.h"
#include "thorough.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/distribute/without_codecs.h"
#include "weft/plan/graph/text.h"

namespace weft::distribute {
namespace {

struct DecidedPlan {
  std::string_view name;
  train::TrainingOptions options;
  std::string_view precision = "f32";
  std::string_view distribution = "rank=2: slice b";
  std::size_t nth = 6;  // runs every nth change
};

std::vector<DecidedPlan> decided_plans() {
  const auto options = [](double accumulate, double clip_norm,
                          train::Optimizer optimizer = train::Optimizer::sgd) {
    train::TrainingOptions made;
    made.optimizer = optimizer;
    made.accumulate = accumulate;
    made.clip_norm = clip_norm;
    return made;
  };
  train::TrainingOptions validated = options(1, 1, train::Optimizer::adam);
  validated.post_validation = true;
  return {
      {"plain", options(1, 0), "f32", "rank=2: slice b", 1},
      {"accumulate_clip", options(4, 1)},
      {"accumulate_clip_sharded", options(4, 1, train::Optimizer::adam), "f32",
       "rank=2: slice b, shard optimizer"},
      {"clip_validated", validated},
      {"f16", options(1, 0), "f16"},
      {"f16_accumulate_clip", options(4, 1), "f16"},
      {"f16_adam_sharded", options(3, 1, train::Optimizer::adam), "f16", "rank=2: slice b, shard parameters"},
      {"bf16_clip", options(1, 1, train::Optimizer::momentum), "bf16"},
      {"bf16_features", options(2, 1, train::Optimizer::adam), "bf16", "rank=2: slice f"},
  };
}

plan::Graph training_graph(const DecidedPlan& decided) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::syntax::Name name;
  name.text = "digits_mlp";
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.sizes = {{"b", 4, {}}, {"p", 2, {}}, {"f", 4, {}}, {"c", 3, {}}};
  train::TrainingOptions training = decided.options;
  training.precision = *train::find_precision(decided.precision);
  options.precision = training.precision.compute;
  plan::Graph forward = std::move(language::bind(catalog, name, options).value().graph);
  if (training.precision.mixed) forward = train::with_wide_losses(forward).value();
  return std::move(train::make_training_plan(std::move(forward), training).value().graph);
}

std::optional<DistributedPlan> read_changed(const std::string& text, const plan::Graph& one_device,
                                            const plan::Mesh& mesh) {
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) return {};
  auto layouts = spmd::infer_layouts(*graph, mesh);
  if (!layouts.ok()) return {};
  auto origins = trace_origins(one_device, *graph);
  if (!origins.ok()) return {};
  return DistributedPlan{.graph = std::move(*graph),
                         .mesh = mesh,
                         .layouts = std::move(*layouts),
                         .opened = std::move(origins->opened),
                         .origin = std::move(origins->origin),
                         .own = std::move(origins->own)};
}

class ChoiceMutations : public ::testing::TestWithParam<DecidedPlan> {
 protected:
  void SetUp() override {
    one_device_ = training_graph(GetParam());
    plan_ = distribute(one_device_, read_distribution(GetParam().distribution).value(), {.smallest_share = 1})
                .value();
  }

  // "" if the plan is proven equal without restrictions.
  std::string verdict(const DistributedPlan& plan) const {
    if (has_codecs(plan.graph)) {
      const auto exact = without_codecs(plan);
      return exact.ok() ? verdict(*exact) : exact.error().message;
    }
    const auto proof = prove(one_device_, plan);
    if (!proof.ok()) return proof.error().message;
    if (!proof->holds()) return proof->wrong->what;
    if (!proof->unseen.empty()) return proof->unseen;
    return proof->rounded.empty() ? "" : "rounds " + *proof->rounded.begin();
  }

  // Returns how many are rejected before the proof because of types or layouts.
  int expect_refused(const std::vector<ChangedPlan>& changes) const {
    int unfit = 0;
    for (const ChangedPlan& change : every(GetParam().nth, changes)) {
      const auto changed = read_changed(change.text, one_device_, plan_.mesh);
      if (!changed) {
        ++unfit;
        continue;
      }
      EXPECT_NE(verdict(*changed), "") << change.what;
    }
    return unfit;
  }

  plan::Graph one_device_;
  DistributedPlan plan_;
};

TEST_P(ChoiceMutations, TheOriginalPlanIsProven) {
  EXPECT_EQ(verdict(plan_), "") << plan::print(plan_.graph);
}

TEST_P(ChoiceMutations, RejectsEveryChange) {
  const std::vector<ChangedPlan> changes = TrainingChanges(plan::print(plan_.graph)).all();
  EXPECT_GE(changes.size(), 6u);
  EXPECT_LE(expect_refused(changes), static_cast<int>(changes.size() / 3));
}

TEST_P(ChoiceMutations, RejectsMisplacedRoundingCodecsAndPeriods) {
  const std::string text = plan::print(plan_.graph);
  const std::string type = GetParam().precision == "f16" ? "f16" : "bf16";
  EXPECT_EQ(expect_refused(TrainingChanges(text).round_trips(type)), 0);
  const std::vector<ChangedPlan> codecs = TrainingChanges(text).codecs();
  EXPECT_LT(expect_refused(codecs), static_cast<int>(codecs.size()));
  expect_refused(TrainingChanges(text).periods());
}

void PrintTo(const DecidedPlan& decided, std::ostream* out) { *out << decided.name; }

INSTANTIATE_TEST_SUITE_P(Training, ChoiceMutations, ::testing::ValuesIn(decided_plans()),
                         [](const auto& decided) { return std::string(decided.param.name); });

}  // namespace
}  // namespace weft::distribute
