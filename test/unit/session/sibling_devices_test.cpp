// Updates are fused in the same way on every device of a kind, whatever its name and whether or not it
// was measured.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "weft/language/catalog.h"
#include "weft/language/shipped.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/cost/unit_seconds.h"

namespace weft::session {
namespace {

cluster::Cluster two_of(const cluster::Device& device) {
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = 50e9;
  link.latency_seconds = 5e-6;
  return {"two", device, {{"node", 2, link}}};
}

TEST(SiblingDevices, EveryShippedDeviceWithAMatrixUnitGroupsUpdates) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  int with_matrix_unit = 0;
  for (const auto& [name, device] : catalog.devices) {
    const auto costs = cost::step_costs(two_of(device), plan::Mesh{{{"node", 2}}});
    ASSERT_TRUE(costs.ok()) << name;
    EXPECT_EQ(costs->compile.accelerated, cost::has_matrix_unit(device)) << name;
    with_matrix_unit += cost::has_matrix_unit(device) ? 1 : 0;
  }
  EXPECT_GE(with_matrix_unit, 8);
}

TEST(SiblingDevices, EqualFiguresGiveEqualCostsUnderAnotherName) {
  for (const std::string reach : {"", ", reach = 1"}) {
    Session session;
    const std::string figures =
        "f32 = 67 TFLOP/s, tf32 = 494 TFLOP/s, f16 = 989 TFLOP/s, bf16 = 989 TFLOP/s, "
        "memory = 80 GiB, bandwidth = 3.35 TB/s, launch = 4 us" +
        reach;
    const auto step_on = [&](const std::string& device) {
      EXPECT_EQ(
          session
              .execute(fmt::format("CREATE DEVICE {} ({}); CREATE CLUSTER {}s AS 1 NODES OF 4 DEVICES {} "
                                   "LINK gpu WITHIN node (450 GB/s, 1.5 us)",
                                   device, figures, device, device))
              .exit_code,
          ExitCode::ok);
      return answer(session,
                    fmt::format("EXPLAIN (FORMAT json) TRAIN char_gpt ON {}s WITH (layers = 2, s = 32, d "
                                "= 32, h = 2, precision = bf16, distribution = 'gpu=4: slice b')",
                                device))
          .at("step_seconds")
          .get<double>();
    };
    EXPECT_DOUBLE_EQ(step_on("mine"), step_on("another"));
  }
}

// The launches of an update do not depend on whether the device was measured, which `reach`
// indicates.
TEST(SiblingDevices, AnUpdateHasTheSameLaunchesMeasuredOrNot) {
  const auto launches = [](const std::string& reach) {
    Session session;
    EXPECT_EQ(
        session
            .execute("CREATE DEVICE g (f32 = 67 TFLOP/s, bf16 = 989 TFLOP/s, memory = 80 GiB, bandwidth = 3 "
                     "TB/s, launch = 1 s" +
                     reach +
                     "); CREATE CLUSTER c AS 1 NODES OF 2 DEVICES g LINK gpu WITHIN node (450 GB/s, "
                     "1.5 us)")
            .exit_code,
        ExitCode::ok);
    const auto plan =
        answer(session,
               "EXPLAIN (FORMAT json) TRAIN digits_mlp ON c WITH (precision = bf16, distribution = "
               "'gpu=2: slice b', rules = false, buckets = off)");
    double update = 0;
    for (const auto& step : plan.at("phases"))
      if (step.at("step").get<std::string>() == "update") update = step.at("seconds_predicted");
    return std::lround(update);  // one second each
  };
  EXPECT_GT(launches(""), 0);
  EXPECT_EQ(launches(""), launches(", reach = 1"));
}

}  // namespace
}  // namespace weft::session
