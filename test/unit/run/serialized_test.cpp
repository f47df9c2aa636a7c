// Data that files store and ranks exchange: every number is validated before it counts, indexes or
// names anything.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ranks_case.h"
#include "thorough.h"
#include "weft/runtime/run/algorithm_list.h"
#include "weft/runtime/run/serialized_training.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {
namespace {

using nlohmann::json;

// None of these is an integer as files write it.
const std::vector<std::string> kNoNumbers = {"",
                                             "-1",
                                             "-9223372036854775808",
                                             "1e3",
                                             "7x",
                                             "0x10",
                                             " 7",
                                             "7 ",
                                             "+7",
                                             "7.0",
                                             "7,0",
                                             "٧",
                                             "18446744073709551616",
                                             "nan",
                                             "true",
                                             "0b1",
                                             "7\n",
                                             "- 7",
                                             "1_000",
                                             std::string("7\0", 2),
                                             "99999999999999999999999999"};

formats::Checkpoint checkpoint_with(const std::string& key, const std::string& value) {
  formats::Checkpoint checkpoint;
  checkpoint.metadata = {{"model", "m"}, {"step", "12"}, {"seed", "5"}, {"sizes", "b=32,c=10"}};
  checkpoint.metadata[key] = value;
  return checkpoint;
}

TEST(Metadata, ReadsBackWhatWasWritten) {
  const auto read = from_checkpoint(checkpoint_with("note", "1e3"), "m", "f.safetensors");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->step, 12);
  EXPECT_EQ(read->seed, 5u);
  EXPECT_EQ(read->sizes, (decltype(read->sizes){{"b", 32}, {"c", 10}}));
  Weights weights;
  weights.model = "m";
  weights.step = 77;
  weights.seed = std::numeric_limits<std::uint64_t>::max();
  weights.sizes = {{"b", 1}, {"odd name", 1'000'000}};
  const auto again = from_checkpoint(to_checkpoint(weights), "m", "f");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->step, weights.step);
  EXPECT_EQ(again->seed, weights.seed);
  EXPECT_EQ(again->sizes, weights.sizes);
  formats::Checkpoint bare;  // of another program
  EXPECT_TRUE(from_checkpoint(bare, "m", "f").ok());
}

TEST(Metadata, RejectsInvalidNumbersWithExpectedFoundAndLocation) {
  for (const std::string& text : kNoNumbers) {
    for (const std::string key : {"step", "seed"}) {
      const auto read = from_checkpoint(checkpoint_with(key, text), "m", "f.safetensors");
      ASSERT_FALSE(read.ok()) << key << " " << text;
      EXPECT_EQ(read.error().message.find(
                    fmt::format("f.safetensors: metadata '{}': expected a whole number from 0 to ", key)),
                0u)
          << read.error().message;
      EXPECT_NE(read.error().message.find(", found '"), std::string::npos) << read.error().message;
    }
    const auto sizes = from_checkpoint(checkpoint_with("sizes", "b=" + text), "m", "f.safetensors");
    EXPECT_FALSE(sizes.ok()) << text;
  }
  // Step numbers are added to and multiplied, so they are limited.
  EXPECT_FALSE(from_checkpoint(checkpoint_with("step", "9223372036854775807"), "m", "f").ok());
  for (const std::string text :
       {"b", "=3", "b=3,", ",b=3", "b=3,,c=4", "b=0", "b=-3", "b==3", "b=3;c=4", "b=3 ,c=4", "b=3,c=4,b=3"})
    EXPECT_FALSE(from_checkpoint(checkpoint_with("sizes", text), "m", "f").ok()) << text;
}

// The counter among the tensors also comes from the file.
TEST(Metadata, RejectsNegativeStepCounts) {
  const auto counting = [](const std::string& name, plan::DType dtype, std::int64_t steps) {
    const auto bytes =
        std::as_bytes(std::span(&steps, 1)).first(static_cast<std::size_t>(plan::size_in_bytes(dtype)));
    formats::Checkpoint checkpoint;
    checkpoint.tensors.push_back({name, dtype, {}, bytes});
    return from_checkpoint(checkpoint, "m", "f.safetensors");
  };
  for (const std::string name : {"step", "generator.step"}) {
    for (const plan::DType dtype : {plan::DType::i32, plan::DType::i64}) {
      EXPECT_TRUE(counting(name, dtype, 0).ok());
      EXPECT_TRUE(counting(name, dtype, 1'000'000).ok());
      const auto read = counting(name, dtype, -7);
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(
          read.error().message,
          fmt::format(
              "f.safetensors: tensor '{}': expected a count of steps from 0 to 9007199254740992, found -7",
              name));
    }
    EXPECT_FALSE(counting(name, plan::DType::i64, std::numeric_limits<std::int64_t>::min()).ok());
    EXPECT_FALSE(counting(name, plan::DType::i64, std::numeric_limits<std::int64_t>::max()).ok());
  }
  EXPECT_TRUE(counting("footstep", plan::DType::i64, -7).ok());
}

// What a program may write in place of an integer.
const std::vector<json> kOddValues = {-1,
                                      3,
                                      7,
                                      255,
                                      256,
                                      1 << 30,
                                      1e30,
                                      1.5,
                                      0.0,
                                      true,
                                      nullptr,
                                      "1",
                                      json::array(),
                                      json::object(),
                                      std::numeric_limits<std::uint64_t>::max(),
                                      std::numeric_limits<std::int64_t>::min()};

TEST(AlgorithmList, RejectsValuesOutsideEnums) {
  using collective::Priority;
  using collective::Protocol;
  std::vector<program::ChosenAlgorithm> algorithms(3);
  algorithms[0] = {.name = "ring", .protocol = Protocol::ll128, .priority = Priority::low};
  algorithms[1] = {.name = "tree", .priority = Priority::high};
  algorithms[2].name = "";
  const std::string text = print_algorithms(algorithms);
  const auto expect_sound = [](const std::string& changed) {
    const auto read = read_algorithms(changed);
    if (!read.ok()) return;
    for (const program::ChosenAlgorithm& each : *read) {
      EXPECT_LT(static_cast<std::size_t>(each.priority), collective::kPriorities) << changed;
      EXPECT_LE(each.protocol.value_or(Protocol::simple), Protocol::ll128) << changed;
    }
  };
  const auto same = read_algorithms(text);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(print_algorithms(*same), text);
  for (const char* key : {"priority", "protocol", "name"})
    for (const json& odd : kOddValues) {
      json list = json::parse(text);
      list[0][key] = odd;
      if (key != std::string("name") || !odd.is_string()) {
        const auto read = read_algorithms(list.dump());
        ASSERT_FALSE(read.ok()) << list.dump();
        EXPECT_EQ(read.error().message.find(fmt::format("algorithm 1 of a list: {}: expected ", key)), 0u)
            << read.error().message;
      }
    }
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      expect_sound(changed);
      expect_sound(text.substr(0, at));
    }
}

// The paths of all values in a JSON text, the outermost last.
void for_values(json& value, const std::function<void(json&)>& visit) {
  for (json& each : value)
    if (value.is_structured()) for_values(each, visit);
  visit(value);
}

TEST(SerializedTraining, IsValidOrRejected) {
  const session::Learner learner = session::learner("digits_mlp", {{"b", 8, {}}}, train::Optimizer::sgd);
  const distribute::DistributedPlan plan = session::spread(learner, "rank=2: slice b");
  LocalRanksOptions options;
  options.ranks = 2;
  options.algorithms = {{.name = "ring"}};
  Weights start;
  start.model = "digits_mlp";
  start.tensors.emplace("w", Tensor{plan::DType::f32, {2, 3}, std::vector<std::byte>(24)});
  const std::vector<std::byte> part = print_training_part(plan, options, "{}", start, 3, {}, {});
  ASSERT_TRUE(read_training_part(part).ok());

  std::uint64_t size = 0;
  std::memcpy(&size, part.data(), sizeof size);
  const std::string text(reinterpret_cast<const char*>(part.data()) + sizeof size, size);
  const auto with_header = [&](const std::string& header) {
    std::vector<std::byte> made(sizeof size + header.size());
    const std::uint64_t length = header.size();
    std::memcpy(made.data(), &length, sizeof length);
    std::memcpy(made.data() + sizeof length, header.data(), header.size());
    made.insert(made.end(), part.end() - 24, part.end());
    return made;
  };
  const auto expect_sound = [](std::span<const std::byte> changed) {
    const auto read = read_training_part(changed);
    if (!read.ok()) return;
    EXPECT_GE(read->options.ranks, 1);
    EXPECT_FALSE(comm::name(read->options.transport).empty());
    EXPECT_LE(read->schedule.kind, ScheduleKind::step);
    for (const auto& [name, tensor] : read->start.tensors) {
      std::int64_t bytes = plan::size_in_bytes(tensor.dtype);
      for (const std::int64_t dim : tensor.shape) bytes *= dim;
      EXPECT_EQ(bytes, static_cast<std::int64_t>(tensor.bytes.size()));
    }
  };
  // Every value of the header in turn.
  std::size_t values = 0;
  json header = json::parse(text);
  for_values(header, [&](json&) { ++values; });
  std::mt19937 random(1);
  for (std::size_t which = 0; which < values; ++which) {
    const json& odd = kOddValues[random() % kOddValues.size()];
    json changed = header;
    std::size_t at = 0;
    for_values(changed, [&](json& value) {
      if (at++ == which) value = odd;
    });
    expect_sound(with_header(changed.dump()));
  }
  // Changed bytes, and truncation.
  for (int i = 0; i < thorough_or(3000, 60); ++i) {
    std::vector<std::byte> changed = part;
    changed[random() % changed.size()] ^= static_cast<std::byte>(1u << random() % 8);
    expect_sound(changed);
    expect_sound(std::span(part).first(random() % part.size()));
  }
}

}  // namespace
}  // namespace weft::run
