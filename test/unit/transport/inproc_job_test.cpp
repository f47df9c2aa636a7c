// Jobs of threads: they connect, exchange messages, fail, and continue without failed ranks.
#include "weft/communication/transport/inproc/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "weft/communication/transport/segment.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using Jobs = std::vector<std::unique_ptr<Job>>;

constexpr std::int32_t kAll[] = {0, 1, 2};

void on_each(Jobs& jobs, const std::function<void(Job&)>& run) {
  std::vector<std::thread> threads;
  for (auto& job : jobs)
    if (job) threads.emplace_back([&] { run(*job); });
  for (auto& thread : threads) thread.join();
}

// Collects what handlers receive, for a test that waits for it.
class Heard {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(text));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

TEST(ThreadJobs, ExchangesRepeatedlyAmongAll) {
  Jobs jobs = make_thread_jobs(3, 10s);
  on_each(jobs, [](Job& job) {
    for (int round = 0; round < 50; ++round) {
      // The same topic each time: ranks that are ahead must not mix with the previous round.
      const auto all = job.exchange(kAll, {7, 1}, {std::to_string(100 * round + job.rank()), -1});
      ASSERT_TRUE(all.ok()) << all.error().message;
      ASSERT_EQ(all->size(), 3u);
      for (int rank = 0; rank < 3; ++rank) ASSERT_EQ((*all)[rank].bytes, std::to_string(100 * round + rank));
    }
  });
  EXPECT_EQ(jobs[1]->rank(), 1);
  EXPECT_EQ(jobs[1]->ranks(), 3);
  EXPECT_EQ(jobs[0]->member(2).host, jobs[2]->member(0).host);
  EXPECT_EQ(jobs[0]->member(2).process, getpid());
}

TEST(ThreadJobs, DuplicatesDescriptors) {
  Jobs jobs = make_thread_jobs(2, 10s);
  Result<Segment> memory = Segment::create(4096, Backing::full);
  ASSERT_TRUE(memory.ok());
  on_each(jobs, [&](Job& job) {
    const std::int32_t both[] = {0, 1};
    auto all = job.exchange(both, {0, 0}, {"", job.rank() == 0 ? memory->descriptor() : -1});
    ASSERT_TRUE(all.ok());
    EXPECT_EQ((*all)[1].descriptor, -1);
    const int arrived = (*all)[0].descriptor;
    if (job.rank() == 0) {
      EXPECT_EQ(arrived, -1) << "the sender has its own";
      return;
    }
    EXPECT_NE(arrived, memory->descriptor());
    EXPECT_TRUE(Segment::map(arrived, 4096).ok());
  });
  EXPECT_GE(fcntl(memory->descriptor(), F_GETFD), 0) << "the sender keeps its own";
}

TEST(ThreadJobs, AnExchangeWithFailedRanksFailsAtOnceAndNamesThem) {
  Jobs jobs = make_thread_jobs(3, 60s);
  std::thread killer([&] {
    std::this_thread::sleep_for(10ms);
    inproc::kill_thread_rank(*jobs[1]);
  });
  std::vector<std::thread> ranks;
  for (const int rank : {0, 2})
    ranks.emplace_back([&, rank] {
      const auto all = jobs[rank]->exchange(kAll, {0, 0}, {});
      ASSERT_FALSE(all.ok());
      EXPECT_EQ(all.error().fault, Fault::world);
      EXPECT_EQ(all.error().message, "rank 1 is lost: its thread was killed");
    });
  for (auto& rank : ranks) rank.join();
  killer.join();
  EXPECT_FALSE(jobs[1]->exchange(kAll, {0, 1}, {}).ok()) << "nor can the failed rank";
  jobs[2]->leave();
  const auto left = jobs[0]->exchange(std::vector<std::int32_t>{0, 2}, {0, 1}, {});
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().message, "rank 2 has left the job");
}

TEST(ThreadJobs, RejectsInvalidMembersAndOversizedParcels) {
  Jobs jobs = make_thread_jobs(3, 10s);
  for (const std::vector<std::int32_t>& members :
       std::vector<std::vector<std::int32_t>>{{}, {1, 2}, {1, 0}, {0, 0}, {0, 3}, {-1, 0}})
    EXPECT_FALSE(jobs[0]->exchange(members, {0, 0}, {}).ok());
  EXPECT_FALSE(
      jobs[0]
          ->exchange(std::vector<std::int32_t>{0}, {0, 0}, {std::string(Job::kMostBytes + 1, 'x'), -1})
          .ok());
  EXPECT_TRUE(jobs[0]->exchange(std::vector<std::int32_t>{0}, {0, 0}, {"alone", -1}).ok());
}

TEST(ThreadJobs, AnExchangeWithASilentRankTimesOut) {
  Jobs jobs = make_thread_jobs(2, 20ms);
  const auto all = jobs[0]->exchange(std::vector<std::int32_t>{0, 1}, {0, 0}, {});
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().message, "rank 1 did not join an exchange within 20 ms");
}

TEST(ThreadJobs, DeliversMessagesInOrderOnceThereIsAHandler) {
  Jobs jobs = make_thread_jobs(2, 10s);
  Heard heard;
  const auto send = [&](int number) { jobs[0]->send(1, {5, static_cast<std::uint64_t>(number)}, "hello"); };
  for (int i = 0; i < 20; ++i) send(i);
  jobs[0]->send(1, {6, 99}, "another group's");
  std::this_thread::sleep_for(5ms);  // some messages are queued, some not yet sent
  for (int i = 20; i < 25; ++i) send(i);
  jobs[1]->handle(5, [&](std::int32_t from, std::uint64_t number, std::string_view bytes) {
    heard.add(std::to_string(from) + " " + std::to_string(number) + " " + std::string(bytes));
  });
  for (int i = 25; i < 40; ++i) send(i);
  const auto lines = heard.wait_for(40);
  ASSERT_EQ(lines.size(), 40u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(lines[i], "0 " + std::to_string(i) + " hello");
  jobs[1]->handle(5, nullptr);
  send(40);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(heard.wait_for(40).size(), 40u);
}

TEST(ThreadJobs, ARemovedHandlerNoLongerRuns) {
  Jobs jobs = make_thread_jobs(2, 10s);
  for (int round = 0; round < 20; ++round) {
    auto running = std::make_unique<std::atomic<int>>(0);
    jobs[1]->handle(1, [seen = running.get()](auto, auto, auto) {
      ++*seen;
      std::this_thread::sleep_for(200us);
      ++*seen;
    });
    jobs[0]->send(1, {1, 0}, "");
    if (round % 2 == 0) std::this_thread::sleep_for(100us);
    jobs[1]->handle(1, nullptr);
    EXPECT_EQ(*running % 2, 0);
    running.reset();  // a sanitizer would detect the handler touching it now
  }
}

TEST(ThreadJobs, NotifiesEveryListenerOfAFailureOnce) {
  Jobs jobs = make_thread_jobs(3, 10s);
  Heard heard;
  for (const int rank : {0, 2})
    jobs[rank]->on_death([&, rank](const Death& death) {
      heard.add(std::to_string(rank) + " hears of " + std::to_string(death.rank) +
                (death.left ? " leaving" : " dying"));
    });
  const std::uint64_t forgotten = jobs[0]->on_death([&](const Death&) { heard.add("forgotten"); });
  jobs[0]->forget(forgotten);
  inproc::kill_thread_rank(*jobs[1]);
  inproc::kill_thread_rank(*jobs[1]);
  auto lines = heard.wait_for(2);
  EXPECT_EQ(lines, (std::vector<std::string>{"0 hears of 1 dying", "2 hears of 1 dying"}));
  jobs[2].reset();
  lines = heard.wait_for(3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "0 hears of 2 leaving");
  const auto deaths = jobs[0]->deaths();
  ASSERT_EQ(deaths.size(), 2u);
  EXPECT_EQ(deaths[0].rank, 1);
  EXPECT_FALSE(deaths[0].left);
  EXPECT_EQ(deaths[1].rank, 2);
  EXPECT_TRUE(deaths[1].left);
}

TEST(ThreadJobs, SurvivorsAgreeAlthoughAnotherFails) {
  Jobs jobs = make_thread_jobs(4, 10s);
  const std::int32_t all[] = {0, 1, 2, 3};
  inproc::kill_thread_rank(*jobs[2]);
  std::vector<std::thread> ranks;
  for (const int rank : {0, 3})
    ranks.emplace_back([&, rank] {
      const auto alive = jobs[rank]->agree_on_survivors(all, {0, 0});
      ASSERT_TRUE(alive.ok()) << alive.error().message;
      EXPECT_EQ(*alive, (std::vector<std::int32_t>{0, 3}));
    });
  std::this_thread::sleep_for(5ms);
  inproc::kill_thread_rank(*jobs[1]);  // never arrived
  for (auto& rank : ranks) rank.join();
}

TEST(ThreadJobs, AgreeingWithASilentRankTimesOut) {
  Jobs jobs = make_thread_jobs(2, 20ms);
  const auto alive = jobs[0]->agree_on_survivors(std::vector<std::int32_t>{0, 1}, {0, 0});
  ASSERT_FALSE(alive.ok());
  EXPECT_EQ(alive.error().message, "rank 1 did not join the agreement on survivors within 20 ms");
}

TEST(ThreadJobs, TheLastJobMayEndInAHandler) {
  Heard heard;
  auto jobs = std::make_shared<Jobs>(make_thread_jobs(2, 10s));
  (*jobs)[1]->handle(1, [&heard, jobs](auto, auto, auto) {
    jobs->clear();
    heard.add("gone");
  });
  (*jobs)[0]->send(1, {1, 0}, "");
  EXPECT_EQ(heard.wait_for(1), std::vector<std::string>{"gone"});
}

}  // namespace
}  // namespace weft::transport
