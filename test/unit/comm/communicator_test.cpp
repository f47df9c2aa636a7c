// The public interface of weft::comm. Ranks are threads of this process unless a test says
// otherwise.

#include "weft/communication/comm/communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "on_ranks.h"
#include "weft/communication/comm/chunk/program_store.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

float value(std::int32_t rank, std::size_t i) {
  return static_cast<float>(rank + 1) * static_cast<float>(i % 17);
}

std::vector<float> values(std::int32_t rank, std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = value(rank, i);
  return result;
}

std::vector<float> sums(std::int32_t ranks, std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<float>(ranks * (ranks + 1) / 2) * static_cast<float>(i % 17);
  }
  return result;
}

class CommunicatorOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorOver,
                         testing::Values(TransportKind::inproc, TransportKind::shm, TransportKind::tcp,
                                         TransportKind::mixed),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(CommunicatorOver, RunsEveryCollective) {
  for (const std::int32_t ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, plain(GetParam()), [&](Communicator& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      const auto size = static_cast<std::size_t>(group.size());
      for (const std::size_t count : {1u, 7u, 1000u, 60'001u}) {
        const auto n = static_cast<std::int64_t>(count);
        const std::vector<float> mine = values(group.rank(), count);
        std::vector<float> one(count), all(count * size), many(count * size);
        for (std::size_t i = 0; i < many.size(); ++i) many[i] = value(group.rank(), i);

        ASSERT_TRUE(group.all_reduce(mine.data(), one.data(), n, ElementType::f32).ok());
        EXPECT_EQ(one, sums(group.size(), count));

        ASSERT_TRUE(group.reduce_scatter(many.data(), one.data(), n, ElementType::f32).ok());
        const std::vector<float> everything = sums(group.size(), count * size);
        EXPECT_TRUE(std::equal(one.begin(), one.end(),
                               everything.begin() + static_cast<std::ptrdiff_t>(rank * count)));

        ASSERT_TRUE(group.all_gather(mine.data(), all.data(), n, ElementType::f32).ok());
        for (std::size_t i = 0; i < all.size(); ++i) {
          ASSERT_EQ(all[i], value(static_cast<std::int32_t>(i / count), i % count)) << i;
        }
        ASSERT_TRUE(group.all_to_all(many.data(), all.data(), n, ElementType::f32).ok());
        for (std::size_t i = 0; i < all.size(); ++i) {
          ASSERT_EQ(all[i], value(static_cast<std::int32_t>(i / count), rank * count + i % count)) << i;
        }
        const std::int32_t root = group.size() - 1;
        ASSERT_TRUE(group.broadcast(mine.data(), one.data(), n, ElementType::f32, root).ok());
        EXPECT_EQ(one, values(root, count));
        ASSERT_TRUE(group.reduce(mine.data(), one.data(), n, ElementType::f32, ReduceOp::sum, root).ok());
        if (group.rank() == root) {
          EXPECT_EQ(one, sums(group.size(), count));
        }
        ASSERT_TRUE(group.gather(mine.data(), all.data(), n, ElementType::f32, root).ok());
        if (group.rank() == root) {
          EXPECT_EQ(all[all.size() - 1], value(root, count - 1));
        }
        ASSERT_TRUE(group.scatter(many.data(), one.data(), n, ElementType::f32, root).ok());
        EXPECT_EQ(one[0], value(root, rank * count));
        ASSERT_TRUE(group.barrier().ok());
      }
    });
  }
}

TEST_P(CommunicatorOver, SendsAndReceivesBetweenTwo) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    if (group.rank() == 1) return;  // takes no part
    std::vector<std::int32_t> data(100'000);
    if (group.rank() == 0) {
      std::iota(data.begin(), data.end(), 5);
      ASSERT_TRUE(group.send(data.data(), 100'000, ElementType::i32, 2).ok());
      ASSERT_TRUE(group.receive(data.data(), 3, ElementType::i32, 2).ok());
      EXPECT_EQ(data[2], 7 * 2);
    } else {
      ASSERT_TRUE(group.receive(data.data(), 100'000, ElementType::i32, 0).ok());
      EXPECT_EQ(data[99'999], 5 + 99'999);
      for (std::int32_t& element : data) element *= 2;
      ASSERT_TRUE(group.send(data.data(), 3, ElementType::i32, 0).ok());
    }
  });
}

// A wait longer than kStuck once caused the receive to be compared with the group's first
// collective.
TEST_P(CommunicatorOver, WaitsForALateSendInANewGroup) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(64);
    ASSERT_TRUE(group.all_reduce(data.data(), data.data(), 64, ElementType::f32).ok());
    if (group.rank() == 0) {
      const Status status = group.receive(data.data(), 8, ElementType::f32, 1);
      ASSERT_TRUE(status.ok()) << status.error().message;
    } else if (group.rank() == 1) {
      std::this_thread::sleep_for(350ms);
      ASSERT_TRUE(group.send(data.data(), 8, ElementType::f32, 0).ok());
    }
    const Status status = group.barrier();
    ASSERT_TRUE(status.ok()) << status.error().message;
  });
}

TEST_P(CommunicatorOver, ReportsBothSidesOfAMismatch) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(64);
    const std::int64_t count = group.rank() == 1 ? 32 : 64;
    const Status status = group.all_reduce(data.data(), data.data(), count, ElementType::f32);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("f32 x 32"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("f32 x 64"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("rank 1"), std::string::npos) << status.error().message;
    // The group stays broken.
    EXPECT_FALSE(group.barrier().ok());
  });
}

TEST_P(CommunicatorOver, ReportsDifferentCollectivesAsAMismatch) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(64), more(128);
    const Status status = group.rank() == 0
                              ? group.all_reduce(data.data(), data.data(), 64, ElementType::f32)
                              : group.all_gather(data.data(), more.data(), 64, ElementType::f32);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("all_reduce"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("all_gather"), std::string::npos) << status.error().message;
  });
}

TEST_P(CommunicatorOver, RunsSeveralCallsConcurrently) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    constexpr std::size_t kCalls = 12;
    std::vector<std::vector<float>> data;
    for (std::size_t i = 0; i < kCalls; ++i) data.push_back(values(group.rank(), 1000 * i + 1));
    std::vector<Work> works;
    std::atomic<int> finished{0};
    for (std::size_t i = 0; i < kCalls; ++i) {
      Call call{.kind = Kind::all_reduce,
                .input = data[i].data(),
                .output = data[i].data(),
                .count = static_cast<std::int64_t>(data[i].size())};
      call.priority = static_cast<Priority>(i % kPriorities);
      auto work = group.start(call, [&finished](const Status& status) { finished += status.ok() ? 1 : 0; });
      ASSERT_TRUE(work.ok()) << work.error().message;
      works.push_back(*work);
    }
    for (const Work& work : works) ASSERT_TRUE(work.wait().ok());
    for (std::size_t i = 0; i < kCalls; ++i) EXPECT_EQ(data[i], sums(group.size(), data[i].size())) << i;
    while (finished < static_cast<int>(kCalls)) std::this_thread::yield();
  });
}

TEST(Communicator, AHighPriorityCallOvertakesOneInFlight) {
  Options options = plain(TransportKind::inproc);
  options.background = false;
  on_ranks(2, options, [](Communicator& group) {
    std::vector<float> large = values(group.rank(), 4 << 20), small = values(group.rank(), 100);
    const auto slow = group.start({.kind = Kind::all_reduce,
                                   .input = large.data(),
                                   .output = large.data(),
                                   .count = 4 << 20,
                                   .priority = Priority::low});
    const auto urgent = group.start({.kind = Kind::all_reduce,
                                     .input = small.data(),
                                     .output = small.data(),
                                     .count = 100,
                                     .priority = Priority::high});
    ASSERT_TRUE(slow.ok() && urgent.ok());
    ASSERT_TRUE(urgent->wait().ok());
    EXPECT_FALSE(slow->done());
    EXPECT_EQ(small, sums(2, 100));
    ASSERT_TRUE(slow->wait().ok());
    EXPECT_EQ(large, sums(2, 4 << 20));
  });
}

TEST(Communicator, CallsProgressInTheBackground) {
  on_ranks(2, plain(TransportKind::inproc), [](Communicator& group) {
    std::vector<float> data = values(group.rank(), 1 << 20);
    const auto work = group.start(
        {.kind = Kind::all_reduce, .input = data.data(), .output = data.data(), .count = 1 << 20});
    ASSERT_TRUE(work.ok());
    for (int i = 0; i < 2000 && !work->done(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(work->done());
    EXPECT_EQ(data, sums(2, 1 << 20));
  });
}

TEST(Communicator, ReducesInAllocatedMemory) {
  on_ranks(3, plain(TransportKind::shm), [](Communicator& group) {
    constexpr std::size_t kCount = 300'001;
    const auto memory = group.allocate(kCount * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    auto* const data = static_cast<float*>(*memory);
    for (std::size_t i = 0; i < kCount; ++i) data[i] = value(group.rank(), i);
    ASSERT_TRUE(group.all_reduce(data, data, kCount, ElementType::f32).ok());
    const std::vector<float> expected = sums(3, kCount);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data));
    ASSERT_TRUE(group.barrier().ok());
    group.free(data);
    const auto again = group.allocate(kCount * sizeof(float));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *memory);
    EXPECT_EQ(static_cast<float*>(*again)[0], 0);  // the pages were returned to the operating system
  });
}

TEST(Communicator, SplitsByColourAndKey) {
  on_ranks(5, plain(TransportKind::inproc), [](Communicator& group) {
    const std::int32_t colour = group.rank() == 4 ? -1 : group.rank() % 2;
    auto part = group.split(colour, -group.rank());
    ASSERT_TRUE(part.ok()) << part.error().message;
    if (colour < 0) {
      EXPECT_EQ(*part, nullptr);
      return;
    }
    EXPECT_EQ((*part)->size(), 2);
    EXPECT_EQ((*part)->rank(), group.rank() < 2 ? 1 : 0);  // the higher rank has the lower key
    std::vector<float> gathered(2);
    const auto mine = static_cast<float>(group.rank());
    ASSERT_TRUE((*part)->all_gather(&mine, gathered.data(), 1, ElementType::f32).ok());
    EXPECT_EQ(gathered, (std::vector<float>{static_cast<float>(colour + 2), static_cast<float>(colour)}));
  });
}

TEST_P(CommunicatorOver, InstallsAProgramDuringCalls) {
  std::mutex mutex;
  std::vector<std::string> explained;
  Options options = plain(GetParam());
  options.explain = true;
  options.on_explain = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    explained.emplace_back(text);
  };
  on_ranks(3, options, [](Communicator& group) {
    std::thread proposer;
    std::atomic<std::uint64_t> from{0};
    if (group.rank() == 1) {
      const auto program = program_for("all_reduce_ring(channels=2)", 3, 0);
      ASSERT_TRUE(program.ok()) << program.error().message;
      proposer = std::thread([&group, &from, program = *program] {
        const auto installed = group.install(*program);
        EXPECT_TRUE(installed.ok()) << (installed.ok() ? "" : installed.error().message);
        if (installed.ok()) from = *installed;
      });
    }
    std::vector<float> data(1000);
    for (int call = 0; call < 400; ++call) {
      data = values(group.rank(), 1000);
      ASSERT_TRUE(group.all_reduce(data.data(), data.data(), 1000, ElementType::f32).ok());
      ASSERT_EQ(data, sums(3, 1000)) << call;
    }
    if (proposer.joinable()) {
      proposer.join();
      EXPECT_GT(from, 0u);
    }
  });
  std::size_t installed = 0;
  for (const std::string& text : explained) installed += text.find("installed at call") != std::string::npos;
  EXPECT_EQ(installed, 3u);
}

TEST(Communicator, CancelsAQueuedCall) {
  Options options = plain(TransportKind::inproc);
  options.background = false;
  on_ranks(2, options, [](Communicator& group) {
    std::vector<std::vector<float>> data(6, std::vector<float>(1 << 20, 1.0F));
    std::vector<Work> works;
    for (auto& buffer : data) {
      const auto work = group.start(
          {.kind = Kind::all_reduce, .input = buffer.data(), .output = buffer.data(), .count = 1 << 20});
      ASSERT_TRUE(work.ok());
      works.push_back(*work);
    }
    // More calls than can be in flight: the last one is still queued on both ranks.
    bool cancelled = false;
    if (group.rank() == 0) cancelled = works[5].cancel();
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(works[i].wait().ok());
    const Status last = works[5].wait();
    if (group.rank() == 0) {
      EXPECT_TRUE(cancelled);  // neither rank can have finished a call before it
      EXPECT_EQ(cancelled, !last.ok());
    }
    if (!last.ok()) {
      EXPECT_NE(last.error().message.find("cancelled by rank 0"), std::string::npos);
    }
    EXPECT_FALSE(works[0].cancel());
    ASSERT_TRUE(group.barrier().ok());
  });
}

TEST(Communicator, NamesARankThatLeft) {
  on_ranks(3, plain(TransportKind::inproc), [](Communicator& group) {
    if (group.rank() == 2) return;  // its job ends here
    const Status status = group.barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("rank 2"), std::string::npos) << status.error().message;
  });
}

// Rank 0 has sent its block: its departure does not stop the wait for rank 2.
TEST(Communicator, ADepartedRankDoesNotFailOtherWaits) {
  on_ranks(3, plain(TransportKind::inproc), [](Communicator& group) {
    const std::int32_t mine = group.rank() + 1;
    std::array<std::int32_t, 3> all{};
    if (group.rank() == 2) std::this_thread::sleep_for(1300ms);
    const Status status = group.gather(&mine, all.data(), 1, ElementType::i32, 1);
    ASSERT_TRUE(status.ok()) << status.error().message;
    if (group.rank() == 1) EXPECT_EQ(all, (std::array<std::int32_t, 3>{1, 2, 3}));
  });
}

TEST(Communicator, RejectsWrongArguments) {
  on_ranks(2, plain(TransportKind::inproc), [](Communicator& group) {
    float data = 0;
    EXPECT_FALSE(group.all_reduce(nullptr, &data, 1, ElementType::f32).ok());
    EXPECT_FALSE(group.all_reduce(&data, &data, -1, ElementType::f32).ok());
    EXPECT_FALSE(group.broadcast(&data, &data, 1, ElementType::f32, 2).ok());
    // A rejected call gets no number, so the group is unchanged.
    EXPECT_TRUE(group.barrier().ok());
  });
}

}  // namespace
}  // namespace weft::comm
