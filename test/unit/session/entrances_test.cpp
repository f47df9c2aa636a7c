// Every statement and command gets the same plan for a model on a target.
//
//   EXPLAIN                           the report's plan
//   EXPLAIN (FORMAT plan)             the plan as text
//   TRAIN, weft plan prove            planner::plan_to_run
//   EXPLAIN ANALYZE                   what ran
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "own_data.h"
#include "session_case.h"
#include "thorough.h"
#include "weft/app/session/state.h"
#include "weft/language/parser.h"
#include "weft/language/shipped.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/plan_step.h"
#include "weft/planner/step/written_plan.h"

namespace weft::session {
namespace {

// Measurements of concurrent tests would change the plan.
[[maybe_unused]] const auto* const kOwnData = testing::AddGlobalTestEnvironment(new OwnData);

struct Asked {
  std::string_view task, model, target, with;
};

std::string statement(const Asked& asked) {
  return fmt::format("{} {} ON {} WITH (prove = false{}{})", asked.task, asked.model, asked.target,
                     asked.with.empty() ? "" : ", ", asked.with);
}

// The plan that TRAIN runs and `weft plan prove` proves.
std::string plan_that_runs(const Asked& asked) {
  Knowledge knowledge;
  language::load_shipped(knowledge.catalog);
  auto source = language::parse_and_keep(statement(asked));
  if (!source.ok()) return source.error().message;
  auto prepared =
      prepare(knowledge, (*source)->script.statements.front()->as<language::syntax::Run>(), Purpose::plan);
  if (!prepared.ok()) return prepared.error().message;
  const auto choice = plan_to_run(knowledge, nullptr, *prepared);
  if (!choice.ok()) return choice.error().message;
  return choice->spread ? distribute::print(choice->spread->distribution) : std::string();
}

void expect_one_plan(const Asked& asked) {
  SCOPED_TRACE(statement(asked));
  Session session;
  const std::string shown = answer(session, "EXPLAIN " + statement(asked))["plan"];
  EXPECT_EQ(shown, plan_that_runs(asked));
  session.format = Format::text;
  const Reply written = session.execute("EXPLAIN (FORMAT plan) " + statement(asked));
  ASSERT_EQ(written.exit_code, ExitCode::ok) << written.complaint;
  // Pipelined plans state the whole distribution above the plan; other plans state their mesh.
  const planner::PlanHead head = planner::read_head(written.output);
  if (planner::is_cut_in_time(head))
    EXPECT_NE(head.model.find(shown), std::string::npos) << head.model << "\n" << shown;
  else
    for (std::size_t at = 0; !shown.empty() && at < head.mesh.size();) {  // "rank_a=2, rank_b=2"
      const std::size_t end = std::min(head.mesh.find(", ", at), head.mesh.size());
      EXPECT_NE(shown.find(head.mesh.substr(at, end - at) + ":"), std::string::npos) << head.mesh << "\n"
                                                                                     << shown;
      at = end + 2;
    }
}

constexpr Asked kQuick[] = {
    {"TRAIN", "digits_mlp", "LOCAL 1", ""},
    {"TRAIN", "digits_mlp", "LOCAL 2", ""},
    {"TRAIN", "digits_mlp", "LOCAL 4", "b = 256, rules = false"},
    {"INFER", "digits_mlp", "LOCAL 2", ""},
    {"TRAIN", "digits_mlp", "h100", ""},
    {"TRAIN", "digits_mlp", "LOCAL 2", "micro_batches = 2"},
    {"TRAIN", "digits_mlp", "LOCAL 2", "distribution = 'stage=2: stage; micro=4; schedule 1f1b'"},
    {"TRAIN", "digits_mlp", "LOCAL 2", "codecs = 'gradients: int8'"},
};

TEST(Entrances, ChooseTheSamePlan) {
  for (const Asked& asked : kQuick) expect_one_plan(asked);
}

TEST(Entrances, ChooseTheSamePlanForEveryModelAndCluster) {
  WEFT_LONG_TEST();
  language::Catalog catalog;
  language::load_shipped(catalog);
  for (const auto& [model, definition] : catalog.models)
    for (const auto& [cluster, axes] : catalog.clusters)
      for (const std::string_view task : {"TRAIN", "INFER"}) expect_one_plan({task, model, cluster, ""});
}

// EXPLAIN ANALYZE runs the plan that EXPLAIN shows.
TEST(Entrances, AnalyzeRunsTheShownPlan) {
  for (const std::string_view with : {"", ", micro_batches = 2"}) {
    const std::string train =
        fmt::format("TRAIN digits_mlp ON LOCAL 2 WITH (transport = inproc, threads = 1{})", with);
    Session session;
    const nlohmann::json shown = answer(session, "EXPLAIN " + train);
    const nlohmann::json ran = answer(session, "EXPLAIN ANALYZE " + train);
    EXPECT_EQ(shown["plan"], ran["plan"]) << train;
  }
}

}  // namespace
}  // namespace weft::session
