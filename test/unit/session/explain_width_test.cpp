// The output of EXPLAIN and SHOW fits the terminal, whatever the statement.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weft/app/explain/lines.h"
#include "weft/app/session/session.h"

namespace weft::session {
namespace {

void expect_fits(std::string_view text, std::size_t width) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    EXPECT_LE(explain::columns(text.substr(0, end)), width) << text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The longest of each kind: big models on big clusters, plans with measured times, listings.
TEST(Width, AnswersFitTheTerminal) {
  for (const std::string_view statement :
       {"EXPLAIN (MESH, OPERATORS, COLLECTIVES, ALTERNATIVES) TRAIN gpt3_175b ON pod WITH (b = 128, "
        "precision = bf16, layers = 1, prove = false, "
        "tile_collectives = off, distribution = 'node=4: slice b, shard optimizer; gpu=8: slice f, h, v, s')",
        "EXPLAIN (OPERATORS) TRAIN mixtral_8x7b WITH (layers = 1)", "EXPLAIN (OPERATORS) INFER alexnet",
        "EXPLAIN (SUMMARY) TRAIN gpt2 WITH (layers = 2)",
        "EXPLAIN (ANALYZE, OPERATORS) TRAIN digits_mlp STEPS 2 WITH (threads = 1)",
        "EXPLAIN (ANALYZE, OPERATORS, STAGES) TRAIN digits_mlp ON LOCAL 2 STEPS 2 WITH (threads = 1)",
        "SHOW MODELS", "SHOW LAYERS", "SHOW CLUSTERS", "SHOW DEVICES", "SHOW SETTINGS", "SHOW FUNCTIONS",
        "SHOW OPERATORS", "SHOW RULES", "DESCRIBE gpt3_175b", "DESCRIBE superpod"}) {
    Session session;  // plans only once for both widths
    for (const std::size_t width : {60, 80, 100}) {
      session.width = width;
      const Reply reply = session.execute(statement);
      ASSERT_EQ(reply.exit_code, ExitCode::ok) << statement << reply.complaint;
      SCOPED_TRACE(std::string(statement) + " at " + std::to_string(width));
      expect_fits(reply.output, width);
    }
  }
}

// One device, ranks, pipelines: the same lines in the same order below the headline, at most forty
// lines.
TEST(Report, StartsWithTheSameLinesForEveryTarget) {
  for (const std::string_view statement :
       {"EXPLAIN TRAIN digits_mlp", "EXPLAIN INFER digits_mlp", "EXPLAIN TRAIN digits_mlp ON LOCAL 2",
        "EXPLAIN TRAIN digits_mlp ON pod", "EXPLAIN TRAIN digits_mlp ON h100 WITH (micro_batches = 4)"}) {
    Session session;
    const Reply reply = session.execute(statement);
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    std::size_t at = 0;
    for (const std::string_view label :
         {"\n\nPlan ", "\nStep ", "\nMemory ", "\nTime ", "\nLimit ", "\nNext ", "\nSure "}) {
      const std::size_t found = reply.output.find(label, at);
      ASSERT_NE(found, std::string::npos) << label << reply.output;
      at = found;
    }
    EXPECT_LE(std::ranges::count(reply.output, '\n'), 40) << reply.output;
  }
}

// Recommendations hold: the precision that is reported as faster is faster when used.
TEST(Report, FasterPrecisionIsFaster) {
  const auto seconds = [](const std::string& precision) {
    Session session;
    session.format = Format::json;
    const Reply reply = session.execute("EXPLAIN TRAIN digits_mlp ON pod WITH (b = 4096, p = 8192, f = 8192" +
                                        precision + ")");
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    const std::size_t at = reply.output.find("\"step_seconds\":");
    EXPECT_NE(at, std::string::npos);
    return std::stod(reply.output.substr(at + 15));
  };
  Session session;
  const Reply reply =
      session.execute("EXPLAIN (SUMMARY) TRAIN digits_mlp ON pod WITH (b = 4096, p = 8192, f = 8192)");
  ASSERT_NE(reply.output.find("Next      precision = bf16"), std::string::npos) << reply.output;
  EXPECT_LT(seconds(", precision = bf16"), seconds(""));
}

}  // namespace
}  // namespace weft::session
