// How a group ends and what follows: timeouts, abort, growth. Also concurrent use by several
// threads.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "on_ranks.h"
#include "weft/base/file.h"
#include "weft/communication/comm/metrics.h"
#include "weft/communication/comm/metrics_file.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

class GroupLifeOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, GroupLifeOver, testing::Values(TransportKind::shm, TransportKind::tcp),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(GroupLifeOver, ATimeoutEndsTheGroupAndShrinkReplacesIt) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    float data = 1;
    ASSERT_TRUE(group.all_reduce(&data, &data, 1, ElementType::f32).ok());
    Call call{.input = &data, .output = &data, .count = 1, .timeout = 60ms};
    if (group.rank() == 2) {
      // Does not call until it sees that the others gave up.
      while (!group.end()) std::this_thread::sleep_for(2ms);
    } else {
      const Status status = group.run(call);
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.error().message.find("timed out after 60 ms"), std::string::npos)
          << status.error().message;
    }
    EXPECT_EQ(group.end()->cause, Cause::timeout);
    EXPECT_EQ(group.dead_ranks(), std::vector<std::int32_t>());
    EXPECT_FALSE(group.barrier().ok());
    auto next = group.shrink();
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_EQ((*next)->size(), 3);
    data = 1;
    ASSERT_TRUE((*next)->all_reduce(&data, &data, 1, ElementType::f32).ok());
    EXPECT_EQ(data, 3);
  });
}

TEST_P(GroupLifeOver, AStartedCallTimesOut) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(1000);
    ASSERT_TRUE(group.all_reduce(data.data(), data.data(), 1000, ElementType::f32).ok());  // connects
    group.set_call_timeout(50ms);
    if (group.rank() == 1) {
      while (!group.end()) std::this_thread::sleep_for(2ms);
      return;
    }
    const auto work = group.start({.input = data.data(), .output = data.data(), .count = 1000});
    ASSERT_TRUE(work.ok());
    EXPECT_FALSE(work->wait().ok());
    EXPECT_EQ(group.end()->cause, Cause::timeout);
  });
}

TEST_P(GroupLifeOver, WaitingWithALimitLeavesTheCallRunning) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::int32_t number = group.rank() + 1;
    std::int32_t seen = 0;
    ASSERT_TRUE(group.all_reduce(&number, &seen, 1, ElementType::i32).ok());  // opens connections
    seen = 0;
    if (group.rank() == 0) {
      const auto work =
          group.start({.input = &number, .output = &seen, .count = 1, .type = ElementType::i32});
      ASSERT_TRUE(work.ok());
      EXPECT_FALSE(work->wait_for(20ms));
      ASSERT_TRUE(group.send_tagged(&number, 1, ElementType::i32, 1, 0).ok());
      ASSERT_TRUE(work->wait().ok());
    } else {
      std::int32_t other = 0;
      ASSERT_TRUE(group.receive_tagged(&other, 1, ElementType::i32, 0).ok());
      ASSERT_TRUE(group.all_reduce(&number, &seen, 1, ElementType::i32).ok());
    }
    EXPECT_EQ(seen, 3);
  });
}

TEST_P(GroupLifeOver, AbortReachesAllRanks) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    if (group.rank() == 1) {
      group.abort(7, "the disk is full");
      EXPECT_EQ(group.end()->cause, Cause::abort);
      return std::this_thread::sleep_for(50ms);  // leaving at once would be another failure
    }
    const Status status = group.barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "rank 1 aborted: the disk is full (code 7)");
    EXPECT_EQ(group.end()->cause, Cause::abort);
  });
}

// Three threads use one communicator at once: collectives, sends and receives, and tagged messages.
TEST_P(GroupLifeOver, SeveralThreadsCallConcurrently) {
  Options options = plain(GetParam());
  options.several_threads = true;
  on_ranks(3, options, [](Communicator& group) {
    constexpr int kRounds = 60;
    const std::int32_t next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    std::thread reducing([&] {
      for (int i = 0; i < kRounds; ++i) {
        std::vector<std::int32_t> data(static_cast<std::size_t>(1 + 97 * i), group.rank() + i);
        ASSERT_TRUE(group
                        .all_reduce(data.data(), data.data(), static_cast<std::int64_t>(data.size()),
                                    ElementType::i32)
                        .ok());
        ASSERT_EQ(data.back(), 3 + 3 * i);
      }
    });
    std::thread sending([&] {
      for (std::int32_t i = 0; i < kRounds; ++i) {
        const std::vector<std::int32_t> data(500, i + group.rank());
        const Status status = group.send(data.data(), 500, ElementType::i32, next);
        ASSERT_TRUE(status.ok()) << status.error().message;
      }
    });
    std::thread receiving([&] {
      for (std::int32_t i = 0; i < kRounds; ++i) {
        std::vector<std::int32_t> data(500);
        const Status status = group.receive(data.data(), 500, ElementType::i32, before);
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(data.back(), i + before);
      }
    });
    for (std::int32_t i = 0; i < kRounds; ++i) {
      std::int32_t other = 0;
      ASSERT_TRUE(group.send_tagged(&i, 1, ElementType::i32, next, i).ok());
      ASSERT_TRUE(group.receive_tagged(&other, 1, ElementType::i32, before, i).ok());
      ASSERT_EQ(other, i);
    }
    reducing.join();
    sending.join();
    receiving.join();
    ASSERT_TRUE(group.barrier().ok());
  });
}

TEST_P(GroupLifeOver, GrowsByNewRanks) {
  const RendezvousPoint place{fmt::format("grow-test-{}-{}", ::getpid(), name(GetParam())),
                              "a secret of this test alone", 10s};
  const auto check = [](Communicator& grown) {
    const std::int32_t mine = grown.rank() + 1;
    std::vector<std::int32_t> all(4);
    ASSERT_TRUE(grown.all_gather(&mine, all.data(), 1, ElementType::i32).ok());
    EXPECT_EQ(all, (std::vector<std::int32_t>{1, 2, 3, 4}));
  };
  std::vector<std::thread> newcomers;
  for (std::int32_t rank = 2; rank < 4; ++rank) {
    newcomers.emplace_back([&, rank] {
      auto joined = join(place, rank, 4, plain(GetParam()));
      ASSERT_TRUE(joined.ok()) << joined.error().message;
      check(**joined);
      EXPECT_TRUE((*joined)->barrier().ok());
    });
  }
  on_ranks(2, plain(GetParam()), [&](Communicator& group) {
    auto grown = group.grow(2, place);
    ASSERT_TRUE(grown.ok()) << grown.error().message;
    EXPECT_EQ((*grown)->rank(), group.rank());
    check(**grown);
    EXPECT_TRUE((*grown)->barrier().ok());
    EXPECT_TRUE(group.barrier().ok()) << "the old group still works";
    EXPECT_FALSE(group.grow(0, place).ok());
    EXPECT_FALSE(group.grow(1, {}).ok());
  });
  for (auto& newcomer : newcomers) newcomer.join();
}

TEST(GroupLife, EachRankPassesOnlyItsOwnCounts) {
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks)
    on_ranks(ranks, plain(ranks % 2 == 0 ? TransportKind::tcp : TransportKind::shm), [](Communicator& group) {
      const auto ranks = static_cast<std::size_t>(group.size()), me = static_cast<std::size_t>(group.rank());
      const auto pair = [](std::size_t from, std::size_t to) {
        return static_cast<std::int64_t>((from * 3 + to) % 5);
      };
      std::vector<std::int64_t> give, take;
      std::vector<std::uint16_t> input, expected;
      for (std::size_t other = 0; other < ranks; ++other) {
        give.push_back(pair(me, other));
        take.push_back(pair(other, me));
        input.insert(input.end(), static_cast<std::size_t>(give.back()),
                     static_cast<std::uint16_t>(10 * me + other));
        expected.insert(expected.end(), static_cast<std::size_t>(take.back()),
                        static_cast<std::uint16_t>(10 * other + me));
      }
      std::vector<std::uint16_t> output(expected.size());
      const Status status = group.all_to_all(input.data(), give, output.data(), take, ElementType::u16);
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(output, expected);

      std::vector<std::uint16_t> all(100), mine(me + 1, static_cast<std::uint16_t>(me));
      const auto counts = group.all_gather(mine.data(), static_cast<std::int64_t>(mine.size()), all.data(),
                                           100, ElementType::u16);
      ASSERT_TRUE(counts.ok()) << counts.error().message;
      EXPECT_EQ(counts->back(), group.size());
      EXPECT_EQ(
          all[static_cast<std::size_t>(std::accumulate(counts->begin(), counts->end(), std::int64_t{0})) - 1],
          ranks - 1);

      // Counts that are wrong on one rank fail on all, and the group stays usable.
      ++take[0];
      const Status wrong = group.all_to_all(input.data(), give, output.data(), take, ElementType::u16);
      ASSERT_FALSE(wrong.ok());
      EXPECT_NE(wrong.error().message.find("counts do not match: rank 0 sends"), std::string::npos)
          << wrong.error().message;
      EXPECT_FALSE(
          group.all_gather(mine.data(), 1, all.data(), group.rank() == 0 ? 0 : 100, ElementType::u16).ok());
      EXPECT_FALSE(group.all_to_all(input.data(), {}, output.data(), take, ElementType::u16).ok());
      EXPECT_TRUE(group.barrier().ok());
    });
}

TEST(Metrics, CountByCollective) {
  Metrics metrics;
  metrics.add(Kind::all_reduce, 100, 0, false, false);
  metrics.add(Kind::all_reduce, 50, 0, true, false);
  metrics.add(Kind::barrier, 0, 0, false, true);
  const Tallies tallies = metrics.read();
  EXPECT_EQ(tallies[static_cast<std::size_t>(Kind::all_reduce)], (Tally{2, 150, 1, 0, 0}));
  const auto again = parse_tallies(print_tallies(tallies));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, tallies);
  EXPECT_FALSE(parse_tallies("all_reduce 1 2 3\n").ok());
  EXPECT_FALSE(parse_tallies("tallies 1\nnothing 1 2 3 4 5\n").ok());

  const std::string text = print_prometheus({.rank = 3, .ranks = 8, .dead = 1, .tallies = tallies});
  for (const std::string line :
       {"# TYPE weft_comm_calls_total counter\n",
        "weft_comm_calls_total{rank=\"3\",collective=\"all_reduce\"} 2\n",
        "weft_comm_bytes_total{rank=\"3\",collective=\"all_reduce\"} 150\n",
        "weft_comm_waits_total{rank=\"3\",collective=\"all_reduce\"} 1\n",
        "weft_comm_faults_total{rank=\"3\",collective=\"barrier\"} 1\n",
        "weft_comm_seconds_total{rank=\"3\",collective=\"all_reduce\"} 0.000000000\n",
        "# TYPE weft_comm_dead_ranks gauge\nweft_comm_dead_ranks{rank=\"3\"} 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

TEST(Metrics, AreWrittenToAPrivateFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-metrics-{}", ::getpid());
  std::filesystem::remove_all(folder);
  setenv("WEFT_METRICS", folder.c_str(), 1);
  on_ranks(2, plain(TransportKind::inproc), [](Communicator& group) {
    std::vector<float> data(100);
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(group.all_reduce(data.data(), data.data(), 100, ElementType::f32).ok());
    const auto part = group.split(0, 0);  // a destroyed group counts too
    ASSERT_TRUE(part.ok());
    ASSERT_TRUE((*part)->all_reduce(data.data(), data.data(), 100, ElementType::f32).ok());
  });
  unsetenv("WEFT_METRICS");
  for (const int rank : {0, 1}) {
    const std::string path = folder / fmt::format("weft_rank_{}.prom", rank);
    struct stat about = {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U);
    const auto text = read_file(path, 1 << 20);
    ASSERT_TRUE(text.ok());
    EXPECT_NE(
        text->find(fmt::format("weft_comm_calls_total{{rank=\"{}\",collective=\"all_reduce\"}} 4\n", rank)),
        std::string::npos)
        << *text;
    EXPECT_NE(text->find(
                  fmt::format("weft_comm_bytes_total{{rank=\"{}\",collective=\"all_reduce\"}} 1600\n", rank)),
              std::string::npos);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2) << "no other file is left";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::comm
