// Batches that are read and copied during the previous step: on a fake device, or on the one that
// WEFT_TEST_DEVICE names.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "distant_device.h"
#include "ranks_case.h"
#include "weft/runtime/run/batch_prefetcher.h"
#include "weft/runtime/run/fit_program.h"
#include "weft/runtime/run/training.h"

namespace weft::session {
namespace {

using namespace std::chrono_literals;

// Applies a test's change to each batch, and records which batches were read by which thread.
class WatchedFeed final : public run::Feed {
 public:
  using Change = std::function<void(std::span<const run::InputMemory>, std::int64_t step)>;
  WatchedFeed(std::shared_ptr<const run::Feed> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {
    name_inputs({inner_->input_names().begin(), inner_->input_names().end()});
  }

  std::string_view example() const override { return inner_->example(); }
  std::int64_t examples_per_step() const override { return inner_->examples_per_step(); }
  std::int64_t test_examples() const override { return 0; }
  void fill_test(exec::Rank&, std::int64_t) const override {}
  Digest digest() const override { return inner_->digest(); }
  void fill(std::span<const run::InputMemory> inputs, std::int64_t step) const override {
    {
      const std::lock_guard lock(mutex_);
      read_.push_back(step);
      by_caller_ = by_caller_ || std::this_thread::get_id() == caller_;
    }
    begun_.notify_all();
    inner_->fill(inputs, step);
    if (change_) change_(inputs, step);
  }

  bool await(std::int64_t step) const {
    std::unique_lock lock(mutex_);
    return begun_.wait_for(lock, 20s, [&] { return !read_.empty() && read_.back() >= step; });
  }
  std::vector<std::int64_t> read() const {
    const std::lock_guard lock(mutex_);
    return read_;
  }
  bool by_caller() const { return by_caller_; }

 private:
  const std::shared_ptr<const run::Feed> inner_;
  const Change change_;
  const std::thread::id caller_ = std::this_thread::get_id();
  mutable std::mutex mutex_;
  mutable std::condition_variable begun_;
  mutable std::vector<std::int64_t> read_;
  mutable bool by_caller_ = false;
};

const Learner& digits() {
  static const Learner mlp = learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 5, {}}},
                                     train::Optimizer::momentum);
  return mlp;
}

std::shared_ptr<device::Device> far_device() {
  const char* const named = std::getenv("WEFT_TEST_DEVICE");
  if (named == nullptr) return std::make_shared<device::DistantDevice>();
  return device::open_device(named).value();
}

// A rank whose memory the host cannot access; `limited`: to what its program needs.
std::unique_ptr<exec::Rank> far_rank(bool limited = false) {
  const auto device = far_device();
  const auto start = [&](std::int64_t limit) {
    auto fitted = run::fit_program(std::make_shared<plan::Graph>(digits().graph.clone()),
                                   {.accelerated = true, .tiles = false}, 0, device);
    exec::RankOptions options;
    options.device = device;
    options.memory_limit = limit;
    return exec::Rank::start(std::move(fitted.value().program), options).value();
  };
  auto rank = start(0);
  if (limited) rank = start(rank->bytes());
  EXPECT_TRUE(run::write_initial(*rank, 7).ok());
  return rank;
}

run::Weights learned(exec::Rank& rank) {
  run::Weights weights = from_seed(7);
  EXPECT_TRUE(run::read_weights(rank, weights).ok());
  return weights;
}

TEST(BatchPrefetcher, GivesEqualBitsForEqualBatches) {
  const auto by_turns = far_rank(/*limited=*/true), ahead = far_rank(), slow = far_rank();
  const WatchedFeed plain(digits().feed, {}), watched(digits().feed, {});
  const WatchedFeed late(digits().feed, [](auto, auto) { std::this_thread::sleep_for(2ms); });
  const auto expected = run::run_training(*by_turns, plain, {.steps = 9});
  ASSERT_TRUE(expected.ok());
  // If the limit leaves no room for a second batch, batches are not read ahead.
  EXPECT_TRUE(plain.by_caller());
  EXPECT_EQ(plain.read(), std::vector<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  for (const auto& [rank, feed] : {std::pair(ahead.get(), &watched), std::pair(slow.get(), &late)}) {
    const auto outcome = run::run_training(*rank, *feed, {.steps = 9});
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->last_loss, expected->last_loss);
    expect_same_bits(learned(*rank), learned(*by_turns));
    EXPECT_FALSE(feed->by_caller());
    // Each once and in order; the batch after the last may or may not have been read.
    std::vector<std::int64_t> read = feed->read();
    if (read.size() == 10) read.pop_back();
    EXPECT_EQ(read, plain.read());
  }
  EXPECT_GT(ahead->bytes(), by_turns->bytes());  // the second buffer is counted
}

TEST(BatchPrefetcher, ReadsTheNextBatchDuringTheStep) {
  const auto rank = far_rank();
  const WatchedFeed feed(digits().feed, {});
  run::BatchPrefetcher batches(*rank, feed);
  batches.bring(0);
  EXPECT_TRUE(feed.await(1));  // before it was requested, and before any step ran
  ASSERT_TRUE(rank->step().ok());
  batches.bring(1);
}

TEST(BatchPrefetcher, ContinuesWhereAnotherRunEnded) {
  const auto whole = far_rank(), parts = far_rank();
  ASSERT_TRUE(run::run_training(*whole, *digits().feed, {.steps = 7}).ok());
  ASSERT_TRUE(run::run_training(*parts, *digits().feed, {.steps = 3}).ok());
  ASSERT_TRUE(run::run_training(*parts, *digits().feed, {.first_step = 3, .steps = 4}).ok());
  expect_same_bits(learned(*parts), learned(*whole));
  // Batches in any order: what was read ahead but not requested is discarded.
  const auto back = far_rank(), forth = far_rank();
  run::BatchPrefetcher batches(*back, *digits().feed);
  for (const std::int64_t step : {4, 4, 0, 5, 2}) {
    batches.bring(step);
    ASSERT_TRUE(back->step().ok());
    digits().feed->fill(*forth, step);
    ASSERT_TRUE(forth->step().ok());
  }
  batches.stop();
  expect_same_bits(learned(*back), learned(*forth));
  batches.bring(1);  // from now on it reads on request
  ASSERT_TRUE(back->step().ok());
  digits().feed->fill(*forth, 1);
  ASSERT_TRUE(forth->step().ok());
  expect_same_bits(learned(*back), learned(*forth));
}

TEST(BatchPrefetcher, ReportsReadErrorsAtTheirStep) {
  for (const std::int64_t at : {0, 1, 4, 6}) {
    const auto rank = far_rank();
    const WatchedFeed feed(digits().feed, [&](auto, std::int64_t step) {
      if (step >= at) throw std::runtime_error("batch " + std::to_string(step) + " is not there");
    });
    std::int64_t done = 0;
    run::TrainingRun run{.steps = 6};
    run.on_step = [&](const run::StepReport& report) -> Status {
      done = report.step;
      return {};
    };
    std::string said;
    try {
      EXPECT_TRUE(run::run_training(*rank, feed, run).ok());
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
    EXPECT_EQ(done, at);
    EXPECT_EQ(said, at < 6 ? "batch " + std::to_string(at) + " is not there" : "");
  }
}

TEST(BatchPrefetcher, StopsEarly) {
  const auto rank = far_rank();
  const WatchedFeed feed(digits().feed, [](auto, auto) { std::this_thread::sleep_for(1ms); });
  std::int64_t asked = 0;
  run::TrainingRun run{.steps = 100};
  run.interrupted = [&] { return ++asked > 3; };
  const auto stopped = run::run_training(*rank, feed, run);
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->steps_done, 3);
  run.interrupted = {};
  run.on_step = [](const run::StepReport& report) -> Status {
    return report.step == 2 ? Status(user_error("enough")) : Status();
  };
  const auto failed = run::run_training(*rank, feed, run);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "enough");
}

// The search for the first bad value reads the batches again, with no other reader.
TEST(BatchPrefetcher, ExplainsANaNLoss) {
  const WatchedFeed feed(digits().feed, [](std::span<const run::InputMemory> inputs, std::int64_t step) {
    const float bad = std::numeric_limits<float>::quiet_NaN();
    if (step == 5) std::memcpy(inputs[0].bytes.data(), &bad, sizeof bad);
  });
  std::string said;
  for (const bool limited : {true, false}) {
    const auto rank = far_rank(limited);
    const auto diverged = run::run_training(*rank, feed, {.steps = 20});
    ASSERT_FALSE(diverged.ok());
    if (limited) said = diverged.error().message;
    EXPECT_EQ(diverged.error().message, said);
    EXPECT_NE(said.find("at step 6"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace weft::session
