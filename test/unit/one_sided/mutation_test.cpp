// Seeded mutations of plans and of shipped algorithms: each is rejected, or simulations show it
// harmless.
#include <gtest/gtest.h>

#include "../../plans/mutations.h"
#include "../../plans/plan_simulator.h"
#include "../../plans/program_simulator.h"
#include "thorough.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/compile/compile.h"

namespace weft::collective {
namespace {

const std::uint64_t kSchedules = thorough_or(40, 12);  // per accepted mutation
const std::uint64_t kSeeds = thorough_or(3000, 500);
const int kRefused = thorough_or(1000, 150), kHarmless = thorough_or(20, 3);

TEST(Mutations, OriginalPlansAreCorrect) {
  for (const plans::GoodPlan& good : plans::good_plans()) {
    const OneSided plan = plans::plan_of(std::string(good.text));
    for (std::uint64_t seed = 0; seed < kSchedules; ++seed)
      ASSERT_EQ(plans::PlanSimulator(plan, seed).run(), "") << good.name << ", schedule " << seed;
  }
}

// The simulator must detect errors: most broken plans go wrong within a few hundred schedules.
TEST(Mutations, BrokenPlansFailInSimulation) {
  int seen = 0, total = 0;
  for (const plans::BrokenPlan& broken : plans::broken_plans()) {
    const OneSided plan = plans::broken_plan(broken);
    if (check_form(plan)) continue;
    ++total;
    for (std::uint64_t seed = 0; seed < 300; ++seed)
      if (!plans::PlanSimulator(plan, seed).run().empty()) {
        ++seen;
        break;
      }
  }
  EXPECT_GE(seen * 4, total * 3) << seen << " of " << total;
}

TEST(Mutations, OfPlansAreRejectedOrHarmless) {
  int refused = 0, harmless = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    plans::Mutations mutations(seed);
    const plans::GoodPlan& good = plans::good_plans()[mutations.draw(plans::good_plans().size())];
    OneSided plan = plans::plan_of(std::string(good.text));
    for (std::size_t times = 1 + mutations.draw(2); times > 0; --times) mutations.mutate(plan);
    if (check(plan).finding) {
      ++refused;
      continue;
    }
    ++harmless;
    for (std::uint64_t schedule = 0; schedule < kSchedules; ++schedule)
      ASSERT_EQ(plans::PlanSimulator(plan, schedule).run(), "")
          << good.name << ", mutation " << seed << ", schedule " << schedule;
  }
  EXPECT_GT(refused, kRefused);
  EXPECT_GT(harmless, 5 * kHarmless);
}

TEST(Mutations, OfShippedAlgorithmsAreRejectedOrHarmless) {
  std::vector<Program> programs;
  for (const std::string_view name : shipped_algorithms().names())
    for (const std::string ranks : {"(ranks=2)", "(ranks=4)"}) {
      const auto reference = parse_reference(std::string(name) + ranks);
      if (!reference.ok()) continue;
      const auto moves = trace(*shipped_algorithms().find(name), reference->arguments, shipped_algorithms());
      if (!moves.ok()) continue;  // it requires other parameters
      auto program = compile(*moves, {});
      if (program.ok()) programs.push_back(std::move(*program));
    }
  ASSERT_GT(programs.size(), 10U);
  int refused = 0, harmless = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    plans::Mutations mutations(seed);
    Program program = programs[mutations.draw(programs.size())];
    mutations.mutate(program);
    if (check(program).finding) {
      ++refused;
      continue;
    }
    ++harmless;
    for (const Placement placement : {Placement::in_place, Placement::out_of_place}) {
      if (program.placement != Placement::either && program.placement != placement) continue;
      for (std::uint64_t schedule = 0; schedule < kSchedules / 4; ++schedule)
        ASSERT_EQ(plans::ProgramSimulator(program, placement, schedule).run(), "")
            << program.name << ", mutation " << seed << ", schedule " << schedule;
    }
  }
  EXPECT_GT(refused, kRefused);
  EXPECT_GT(harmless, kHarmless);
}

}  // namespace
}  // namespace weft::collective
