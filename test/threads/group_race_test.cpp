// Several threads share one communicator under the thread sanitizer: calls in one engine and
// messages in one message box.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/communication/comm/engine.h"
#include "weft/communication/comm/message_box.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

class Bell final : public Source {
 public:
  std::uint32_t signal() override { return rung_.load(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return rung_.load() != seen; });
  }
  void wake() override {
    ++rung_;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> rung_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Makes some progress, then waits for a token from the other side. It has no lock: the engine must
// serialize calls.
class Waiting final : public Operation {
 public:
  explicit Waiting(std::atomic<int>& tokens) : tokens_(tokens) {}
  Progress step() override {
    if (++moved_ < 4) return Progress::moved;
    int left = tokens_.load();
    while (left > 0 && !tokens_.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0 ? Progress::done : Progress::blocked;
  }
  std::int32_t waiting_for() const override { return 1; }
  std::int64_t pieces_done() const override { return moved_; }
  std::int64_t pieces() const override { return 4; }
  std::string_view algorithm() const override { return "tokens"; }
  Error error() const override { return environment_error("none"); }

 private:
  std::atomic<int>& tokens_;
  std::int64_t moved_ = 0;
};

class TokenRunner final : public Runner {
 public:
  TokenRunner(Bell& bell, std::atomic<int>& tokens) : bell_(bell), tokens_(tokens) {}
  const void* resource(const Call&) const override { return this; }
  bool can_start(const Call&) const override { return running_.size() < 3; }
  Operation* start(const Call&, std::uint64_t) override {
    return running_.emplace_back(std::make_unique<Waiting>(tokens_)).get();
  }
  void finish(Operation* operation) override {
    std::erase_if(running_, [&](const auto& one) { return one.get() == operation; });
  }
  Source& source() override { return bell_; }

 private:
  Bell& bell_;
  std::atomic<int>& tokens_;
  std::vector<std::unique_ptr<Operation>> running_;
};

TEST(GroupRace, ThreadsDriveEachOthersCalls) {
  constexpr int kThreads = 4, kCalls = 50;
  FlightRecorder recorder;
  const auto metrics = std::make_shared<Metrics>();
  Engine engine({.ranks = 2, .metrics = metrics}, recorder);
  Bell bell;
  std::atomic<int> tokens{0};
  std::atomic<bool> over{false};
  TokenRunner runner(bell, tokens);
  std::thread other([&] {
    for (int i = 0; i < kThreads * kCalls; ++i) {
      ++tokens;
      bell.wake();
      if (i % 16 == 0) std::this_thread::sleep_for(1ms);
    }
  });
  std::thread reader([&] {
    while (!over) {
      metrics->take_times();
      EXPECT_LE(metrics->read()[0].calls, static_cast<std::uint64_t>(kThreads * kCalls));
      recorder.read();
      std::this_thread::sleep_for(1ms);
    }
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Call call;
        call.priority = static_cast<Priority>(thread % 3);
        const auto state = std::make_shared<Work::State>();
        engine.start(runner, call, kUnnumbered, state);
        if (thread == 0) engine.wait_until(*state, Engine::Clock::now() + 100us);
        engine.wait_for(*state);
        ASSERT_TRUE(state->status.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  other.join();
  over = true;
  reader.join();
  EXPECT_EQ(metrics->read()[0].calls, static_cast<std::uint64_t>(kThreads * kCalls));
}

TEST(GroupRace, ThreadsShareABoxOfMessages) {
  constexpr int kThreads = 3, kEach = 40;
  std::vector<std::shared_ptr<transport::Job>> jobs;
  for (auto& job : transport::make_thread_jobs(2, 10s)) jobs.push_back(std::move(job));
  std::vector<std::shared_ptr<MessageBox>> boxes;
  for (std::int32_t rank = 0; rank < 2; ++rank)
    boxes.push_back(
        MessageBox::open(jobs[static_cast<std::size_t>(rank)], {0, 1}, rank, 5, [] { return std::nullopt; }));
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, rank, thread] {
        MessageBox& box = *boxes[static_cast<std::size_t>(rank)];
        for (int i = 0; i < kEach; ++i) {
          // Some messages of rank 0 are long, rank 1's never are: only one side may have to wait.
          std::vector<std::byte> bytes(rank == 0 && i % 10 == 0 ? 100'000 : 16, static_cast<std::byte>(i));
          const Received what{rank, thread % 2, static_cast<std::int64_t>(bytes.size()),
                              device::ElementType::u8};
          if (rank == 0) {
            const auto sent = box.send(bytes, what, 1, 0ms);
            ASSERT_TRUE(sent.ok() && *sent);
          }
          std::vector<std::byte> room(100'000);
          const auto got = box.receive(room, device::ElementType::u8, 1 - rank, thread % 2, 0ms);
          ASSERT_TRUE(got.ok() && *got);
          if (rank == 1) ASSERT_TRUE(box.send(bytes, what, 0, 0ms).ok());
          if (thread == 0) ASSERT_TRUE(box.receive(room, device::ElementType::u8, 1 - rank, 99, 1ms).ok());
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& box : boxes) box->close();
}

}  // namespace
}  // namespace weft::comm
