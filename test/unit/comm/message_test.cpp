// Tagged messages: matching, order, buffer space, timeouts and threads.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "on_ranks.h"
#include "weft/communication/comm/message_box.h"
#include "weft/communication/transport/inproc/job.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

class MessageOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, MessageOver,
                         testing::Values(TransportKind::shm, TransportKind::tcp, TransportKind::mixed),
                         [](const auto& info) { return std::string(name(info.param)); });

bool sent(const Result<bool>& result) { return result.ok() && *result; }

TEST_P(MessageOver, ReceivesFromAnySourceInOrder) {
  on_ranks(5, plain(GetParam()), [](Communicator& group) {
    constexpr std::int32_t kEach = 50;
    if (group.rank() != 0) {
      for (std::int32_t i = 0; i < kEach; ++i) {
        const std::vector<std::int32_t> data(static_cast<std::size_t>(i), 100 * group.rank() + i);
        ASSERT_TRUE(sent(group.send_tagged(data.data(), i, ElementType::i32, 0, 3)));
      }
    } else {
      std::vector<std::int32_t> next(5), room(kEach);
      for (std::int32_t i = 0; i < 4 * kEach; ++i) {
        const auto got = group.receive_tagged(room.data(), kEach, ElementType::i32);
        ASSERT_TRUE(got.ok() && *got);
        const Received& what = **got;
        std::int32_t& number = next[static_cast<std::size_t>(what.from)];
        ASSERT_EQ(what, (Received{what.from, 3, number, ElementType::i32}));
        for (std::int64_t k = 0; k < what.count; ++k)
          ASSERT_EQ(room[static_cast<std::size_t>(k)], 100 * what.from + number);
        ++number;
      }
      EXPECT_EQ(next, (std::vector<std::int32_t>{0, kEach, kEach, kEach, kEach}));
    }
    ASSERT_TRUE(group.barrier().ok());
  });
}

TEST_P(MessageOver, ReceivesTagsInAnyOrder) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<std::uint8_t> data(MessageBox::kShort);
    if (group.rank() == 0) {
      // More than one rank may buffer at another: the last messages wait, and the requested tag
      // overtakes them.
      std::thread filler([&] {
        for (int i = 0; i < 20; ++i)
          ASSERT_TRUE(sent(group.send_tagged(data.data(), MessageBox::kShort, ElementType::u8, 1, 1)));
      });
      const std::int64_t last = 77;
      ASSERT_TRUE(sent(group.send_tagged(&last, 1, ElementType::i64, 1, 2)));
      filler.join();
    } else {
      std::int64_t last = 0;
      const auto got = group.receive_tagged(&last, 1, ElementType::i64, 0, 2);
      ASSERT_TRUE(got.ok() && *got);
      EXPECT_EQ(last, 77);
      for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(group.receive_tagged(data.data(), MessageBox::kShort, ElementType::u8, 0, 1).ok());
      EXPECT_EQ(*group.probe(), std::nullopt);
    }
  });
}

TEST_P(MessageOver, DeliversLongMessages) {
  on_ranks(3, plain(GetParam()), [](Communicator& group) {
    for (const std::int64_t count : {std::int64_t{8193}, std::int64_t{300'001}}) {
      std::vector<std::int64_t> mine(static_cast<std::size_t>(count)), other(mine.size());
      std::iota(mine.begin(), mine.end(), group.rank());
      // Each rank sends to the next before it receives, so one of them needs its own thread.
      const std::int32_t next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
      std::thread sender(
          [&] { ASSERT_TRUE(sent(group.send_tagged(mine.data(), count, ElementType::i64, next, 0))); });
      const auto got = group.receive_tagged(other.data(), count, ElementType::i64, before);
      sender.join();
      ASSERT_TRUE(got.ok() && *got);
      EXPECT_EQ((*got)->count, count);
      EXPECT_EQ(other.front(), before);
      EXPECT_EQ(other.back(), before + count - 1);
    }
  });
}

TEST_P(MessageOver, KeepsAMessageThatDoesNotFit) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<float> data(10, 2.5F);
    if (group.rank() == 1) {
      ASSERT_TRUE(sent(group.send_tagged(data.data(), 10, ElementType::f32, 0, 9)));
    } else {
      std::vector<float> small(9), large(20);
      const auto cut = group.receive_tagged(small.data(), 9, ElementType::f32);
      ASSERT_FALSE(cut.ok());
      EXPECT_EQ(cut.error().message,
                "the message from rank 1 with tag 9 has 10 elements of f32; the buffer holds 9 of f32");
      EXPECT_FALSE(group.receive_tagged(large.data(), 20, ElementType::i32).ok());
      EXPECT_EQ(*group.probe(1, 9), (Received{1, 9, 10, ElementType::f32}));
      EXPECT_EQ(*group.probe(1, 8), std::nullopt);
      const auto got = group.receive_tagged(large.data(), 20, ElementType::f32);
      ASSERT_TRUE(got.ok() && *got);
      EXPECT_EQ(large[9], 2.5F);
    }
    ASSERT_TRUE(group.barrier().ok());
  });
}

TEST_P(MessageOver, ATimeoutHasNoEffect) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    std::vector<std::uint8_t> data(200'000, static_cast<std::uint8_t>(group.rank() + 1));
    if (group.rank() == 0) {
      const auto nothing = group.receive_tagged(data.data(), 10, ElementType::u8, 1, 4, 30ms);
      ASSERT_TRUE(nothing.ok()) << nothing.error().message;
      EXPECT_EQ(*nothing, std::nullopt);
      const auto late = group.send_tagged(data.data(), 200'000, ElementType::u8, 1, 5, 30ms);
      ASSERT_TRUE(late.ok()) << late.error().message;
      EXPECT_FALSE(*late);
      ASSERT_TRUE(group.barrier().ok());
      ASSERT_TRUE(sent(group.send_tagged(data.data(), 7, ElementType::u8, 1, 5)));
    } else {
      ASSERT_TRUE(group.barrier().ok());
      const auto got = group.receive_tagged(data.data(), 200'000, ElementType::u8, 0, 5);
      ASSERT_TRUE(got.ok() && *got) << "a withdrawn message is not found";
      EXPECT_EQ((*got)->count, 7);
      EXPECT_EQ(data[6], 1);
      EXPECT_EQ(data[7], 2);
    }
  });
}

TEST(Message, ManyThreadsShareAMailbox) {
  on_ranks(2, plain(TransportKind::shm), [](Communicator& group) {
    constexpr int kThreads = 4, kEach = 40;
    std::vector<std::thread> threads;
    std::atomic<std::int64_t> total{0};
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          // Two threads receive from the same tag.
          const std::int64_t mine = thread * 1000 + i;
          std::int64_t other = 0;
          const Tag tag = thread % 3;
          ASSERT_TRUE(sent(group.send_tagged(&mine, 1, ElementType::i64, 1 - group.rank(), tag)));
          const auto got = group.receive_tagged(&other, 1, ElementType::i64, kAnySource, tag);
          ASSERT_TRUE(got.ok() && *got);
          total += other;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(total, kEach * 1000 * (0 + 1 + 2 + 3) + kThreads * kEach * (kEach - 1) / 2);
  });
}

TEST(Message, SendsToItself) {
  on_ranks(1, plain(TransportKind::inproc), [](Communicator& group) {
    std::vector<std::int16_t> data(1 << 20, 5), back(1 << 20);
    ASSERT_TRUE(sent(group.send_tagged(data.data(), 1 << 20, ElementType::i16, 0, 1)));
    ASSERT_TRUE(group.receive_tagged(back.data(), 1 << 20, ElementType::i16).ok());
    EXPECT_EQ(back, data);
  });
}

TEST(Message, RejectsWrongArguments) {
  on_ranks(2, plain(TransportKind::inproc), [](Communicator& group) {
    int data = 0;
    EXPECT_FALSE(group.send_tagged(nullptr, 1, ElementType::i32, 0, 1).ok());
    EXPECT_FALSE(group.send_tagged(&data, -1, ElementType::i32, 0, 1).ok());
    EXPECT_FALSE(group.send_tagged(&data, 1, ElementType::i32, 2, 1).ok());
    EXPECT_FALSE(group.send_tagged(&data, 1, ElementType::i32, kAnySource, 1).ok());
    EXPECT_FALSE(group.send_tagged(&data, 1, ElementType::i32, 0, -1).ok());
    EXPECT_FALSE(group.send_tagged(&data, 1, static_cast<ElementType>(99), 0, 1).ok());
    EXPECT_FALSE(group.receive_tagged(&data, 1, ElementType::i32, -2, 1).ok());
    EXPECT_FALSE(group.receive_tagged(&data, 1, ElementType::i32, 0, -2).ok());
    EXPECT_FALSE(group.receive_tagged(&data, 1, ElementType::i32, 0, 1, -1ms).ok());
    EXPECT_FALSE(group.probe(7).ok());
    // Without a time limit, rather than with a deadline that has passed.
    ASSERT_TRUE(sent(group.send_tagged(&data, 1, ElementType::i32, group.rank(), 3)));
    const auto got =
        group.receive_tagged(&data, 1, ElementType::i32, group.rank(), 3, std::chrono::milliseconds::max());
    EXPECT_TRUE(got.ok() && *got);
    const Status done =
        group.run({.input = &data, .output = &data, .count = 1, .timeout = std::chrono::milliseconds::max()});
    EXPECT_TRUE(done.ok());
    EXPECT_TRUE(group.barrier().ok());
  });
}

TEST(Message, NamesTheFailedRankToItsReceiver) {
  on_jobs(3, plain(TransportKind::inproc), [](Communicator& group, transport::Job& job) {
    if (group.rank() == 2) {
      transport::inproc::kill_thread_rank(job);
      return;
    }
    int data = 0;
    const auto got = group.receive_tagged(&data, 1, ElementType::i32);
    ASSERT_FALSE(got.ok());
    EXPECT_NE(got.error().message.find("rank 2 failed"), std::string::npos) << got.error().message;
    EXPECT_EQ(group.dead_ranks(), std::vector<std::int32_t>{2});
    const auto end = group.end();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->cause, Cause::death);
    EXPECT_EQ(end->dead, std::vector<std::int32_t>{2});
  });
}

}  // namespace
}  // namespace weft::comm
