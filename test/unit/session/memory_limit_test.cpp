// TRAIN within a memory limit: what a rank really holds, bitwise equal results, and what is
// rejected.
#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kText = WEFT_SOURCE_DIR "/README.md";
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// 15.7 MiB; within 7 MiB, layers are recomputed and some tensors spilled.
constexpr std::string_view kSizes = "b = 8, s = 64, d = 96, h = 4, layers = 3";
// 73.8 MiB: large enough to be visible beside a process's own memory.
constexpr std::string_view kLargeSizes = "b = 8, s = 128, d = 192, h = 4, layers = 4";

struct Learned {
  nlohmann::json said;
  std::map<std::string, std::string> tensors;
};

Learned learn(const std::string& on, const std::string& with) {
  const TemporaryFolder folder;
  const std::string file = folder / "learned.safetensors";
  Session session;
  Learned run;
  run.said = answer(session,
                    fmt::format("TRAIN char_gpt {} FROM '{}' STEPS 2 WITH ({}, checkpoint = '{}', seed = 3, "
                                "threads = 2)",
                                on, kText, with, file));
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (loaded.ok())
    for (const formats::TensorEntry& entry : loaded->tensors)
      run.tensors[std::string(entry.name)] =
          std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
  return run;
}

// The largest resident size of the ranks that this process started and that have ended, in bytes.
double held_by_children() {
  struct rusage used {};
  getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_maxrss) * 1024;
}

TEST(MemoryLimit, RanksStayWithinIt) {
  WEFT_LONG_TEST();
  constexpr double kMiB = 1 << 20, kLimit = 30 * kMiB, kMargin = 8 * kMiB;
  learn("ON LOCAL 2", "b = 2, s = 4, d = 8, h = 1, layers = 1");
  const double base = held_by_children();
  const std::string plan = fmt::format("{}, distribution = 'rank=2: slice b'", kLargeSizes);
  const Learned limited = learn("ON LOCAL 2", plan + ", memory = '30 MiB'");
  // Sanitizers use as much memory again on top of what is counted.
  if (!kSanitized) EXPECT_LT(held_by_children(), base + kLimit + kMargin);
  EXPECT_TRUE(limited.said.contains("recompute")) << limited.said.dump();
  const Learned whole = learn("ON LOCAL 2", plan);
  EXPECT_GT(held_by_children(), base + kLimit + kMargin) << "the limit had no effect, so the test is void";
  EXPECT_EQ(limited.said["last_loss"], whole.said["last_loss"]);
  EXPECT_EQ(limited.tensors, whole.tensors);
}

TEST(MemoryLimit, OneRankRecomputesAndSpillsWithEqualBits) {
  const Learned whole = learn("", std::string(kSizes));
  const Learned tight = learn("", fmt::format("{}, memory = '7 MiB'", kSizes));
  EXPECT_TRUE(tight.said.contains("recompute")) << tight.said.dump();
  EXPECT_EQ(tight.said.value("spills", false), true) << tight.said.dump();
  EXPECT_EQ(tight.said["last_loss"], whole.said["last_loss"]);
  EXPECT_EQ(tight.tensors, whole.tensors);
}

TEST(MemoryLimit, NarrowTypesGiveEqualBitsWithinIt) {
  struct Case {
    std::string_view precision, limit;
    bool spills;
  };
  for (const Case& one : {Case{"bf16", "10 MiB", false}, Case{"f16", "7 MiB", true}}) {
    const std::string sizes = fmt::format("{}, precision = {}", kSizes, one.precision);
    const Learned whole = learn("", sizes);
    const Learned tight = learn("", fmt::format("{}, memory = '{}'", sizes, one.limit));
    EXPECT_TRUE(tight.said.contains("recompute")) << tight.said.dump();
    EXPECT_EQ(tight.said.value("spills", false), one.spills) << tight.said.dump();
    EXPECT_EQ(tight.said["last_loss"], whole.said["last_loss"]) << one.precision;
    EXPECT_EQ(tight.tensors, whole.tensors) << one.precision;
  }
}

TEST(MemoryLimit, ExplainShowsWhatTrainDoes) {
  const auto explained = [](const std::string& how, const std::string& on, const std::string& limit) {
    Session session;
    return answer(session,
                  fmt::format("EXPLAIN {} TRAIN char_gpt {} STEPS 1 WITH ({}, memory_limit = '{}', "
                              "threads = 2, keep_measurements = false, rules = false, prove = false)",
                              how, on, kSizes, limit));
  };
  EXPECT_FALSE(explained("", "", "64 MiB").contains("within_limit"));
  const nlohmann::json some = explained("", "", "12 MiB"), few = explained("ANALYZE", "", "7 MiB");
  EXPECT_TRUE(some.at("within_limit").get<std::string>().starts_with("within 12 MiB per rank: recomputed"));
  EXPECT_FALSE(some.contains("spilled_bytes"));
  EXPECT_TRUE(few.at("within_limit").get<std::string>().ends_with("spilled tensors are kept in a file"));
  EXPECT_GT(few.at("spilled_bytes").get<double>(), 0);
  EXPECT_GT(few.at("seconds_of_spilled").get<double>(), 0);
  EXPECT_LE(few.at("measured").at("memory_bytes").get<double>(), 7 << 20);
  // Ranks run the fitted program, not the one that would not fit.
  const nlohmann::json ranks = explained("ANALYZE", "ON LOCAL 2", "6 MiB', distribution = 'rank=2: slice b");
  EXPECT_GT(ranks.at("seconds_of_spilled").get<double>(), 0);
  EXPECT_GT(ranks.at("measured").at("step_seconds").get<double>(), 0);
}

// "19.4 MiB" in the error.
std::pair<double, std::string> least_named(const std::string& said) {
  const std::string_view before = "the smallest needs ";
  const std::size_t at = said.find(before);
  if (at == std::string::npos) throw std::runtime_error(said);
  std::size_t digits = 0;
  const std::string rest = said.substr(at + before.size());
  const double size = std::stod(rest, &digits);
  return {size, rest.substr(digits + 1, rest.find(',') - digits - 1)};
}

TEST(MemoryLimit, TheReportedMinimumSufficesAndLessDoesNot) {
  for (const std::string& sizes :
       {fmt::format("{}, rules = false", kSizes),
        std::string("b = 4, s = 64, d = 64, h = 2, layers = 1, v = 6000, tiled_loss = true")}) {
    const auto within = [&](const std::string& limit) {
      return fmt::format(
          "TRAIN char_gpt FROM '{}' STEPS 1 WITH ({}, threads = 2, prove = false, memory = '{}')", kText,
          sizes, limit);
    };
    Session session;
    const std::string said = complaint(session, within("1 MiB"));
    EXPECT_NE(said.find("no plan of char_gpt trains within 1 MiB per rank; the smallest needs"),
              std::string::npos)
        << said;
    const auto [size, unit] = least_named(said);
    Session enough, too_little;
    EXPECT_TRUE(answer(enough, within(fmt::format("{} {}", size, unit))).contains("last_loss"));
    const std::string refused = complaint(too_little, within(fmt::format("{} {}", 0.985 * size, unit)));
    EXPECT_EQ(least_named(refused).first, size) << refused;
  }
}

// Tiles need memory besides their assembled result: without room for them, collectives stay whole.
TEST(MemoryLimit, DoesNotTileIfTilesDoNotFit) {
  const std::string sizes =
      "b = 8, s = 64, d = 64, h = 4, layers = 2, prove = false, distribution = 'rank=2: slice "
      "h, f, v, s'";
  const Learned whole = learn("ON LOCAL 2", sizes + ", tile_collectives = off, memory = '4 MiB'");
  const Learned tiled = learn("ON LOCAL 2", sizes + ", tile_collectives = 4, memory = '4 MiB'");
  EXPECT_EQ(tiled.said.value("untiled", false), true) << tiled.said.dump();
  EXPECT_EQ(tiled.said["recompute"], whole.said["recompute"]);
  EXPECT_EQ(tiled.tensors, whole.tensors);
  const Learned roomy = learn("ON LOCAL 2", sizes + ", tile_collectives = 4, memory = '40 MiB'");
  EXPECT_FALSE(roomy.said.contains("untiled")) << roomy.said.dump();
}

// Spill space is reserved before the first step, so a missing folder is reported then.
TEST(MemoryLimit, ReportsAMissingSpillFolder) {
  Session session;
  const std::string said = complaint(
      session, fmt::format("TRAIN char_gpt FROM '{}' STEPS 1 WITH ({}, memory = '7 MiB', checkpoint = "
                           "'/nowhere/model.safetensors')",
                           kText, kSizes));
  EXPECT_NE(said.find("/nowhere"), std::string::npos) << said;
}

}  // namespace
}  // namespace weft::session
