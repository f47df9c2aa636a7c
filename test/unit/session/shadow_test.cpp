// A user's layer or model may have the name of a shipped one. Statements then use the user's, and
// shipped models still use the shipped one.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/app/session/session.h"

namespace weft::session {
namespace {

std::string said(Session& session, const std::string& text) {
  const Reply reply = session.execute(text);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << text << "\n" << reply.complaint;
  return reply.output;
}

const std::string kTwice = "CREATE LAYER gpt_block(x[b, s, d]) AS SELECT x * 2 FROM x";
const std::string kShippedPlan =
    "EXPLAIN (FORMAT plan) INFER gpt2 WITH (s = 4, d = 4, h = 2, layers = 2, v = 8, p = 4, rules = false)";
const std::string kOwn =
    "CREATE MODEL own (b = 1, s = 2, d = 12) INPUT x[b, s, d] AS SELECT * FROM gpt_block(x)";
const std::string kOwnPlan = "EXPLAIN (FORMAT plan) INFER own WITH (rules = false)";

TEST(Shadow, ALayerShadowsAShippedOne) {
  Session session;
  const std::string before = said(session, kShippedPlan);
  const Reply created = session.execute(kTwice);
  ASSERT_EQ(created.exit_code, ExitCode::ok) << created.complaint;
  EXPECT_TRUE(created.complaint.starts_with("note: layer gpt_block shadows the shipped layer of that name\n"))
      << created.complaint;
  EXPECT_EQ(created.output.find("note"), std::string::npos);
  EXPECT_EQ(said(session, kShippedPlan), before) << "the shipped model uses the shipped layer";
  said(session, kOwn);
  EXPECT_EQ(said(session, kOwnPlan).find("contract"), std::string::npos)
      << "the user's model uses the user's layer";
  // The user's own layer is not shadowed again but must be replaced.
  EXPECT_EQ(session.execute(kTwice).exit_code, ExitCode::user_error);
  EXPECT_EQ(session.execute("CREATE OR REPLACE LAYER gpt_block(x[b, s, d]) AS SELECT x * 3 FROM x").complaint,
            "");
  EXPECT_EQ(said(session, kShippedPlan), before);
  said(session, "DROP LAYER gpt_block");
  EXPECT_NE(said(session, kOwnPlan).find("contract"), std::string::npos) << "the shipped layer is back";
  EXPECT_EQ(said(session, kShippedPlan), before);
}

// A layer may call a shipped one that calls the shipped layer of the first one's name: that is not
// a cycle.
TEST(Shadow, AShippedLayerMayCallTheShadowedName) {
  Session session;
  said(session,
       "CREATE LAYER gated_mlp(x[b, s, d]) AS SELECT * FROM llama3_block(x, h = 1, g = 1, e = 2, f = 2)");
  said(session, "CREATE MODEL own (b = 1, s = 2, d = 4) INPUT x[b, s, d] AS SELECT * FROM gated_mlp(x)");
  EXPECT_NE(said(session, "EXPLAIN (FORMAT plan) INFER own").find("contract"), std::string::npos);
  const Reply circle =
      session.execute("CREATE LAYER rotary_attention(x[b, s, d]) AS SELECT * FROM rotary_attention(x)");
  EXPECT_NE(circle.complaint.find("calls itself"), std::string::npos) << circle.complaint;
}

TEST(Shadow, AModelShadowsAShippedOne) {
  Session session;
  const std::string create = "CREATE MODEL digits_mlp (b = 2) INPUT x[b] AS SELECT relu(x) AS y FROM x";
  const Reply created = session.execute(create);
  ASSERT_EQ(created.exit_code, ExitCode::ok) << created.complaint;
  EXPECT_TRUE(created.complaint.starts_with("note: model digits_mlp shadows the shipped model"));
  EXPECT_NE(said(session, "EXPLAIN (FORMAT plan) INFER digits_mlp").find("relu"), std::string::npos);
  EXPECT_EQ(session.execute(create).exit_code, ExitCode::user_error);
  said(session, "DROP MODEL digits_mlp");
  EXPECT_NE(said(session, "EXPLAIN (FORMAT plan) INFER digits_mlp").find("cross-entropy"), std::string::npos);
  said(session, "DROP MODEL digits_mlp");
  EXPECT_EQ(session.execute("DROP MODEL digits_mlp").exit_code, ExitCode::user_error);
}

// An invalid definition shadows nothing.
TEST(Shadow, AnErrorChangesNothing) {
  Session session;
  const std::string before = said(session, kShippedPlan);
  const Reply wrong =
      session.execute("CREATE LAYER gpt_block(x[b, s, d]) (b = 1, s = 1, d = 1) AS SELECT xx FROM x");
  EXPECT_EQ(wrong.exit_code, ExitCode::user_error);
  EXPECT_EQ(wrong.complaint.find("note"), std::string::npos) << wrong.complaint;
  EXPECT_EQ(said(session, kShippedPlan), before);
  said(session, "DROP LAYER gpt_block");
  EXPECT_EQ(session.execute(kShippedPlan).exit_code, ExitCode::user_error);
}

}  // namespace
}  // namespace weft::session
