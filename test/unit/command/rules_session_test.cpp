// weft rules as users run it: files in, verdicts and plans out.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/rules.h"

namespace weft::command {

using namespace session;
namespace {

using Json = nlohmann::json;

const std::string kExamples = WEFT_SOURCE_DIR "/examples/rules/";

// Only a few rules, so that tests do not prove all of them.
constexpr std::string_view kRules =
    "rule merge_products explore\n"
    "  why   one product instead of two\n"
    "  given x[B, K, G], v[K, n, G], w[K, m, G]\n"
    "  left  p = contract(x, v, to=[B, n, G])\n"
    "        q = contract(x, w, to=[B, m, G])\n"
    "  right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n, G])\n"
    "        p = slice(c, along=n, begin=0, end=size(v, n))\n"
    "        q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])\n"
    "rule relu_twice normalize\n"
    "  given x[I]\n"
    "  left  y = relu(relu(x))\n"
    "  right y = relu(x)\n";

// False if both are negative.
constexpr std::string_view kWrongRule =
    "rule wrong_sum normalize\n"
    "  given x[I], y[I]\n"
    "  left  z = add(relu(x), relu(y))\n"
    "  right z = relu(add(x, y))\n";

class RulesSession : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(RulesSession, JudgesJsonlRulesOnePerLine) {
  const Reply reply = run(RulesProve{.files = {kExamples + "by_position.jsonl"}});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  std::istringstream lines(reply.output);
  std::vector<Json> verdicts;
  for (std::string line; std::getline(lines, line);) verdicts.push_back(Json::parse(line));
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[0]["verdict"], "guarded");
  EXPECT_EQ(verdicts[0]["guard"], "groups(v) = 1 and groups(w) = 1");
  EXPECT_EQ(verdicts[1]["verdict"], "refuted");
  EXPECT_FALSE(verdicts[1]["counterexample"].is_null());
  EXPECT_EQ(verdicts[2]["verdict"], "proven");
  EXPECT_LT(verdicts[2]["error_probability"].get<double>(), 1e-9);
}

TEST_F(RulesSession, ContinuesAfterAnInvalidLine) {
  const std::string good =
      R"({"id":"r","inputs":{"x":{"template_shape":[2,4]}},"source":[{"op":"relu","in":["x"],"attrs":{}},{"op":"relu","in":["%0.0"],"attrs":{}}],)"
      R"("target":[{"op":"relu","in":["x"],"attrs":{}}],"outputs":[{"source":"%1.0","target":"%0.0"}]})";
  const std::string path = write("some.jsonl", good.substr(0, 60) + "\nnot JSON\n" + good + "\n");
  const Reply reply = run(RulesProve{.files = {path}});
  EXPECT_EQ(reply.exit_code, ExitCode::user_error);
  EXPECT_EQ(reply.complaint, "error: 2 lines are no rule\n");
  EXPECT_EQ(std::ranges::count(reply.output, '\n'), 3);
  EXPECT_NE(reply.output.find(R"("verdict":"proven")"), std::string::npos) << reply.output;
}

TEST_F(RulesSession, ExplainsWhyARuleIsFalse) {
  const std::string path = write(
      "false.rules", "rule swap explore\n  given x[I], y[I]\n  left  d = sub(x, y)\n  right d = sub(y, x)\n");
  const Reply reply = run(RulesProve{.files = {path}, .again = true});
  EXPECT_EQ(reply.exit_code, ExitCode::user_error);
  EXPECT_EQ(reply.complaint, "error: not proven: swap\n");
  EXPECT_EQ(reply.output.rfind("swap: refuted\n", 0), 0u) << reply.output;
  EXPECT_NE(reply.output.find("left is"), std::string::npos) << reply.output;
}

TEST_F(RulesSession, KeepsProofsAndUsesThem) {
  const std::string path = write("some.rules", kRules);
  const RulesList list{.files = {path}, .store = folder_.path() + "/proofs", .format = Format::json};
  const Reply first = run(list), second = run(list);
  EXPECT_EQ(first.output, second.output);
  const Json rules = Json::parse(first.output);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0]["rule"], "merge_products");
  EXPECT_EQ(rules[0]["verdict"], "proven");
  EXPECT_EQ(rules[1]["kind"], "normalize");
}

TEST_F(RulesSession, ContinuesWithoutACacheThatOthersMayWrite) {
  const std::string proofs = folder_ / "proofs", plans = folder_ / "plans";
  for (const std::string& place : {proofs, plans}) {
    std::filesystem::create_directory(place);
    std::filesystem::permissions(place, std::filesystem::perms::all);
  }
  const std::string path = write("some.rules", kRules);
  const Reply listed = run(RulesList{.files = {path}, .store = proofs});
  EXPECT_EQ(listed.exit_code, ExitCode::ok);
  EXPECT_NE(listed.output.find("proven"), std::string::npos);
  EXPECT_EQ(listed.complaint,
            "warning: the proof cache is neither read nor written: expected a folder that only its owner may "
            "write to: " +
                proofs + " has mode 0777\n  chmod go-w " + proofs + "\n");
  EXPECT_TRUE(std::filesystem::is_empty(proofs));

  RulesApply apply{.plan = kExamples + "attention.json", .files = {path}};
  apply.cache = plans;
  const Reply applied = run(apply);
  EXPECT_EQ(applied.exit_code, ExitCode::ok);
  EXPECT_EQ(applied.complaint.rfind("warning: the plan cache is neither read nor written: ", 0), 0u)
      << applied.complaint;
  EXPECT_TRUE(std::filesystem::is_empty(plans));
}

TEST_F(RulesSession, FiresRulesOnRandomPlans) {
  const Reply reply = run(RulesTest{.files = {write("some.rules", kRules)}, .format = Format::json});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.output;
  for (const Json& row : Json::parse(reply.output)) EXPECT_GT(row["fired"], 10) << row;
}

// Equality as in the proof: up to rounding if the proof is, and for the rules of the same files.
TEST_F(RulesSession, TestsRulesProvenUpToRounding) {
  constexpr std::string_view kUpToRounding =
      "rule log_of_exp normalize\n"
      "  given x[I]\n"
      "  left  y = log(exp(x))\n"
      "  right y = x\n"
      "rule softplus_difference normalize\n"
      "  given x[I]\n"
      "  left  y = sub(log(add(constant(value=1, dtype=f32), exp(x))),"
      " log(add(constant(value=1, dtype=f32), exp(neg(x)))))\n"
      "  right y = x\n";
  const std::string path = write("rounding.rules", kUpToRounding);
  EXPECT_EQ(run(RulesProve{.files = {path}, .again = true}).exit_code, ExitCode::ok);
  const Reply reply = run(RulesTest{.files = {path}, .format = Format::json});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.output;
  for (const Json& row : Json::parse(reply.output)) {
    EXPECT_EQ(row["verdict"], "proven up to rounding");
    EXPECT_GT(row["fired"], 10) << row;
  }
  const Reply lines = run(RulesTest{.files = {kExamples + "by_position.jsonl"}, .format = Format::json});
  EXPECT_EQ(lines.exit_code, ExitCode::user_error) << "one of the three is false";
  EXPECT_EQ(Json::parse(lines.output).size(), 3u) << lines.output;
}

// Confirmations of statements stay out of a plan that is written to a file.
TEST_F(RulesSession, KeepsNotesOutOfPlans) {
  Session session;
  std::string notes;
  session.on_note = [&](std::string_view note) { notes += note; };
  const Reply reply = session.execute(
      "CREATE MODEL two (b = 2, d = 3) INPUT x[b, d] AS SELECT relu(x) AS y FROM x; EXPLAIN (FORMAT plan) "
      "INFER two");
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_EQ(notes, "created model two\n");
  EXPECT_FALSE(reply.output.starts_with("created"));
  const std::string path = write("p.plan", reply.output);
  EXPECT_EQ(run(RulesApply{.plan = path, .files = {write("some.rules", kRules)}}).exit_code, ExitCode::ok);
}

TEST_F(RulesSession, NamesTheRulesItDoesNotUse) {
  const std::string rules = write("some.rules", std::string(kRules) + std::string(kWrongRule));
  RulesApply apply{.plan = kExamples + "attention.json", .files = {rules}};
  const Reply text = run(apply);
  EXPECT_EQ(text.exit_code, ExitCode::ok) << text.complaint;
  EXPECT_NE(text.output.find("not proven, so not used: wrong_sum; run weft rules prove for the reason\n"),
            std::string::npos)
      << text.output;
  apply.format = Format::json;
  EXPECT_EQ(Json::parse(run(apply).output)["refused"], Json::array({"wrong_sum"}));
}

TEST_F(RulesSession, AppliesRulesToAModelAndRunsIt) {
  const std::string rules = write("some.rules", kRules), plan = folder_.path() + "/better.plan";
  RulesApply apply{.plan = kExamples + "attention.json",
                   .files = {rules},
                   .to = plan,
                   .check = true,
                   .format = Format::json};
  apply.cache = folder_.path() + "/plans";
  const Reply cold = run(apply);
  ASSERT_EQ(cold.exit_code, ExitCode::ok) << cold.complaint;
  const Json answer = Json::parse(cold.output);
  EXPECT_LT(answer["seconds_after"], answer["seconds_before"]);
  EXPECT_EQ(answer["trail"].size(), 2u);
  EXPECT_LT(answer["check"]["relative_difference"], 1e-5);
  const Json warm = Json::parse(run(apply).output);
  EXPECT_EQ(warm["seconds_after"], answer["seconds_after"]);
  EXPECT_EQ(warm["counts"]["nodes_priced"], 0);
  // The output is a plan, and no rule makes it cheaper.
  apply.plan = plan;
  apply.check = false;
  EXPECT_EQ(Json::parse(run(apply).output)["trail"].size(), 0u);
}

TEST_F(RulesSession, ExplainsWhatHappenedToARule) {
  const std::string rules = write("some.rules", kRules);
  const Json answer = Json::parse(run(RulesWhy{.plan = kExamples + "attention.json",
                                               .rule = "merge_products",
                                               .files = {rules},
                                               .format = Format::json})
                                      .output);
  EXPECT_EQ(answer["taken"].size(), 2u);
  EXPECT_GT(answer["declined"].size(), 0u);
  const Reply unknown =
      run(RulesWhy{.plan = kExamples + "attention.json", .rule = "merge_product", .files = {rules}});
  EXPECT_EQ(unknown.exit_code, ExitCode::user_error);
  EXPECT_EQ(unknown.complaint, "error: no such rule: merge_product\n  did you mean 'merge_products'?\n");
}

TEST_F(RulesSession, ReportsMissingFilesAndModels) {
  EXPECT_EQ(run(RulesApply{.plan = "resnet5", .files = {write("some.rules", kRules)}}).complaint,
            "error: no such file or shipped model: resnet5\n  did you mean 'resnet50'?\n");
  EXPECT_EQ(run(RulesApply{.plan = "resnet50", .device = "a10"}).exit_code, ExitCode::user_error);
  EXPECT_EQ(run(RulesList{.files = {folder_.path() + "/none.rules"}}).exit_code, ExitCode::environment_error);
  EXPECT_EQ(run(RulesGenerate{.operators = "tasso"}).exit_code, ExitCode::user_error);
}

}  // namespace
}  // namespace weft::command
