// Tab completion at every cursor position; all completions offered are accepted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "weft/app/session/session.h"
#include "weft/planner/settings/settings.h"

namespace weft::session {
namespace {

const Session& prompt() {
  static const Session one;
  return one;
}

std::vector<std::string> offered(const std::string& before) { return prompt().complete(before).words; }

bool offers(const std::string& before, const std::string& word) {
  return std::ranges::count(offered(before), word) == 1;
}

TEST(Completion, OffersUserFunctions) {
  Session session;
  const auto offers_here = [&](const std::string& before, const std::string& word) {
    return std::ranges::count(session.complete(before).words, word) == 1;
  };
  EXPECT_TRUE(offers_here("CREATE F", "FUNCTION"));
  EXPECT_FALSE(offers_here("DROP FUNCTION ", "softplus"));
  ASSERT_EQ(session.execute("CREATE FUNCTION softplus(x) AS log(1 + exp(x))").complaint, "");
  for (const std::string before :
       {"DROP FUNCTION ", "DESCRIBE ", "CREATE MODEL m INPUT x AS SELECT ", "CREATE FUNCTION f(x) AS soft"})
    EXPECT_TRUE(offers_here(before, "softplus")) << before;
  // Listed among Weft's functions, by name.
  const std::string listed = session.execute("SHOW FUNCTIONS").output;
  const std::size_t at = listed.find("softplus(x)");
  ASSERT_NE(at, listed.npos);
  EXPECT_LT(listed.find("softmax(x)"), at);
  EXPECT_GT(listed.find("sort(x)"), at);
  EXPECT_EQ(listed.substr(at, listed.find('\n', at) - at).find("AS log(1 + exp(x))"), 51u);
}

TEST(Completion, OffersSettingsAndSizesInsideWith) {
  for (const std::string run :
       {"TRAIN gpt2 ", "EXPLAIN TRAIN gpt2 ON pod ", "explain (summary) train gpt2 on pod from 'x' ",
        "SHOW MODELS; INFER gpt2 ", "GENERATE gpt2 PROMPT 'it''s (' ", "-- WITH (\nTRAIN gpt2 "}) {
    for (const std::string with :
         {"WITH (", "with (", "WITH (b = 4, ", "WITH (distribution = 'node=4: slice b, f', "}) {
      EXPECT_TRUE(offers(run + with + "prec", "precision")) << run << with;
      EXPECT_TRUE(offers(run + with, "layers")) << run << with;
      EXPECT_TRUE(offers(run + with + "precision = ", "bf16")) << run << with;
      EXPECT_TRUE(offers(run + with + "optimizer=ad", "adamw")) << run << with;
      EXPECT_TRUE(offers(run + with + "prove = f", "false")) << run << with;
      EXPECT_FALSE(offers(run + with + "precision = ", "adamw"));
      EXPECT_TRUE(offered(run + with + "learning_rate = ").empty());
    }
    EXPECT_FALSE(offers(run + "WITH (b = 4) ", "precision"));
  }
  EXPECT_FALSE(offers("CREATE MODEL m (b = 4) INPUT x[b] AS WITH x AS (", "precision"));
}

// A setting accepts every value that is offered for it.
TEST(Completion, OfferedValuesAreAccepted) {
  int values = 0;
  Session fresh;
  for (const std::string_view name : planner::setting_names())
    for (const std::string& start : {fmt::format("SET {} = ", name), fmt::format("SET {} TO ", name)})
      for (const std::string& word : offered(start)) {
        const Reply reply = fresh.execute(start + word);
        EXPECT_EQ(reply.exit_code, ExitCode::ok) << start << word << reply.complaint;
        ++values;
      }
  EXPECT_GE(values, 80);
}

TEST(Completion, OffersTargetsAfterOn) {
  for (const std::string before :
       {"TRAIN gpt2 ON ", "EXPLAIN INFER gpt2 WITH (b = 4) on ", "TRAIN gpt2 FROM 'a' ON "})
    for (const std::string word : {"pod", "h100", "LOCAL", "GPU", "JOB"})
      EXPECT_TRUE(offers(before, word)) << before << word;
  EXPECT_TRUE(offers("TRAIN gpt2 ON lo", "LOCAL"));
}

TEST(Completion, OffersFilesInQuotes) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  for (const std::string name : {"my-data.npz", "my-data.csv", ".hidden", "inner/x.weft"})
    std::ofstream(folder / name) << "x";
  const std::string root = folder.path() + "/";
  for (const std::string before :
       {"TRAIN gpt2 FROM '", "TRAIN gpt2 FROM tokens = '", "LOAD gpt2 FROM '", "SAVE gpt2 TO '",
        "INFER gpt2 FROM 'a' INTO '", "RUN '", "TRAIN gpt2 WITH (b = 3, checkpoint = '", "SET log = '",
        "CREATE CLUSTER c FROM 'a', '", "TRAIN gpt2\n  FROM '"}) {
    const Completions found = prompt().complete(before + root + "my-d");
    EXPECT_EQ(found.words, (std::vector<std::string>{root + "my-data.csv", root + "my-data.npz"})) << before;
    EXPECT_EQ(found.replaced, root.size() + 4) << before;
    EXPECT_TRUE(offers(before + root + "in", root + "inner/")) << before;
    EXPECT_TRUE(offers(before + root + "inner/", root + "inner/x.weft")) << before;
    EXPECT_FALSE(offers(before + root, root + ".hidden"));
    EXPECT_TRUE(offers(before + root + ".h", root + ".hidden"));
    EXPECT_TRUE(offered(before + root + "nosuch/").empty());
  }
  EXPECT_TRUE(offered("GENERATE gpt2 PROMPT '" + root).empty());
  EXPECT_TRUE(offered("TRAIN gpt2 WITH (distribution = '" + root).empty());
}

TEST(Completion, OffersNamesOfTheCatalog) {
  EXPECT_TRUE(offers("TRAIN gp", "gpt2"));
  EXPECT_TRUE(offers("EXPLAIN (FORMAT meg", "megatron"));
  EXPECT_TRUE(offers("SHOW mo", "MODELS"));
  EXPECT_TRUE(offers("", "TRAIN"));
  EXPECT_TRUE(offers("SHOW MODELS; tr", "TRAIN"));
  EXPECT_EQ(prompt().complete("TRAIN gp").replaced, 2u);
}

}  // namespace
}  // namespace weft::session
