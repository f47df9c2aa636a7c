// EXPLAIN and `weft plan prove` choose the same plan for the same statement and cluster, with and
// without stages.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "thorough.h"
#include "weft/app/command/plans.h"

namespace weft::command {
namespace {

using Json = nlohmann::json;

std::string explained(const std::string& statement) {
  session::Session session;
  return session::answer(session, "EXPLAIN (FORMAT json) " + statement).at("plan").get<std::string>();
}

std::string proven(const std::string& statement) {
  const session::Reply reply = run(PlanProve{.what = {statement}, .format = session::Format::json});
  EXPECT_EQ(reply.exit_code, session::ExitCode::ok) << statement << "\n" << reply.complaint;
  if (reply.exit_code != session::ExitCode::ok) return {};
  return Json::parse(reply.output).at("distribution").get<std::string>();
}

TEST(Entrances, ChooseTheSamePlan) {
  std::vector<std::string> statements = {
      "TRAIN digits_mlp ON LOCAL 2 WITH (b = 32)",
      "TRAIN digits_mlp ON ethernet WITH (b = 64, f = 64)",
      "INFER digits_mlp ON ethernet WITH (b = 64, f = 64)",
      "TRAIN char_gpt ON ethernet WITH (b = 16, layers = 2, s = 16, d = 16, h = 2)",
  };
  if (is_thorough())
    for (const std::string model : {"gpt2", "resnet50", "t5_small"})
      for (const std::string cluster : {"ethernet", "pod", "dgx1"})
        statements.push_back(fmt::format("TRAIN {} ON {} WITH (b = 32)", model, cluster));
  for (const std::string& statement : statements)
    EXPECT_EQ(explained(statement), proven(statement)) << statement;
}

}  // namespace
}  // namespace weft::command
