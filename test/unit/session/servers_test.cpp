// Summation servers as a user requests them: training results, what EXPLAIN reports, and what is
// rejected.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "weft/app/session/session.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kDigitTable = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

double loss_with(const std::string& with) {
  Session session;
  return answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 12 ON LOCAL 3 WITH (b = 31, "
                                     "replica_check_every = 3, rules = false, "
                                     "transport = inproc, distribution = 'rank=3: slice b'{})",
                                     kDigitTable, with))["last_loss"]
      .get<double>();
}

TEST(Servers, RanksTrainAsWithoutServers) {
  const double among_ranks = loss_with(""), with_one = loss_with(", parameter_servers = 1");
  EXPECT_NEAR(with_one, among_ranks, 1e-4 * among_ranks);
  EXPECT_EQ(loss_with(", parameter_servers = 2"), with_one);
  EXPECT_EQ(loss_with(", parameter_servers = off"), among_ranks);
}

Json plan_on_wires(const std::string& with) {
  Session session;
  return answer(
      session,
      fmt::format("EXPLAIN TRAIN gpt2 ON ethernet WITH (b = 32, layers = 1, v = 5000, prove = false, "
                  "distribution = 'node=8: slice b'{})",
                  with));
}

// On slow links servers shorten the step, and more of them shorten it more, up to the number of
// ranks.
TEST(Servers, UsesSpareHostsIfThatIsFaster) {
  const auto seconds = [](const Json& plan) { return plan["step_seconds"].get<double>(); };
  const Json none = plan_on_wires(""), two = plan_on_wires(", parameter_servers = 2"),
             eight = plan_on_wires(", parameter_servers = 8");
  EXPECT_FALSE(none.contains("servers"));
  EXPECT_LT(seconds(two), seconds(none));
  // Among 8 ranks, a rank sends 1.75 times the data; if servers sum everything, it sends the data
  // once.
  const auto sent = [](const Json& plan) { return plan["bytes_sent_by_axis"]["node"].get<double>(); };
  EXPECT_LT(sent(two), sent(none));
  EXPECT_NEAR(sent(eight) / sent(none), 1 / 1.75, 0.01);
  EXPECT_LT(seconds(eight), seconds(two));
  EXPECT_NE(two["servers"].get<std::string>().find("2 sum "), std::string::npos) << two["servers"];
  EXPECT_NE(two["servers"].get<std::string>().find("bytes in each direction, 1.75 times without servers"),
            std::string::npos)
      << two["servers"];
  EXPECT_NE(eight["servers"].get<std::string>().find("8 sum 100 % of "), std::string::npos)
      << eight["servers"];
}

TEST(Servers, RejectsUnsupportedCombinations) {
  Session session;
  for (const std::string number : {"0", "-1", "1.5", "65", "'2'", "many"})
    EXPECT_NE(complaint(session, "SET parameter_servers = " + number).find("expected off or 1 to 64 servers"),
              std::string::npos)
        << number;
  const auto refused = [&](const std::string& on, const std::string& with) {
    return complaint(session, fmt::format("EXPLAIN TRAIN digits_mlp {} WITH ({})", on, with));
  };
  EXPECT_NE(refused("ON dgx1", "parameter_servers = 1")
                .find("servers cannot be combined with a cluster without a network"),
            std::string::npos);
  EXPECT_NE(refused("ON LOCAL 2", "parameter_servers = 1, micro_batches = 2")
                .find("servers cannot be combined with stages or micro-batches"),
            std::string::npos);
  EXPECT_NE(refused("ON LOCAL 2", "parameter_servers = 1, algorithm = 'all_reduce_ring'")
                .find("servers cannot be combined with algorithm"),
            std::string::npos);
  EXPECT_NE(complaint(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1 WITH (parameter_servers = 1)",
                                           kDigitTable))
                .find("servers cannot be combined with a single rank"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::session
