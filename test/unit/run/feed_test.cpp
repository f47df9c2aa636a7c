// The rows that a rank reads are those of the whole batch, whatever other ranks read.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "temporary_folder.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/feed_inputs.h"
#include "weft/text/token_file.h"

namespace weft::session {
namespace {

struct Input {
  plan::Type type;
  std::vector<std::byte> bytes;
};

std::vector<Input> inputs_of(const plan::Graph& graph) {
  std::vector<Input> inputs;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::NodeView node = graph.view(plan::NodeId(n)); &node.op() == &ops::input())
      inputs.push_back({node.result_type(0), {}});
  return inputs;
}

// Rows [first, first + rows) of every input.
std::vector<Input> filled(const plan::Graph& graph, const run::Feed& feed, std::int64_t step,
                          std::int64_t first, std::int64_t rows) {
  std::vector<Input> inputs = inputs_of(graph);
  std::vector<run::InputMemory> memory;
  for (Input& input : inputs) {
    input.bytes.resize(static_cast<std::size_t>(input.type.bytes() / input.type.dims[0].size * rows));
    memory.push_back({input.type.dtype, input.bytes, first, rows});
  }
  feed.fill(memory, step);
  return inputs;
}

void expect_rows_of_the_whole(const plan::Graph& graph, const run::Feed& feed) {
  const std::int64_t batch = inputs_of(graph)[0].type.dims[0].size;
  for (const std::int64_t step : {0, 1, 7}) {
    const std::vector<Input> whole = filled(graph, feed, step, 0, batch);
    for (std::int64_t first = 0; first < batch; ++first)
      for (std::int64_t rows = 0; first + rows <= batch; ++rows) {
        const std::vector<Input> part = filled(graph, feed, step, first, rows);
        for (std::size_t i = 0; i < whole.size(); ++i) {
          const std::size_t row = whole[i].bytes.size() / static_cast<std::size_t>(batch);
          const std::span<const std::byte> expected =
              std::span(whole[i].bytes)
                  .subspan(row * static_cast<std::size_t>(first), row * static_cast<std::size_t>(rows));
          EXPECT_TRUE(std::ranges::equal(part[i].bytes, expected))
              << fmt::format("input {}, step {}, rows {} from {}", i, step, rows, first);
        }
      }
    EXPECT_FALSE(std::ranges::equal(filled(graph, feed, step + 1, 0, batch)[0].bytes, whole[0].bytes));
  }
}

plan::Graph digits() {
  return exec::bound_model("digits_mlp", {{"b", 6, {}}, {"p", 4, {}}, {"f", 3, {}}, {"c", 5, {}}});
}
plan::Graph text_model() {
  return exec::bound_model(
      "char_gpt",
      {{"b", 3, {}}, {"s", 5, {}}, {"d", 4, {}}, {"h", 1, {}}, {"layers", 1, {}}, {"v", 256, {}}});
}

TEST(Feed, TableRowsAreTheSameForEverySlice) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  std::ofstream file(path);
  for (int row = 0; row < 20; ++row)
    file << fmt::format("{},{},{},{},{}\n", row, row + 0.5, -row, 2 * row, row % 5);
  file.close();
  const plan::Graph graph = digits();
  auto feed = run::open_feed(path, graph, {.seed = 3});
  ASSERT_TRUE(feed.ok()) << feed.error().message;
  expect_rows_of_the_whole(graph, **feed);
}

// Ranks that are threads share a feed, and one of them reaches the next epoch first.
TEST(Feed, ThreadsInDifferentEpochsUseTheirOwnOrder) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  std::ofstream file(path);
  constexpr std::int64_t kBatch = 256;
  for (int row = 0; row < 2 * kBatch; ++row) file << fmt::format("{0},{0},{0},{0},{1}\n", row, row % 5);
  file.close();
  const plan::Graph graph =
      exec::bound_model("digits_mlp", {{"b", kBatch, {}}, {"p", 4, {}}, {"f", 3, {}}, {"c", 5, {}}});
  auto feed = run::open_feed(path, graph, {.seed = 3});
  ASSERT_TRUE(feed.ok()) << feed.error().message;
  const auto rows_at = [&](std::int64_t step) { return filled(graph, **feed, step, 0, kBatch)[0].bytes; };
  const std::int64_t steps[] = {1, 2, 5};  // in the first, second and third epoch
  std::vector<std::byte> expected[3];
  for (std::size_t i = 0; i < 3; ++i) expected[i] = rows_at(steps[i]);
  std::int64_t others[3] = {};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        for (int again = 0; again < 300; ++again) others[i] += rows_at(steps[i]) != expected[i];
      });
  }
  for (const std::int64_t count : others) EXPECT_EQ(count, 0);
}

TEST(Feed, TextWindowsAreTheSameForEverySlice) {
  const TemporaryFolder folder;
  const std::string path = folder / "text.txt";
  std::ofstream(path) << "it was the best of times, it was the worst of times, it was the age of wisdom";
  const plan::Graph graph = text_model();
  auto feed = run::open_feed(path, graph, {.seed = 3});
  ASSERT_TRUE(feed.ok()) << feed.error().message;
  expect_rows_of_the_whole(graph, **feed);
}

// Token n of the file is n, in documents of 30 tokens.
std::string write_tokens(const TemporaryFolder& folder, std::int32_t count) {
  auto writer = text::TokenFileWriter::open(folder / "tokens", 256);
  for (std::int32_t first = 0; first < count; first += 30) {
    std::vector<std::int32_t> ids;
    for (std::int32_t id = first; id < std::min(first + 30, count); ++id) ids.push_back(id);
    EXPECT_TRUE(writer->add_document(ids).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  return folder / "tokens.bin";
}

std::vector<std::int32_t> integers(const Input& input) {
  std::vector<std::int32_t> numbers(input.bytes.size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), input.bytes.data(), input.bytes.size());
  return numbers;
}

TEST(Feed, TokenSamplesAreTheSameForEverySlice) {
  const TemporaryFolder folder;
  const plan::Graph graph = text_model();
  auto feed = run::open_feed(write_tokens(folder, 200), graph, {.seed = 3});
  ASSERT_TRUE(feed.ok()) << feed.error().message;
  expect_rows_of_the_whole(graph, **feed);
}

// 91 tokens are 18 samples of 5 inputs and their targets, which is six steps of three.
TEST(Feed, AnEpochHasEverySampleOfTokensOnce) {
  const TemporaryFolder folder;
  const plan::Graph graph = text_model();
  auto feed = run::open_feed(write_tokens(folder, 91 + 11), graph, {.holdout = 11, .seed = 3});
  ASSERT_TRUE(feed.ok()) << feed.error().message;
  std::vector<std::int32_t> orders[2];
  for (std::int64_t step = 0; step < 12; ++step) {
    const std::vector<Input> inputs = filled(graph, **feed, step, 0, 3);
    const std::vector<std::int32_t> tokens = integers(inputs[0]), targets = integers(inputs[1]);
    for (std::size_t row = 0; row < 3; ++row) {
      orders[step / 6].push_back(tokens[row * 5]);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(tokens[row * 5 + i], tokens[row * 5] + static_cast<std::int32_t>(i));
        EXPECT_EQ(targets[row * 5 + i], tokens[row * 5 + i] + 1);
      }
    }
  }
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<std::int32_t>& order : orders) {
    std::ranges::sort(order);
    for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(order[i], static_cast<std::int32_t>(i * 5));
  }
  EXPECT_EQ((*feed)->test_examples(), 2);
}

TEST(Feed, SyntheticNumbersAreTheSameForEverySlice) {
  for (const plan::Graph& graph : {digits(), text_model()})
    expect_rows_of_the_whole(graph, *run::made_up_feed(graph, 5));
}

TEST(Feed, SyntheticIntegersAreInRange) {
  const plan::Graph graph = digits();
  const auto feed = run::made_up_feed(graph, 5);
  bool seen[5] = {};
  for (std::int64_t step = 0; step < 50; ++step) {
    const Input labels = filled(graph, *feed, step, 0, 6)[1];
    for (std::size_t i = 0; i < 6; ++i) {
      std::int32_t label = -1;
      std::memcpy(&label, labels.bytes.data() + i * sizeof label, sizeof label);
      ASSERT_GE(label, 0);
      ASSERT_LT(label, 5);
      seen[label] = true;
    }
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool each) { return each; }));
}

// Where classes and the batch are sliced, a rank holds all labels and counts some of them. They are
// still labels, where a negative one means that its row is ignored.
TEST(Feed, RecognizesLabelsThatAreSlicedFirst) {
  for (const std::string_view moved :
       {"slice %0 {along=b, begin=0, end=2}", "slice-across %0 {axis=rank, along=b}"}) {
    const plan::Graph graph = plan::read(fmt::format("plan p\n"
                                                     "%0 = input {{name=label, type=i32[b=4]}}\n"
                                                     "%1 = input {{name=ones, type=f32[c=5]}}\n"
                                                     "%2 = {}\n"
                                                     "%3 = labelled %2 {{classes=5, dtype=f32}}\n"
                                                     "%4 = gather %0, %1 {{along=c}}\n"
                                                     "return y=%3, z=%4\n",
                                                     moved),
                                         ops::all())
                                  .value();
    const run::FeedInput label = run::inputs_of(graph).front();
    EXPECT_TRUE(label.may_be_negative) << moved;
    EXPECT_EQ(label.limit, 5) << moved;
  }
}

}  // namespace
}  // namespace weft::session
