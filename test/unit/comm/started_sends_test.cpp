// Started sends: each rank starts its sends and receives in its own order.
//
// Only the order within a stream is fixed: the sends of one priority from one rank to another in one
// group. Everything else is random: priorities, sizes, groups, and the order in which each rank starts
// and waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "on_ranks.h"
#include "thorough.h"
#include "weft/base/hash.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kHungSends = 60s;  // far longer than anything takes on a busy machine

struct Message {
  std::size_t group = 0;
  std::int32_t from = 0, to = 0;  // ranks of the world
  Priority priority = Priority::normal;
  std::size_t bytes = 0;
};

// One end of a message.
struct MessageEnd {
  std::size_t message = 0;
  bool sends = false;
};

std::uint8_t byte_of(std::size_t message, std::size_t at) {
  return static_cast<std::uint8_t>(mix(message * 1'000'003 + at));
}

struct Drawn {
  std::int32_t ranks = 0;
  std::size_t groups = 0;
  std::vector<Message> messages;
};

// Groups: all ranks, all ranks again, all ranks in reverse order, and ranks of equal parity.
constexpr std::size_t kGroups = 4;

Drawn draw(std::mt19937& random, std::size_t groups) {
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  Drawn drawn{static_cast<std::int32_t>(2 + below(4)), groups, {}};
  constexpr std::size_t kSizes[] = {0, 1, 100, 5000, (128 << 10) + 1, 700'000};
  const std::size_t count = 10 + below(50);
  while (drawn.messages.size() < count) {
    Message message{.group = below(groups),
                    .from = static_cast<std::int32_t>(below(static_cast<std::size_t>(drawn.ranks))),
                    .to = static_cast<std::int32_t>(below(static_cast<std::size_t>(drawn.ranks))),
                    .priority = static_cast<Priority>(below(kPriorities)),
                    .bytes = kSizes[below(below(3) == 0 ? std::size(kSizes) : 4)]};
    if (message.from == message.to || (message.group == 3 && (message.from - message.to) % 2 != 0)) {
      if (drawn.ranks > 2 || message.group != 3) continue;
      message.group = 0;  // two ranks differ in parity
      message.to = 1 - message.from;
    }
    drawn.messages.push_back(message);
  }
  return drawn;
}

// The rank's ends of all messages, in a random order that keeps the order within each stream.
std::vector<MessageEnd> own_order(const Drawn& drawn, std::int32_t rank, std::mt19937& random) {
  std::vector<MessageEnd> ends;
  for (std::size_t i = 0; i < drawn.messages.size(); ++i)
    if (drawn.messages[i].from == rank || drawn.messages[i].to == rank)
      ends.push_back({i, drawn.messages[i].from == rank});
  std::ranges::shuffle(ends, random);
  const auto stream = [&](const MessageEnd& end) {
    const Message& message = drawn.messages[end.message];
    return std::tuple(message.group, message.from, message.to, message.priority);
  };
  std::map<decltype(stream(ends[0])), std::vector<std::size_t>> ascending;
  for (const MessageEnd& end : ends) ascending[stream(end)].push_back(end.message);
  for (auto& [key, messages] : ascending) std::ranges::sort(messages, std::greater());
  for (MessageEnd& end : ends) {
    auto& left = ascending[stream(end)];
    end.message = left.back();
    left.pop_back();
  }
  return ends;
}

std::int32_t rank_in(std::size_t group, std::int32_t rank, std::int32_t ranks) {
  return group == 2 ? ranks - 1 - rank : group == 3 ? rank / 2 : rank;
}

void run_drawn(Communicator& world, const Drawn& drawn, std::mt19937 random, const std::string& label) {
  const std::int32_t me = world.rank();
  std::vector<std::unique_ptr<Communicator>> made;
  std::vector<Communicator*> groups = {&world};
  for (const auto& [colour, key] : {std::pair{0, me}, {0, -me}, {me % 2, me}}) {
    if (groups.size() == drawn.groups) break;
    auto split = world.split(colour, key);
    ASSERT_TRUE(split.ok()) << split.error().message;
    groups.push_back(made.emplace_back(std::move(*split)).get());
  }
  struct UnderWay {
    MessageEnd end;
    std::vector<std::uint8_t> bytes;
    std::optional<Work> work;
  };
  std::vector<UnderWay> all;
  for (const MessageEnd& end : own_order(drawn, me, random)) {
    UnderWay& one =
        all.emplace_back(UnderWay{end, std::vector<std::uint8_t>(drawn.messages[end.message].bytes), {}});
    if (end.sends)
      for (std::size_t at = 0; at < one.bytes.size(); ++at) one.bytes[at] = byte_of(end.message, at);
  }
  for (UnderWay& one : all) {
    const Message& message = drawn.messages[one.end.message];
    auto work = groups[message.group]->start({.kind = Kind::send,
                                              .input = one.end.sends ? one.bytes.data() : nullptr,
                                              .output = one.end.sends ? nullptr : one.bytes.data(),
                                              .count = static_cast<std::int64_t>(message.bytes),
                                              .type = ElementType::u8,
                                              .root = rank_in(message.group, message.from, drawn.ranks),
                                              .peer = rank_in(message.group, message.to, drawn.ranks),
                                              .priority = message.priority});
    ASSERT_TRUE(work.ok()) << label << ": " << work.error().message;
    one.work = *std::move(work);
  }
  std::ranges::shuffle(all, random);
  for (const UnderWay& one : all) {
    const auto status = one.work->wait_for(kHungSends);
    if (!status) world.fail(environment_error("a send hangs"));
    ASSERT_TRUE(status) << label << ": message " << one.end.message << " hangs at rank " << me;
    ASSERT_TRUE(status->ok()) << label << ": " << status->error().message;
    for (std::size_t at = 0; at < one.bytes.size(); ++at)
      ASSERT_EQ(one.bytes[at], byte_of(one.end.message, at)) << label << ": message " << one.end.message;
  }
  for (Communicator* const group : groups) ASSERT_TRUE(group->barrier().ok());
}

class StartedSendsOver : public testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, StartedSendsOver,
                         testing::Values(TransportKind::inproc, TransportKind::shm, TransportKind::tcp,
                                         TransportKind::mixed),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(StartedSendsOver, ArriveWhateverTheOrderOfStarts) {
  for (std::uint32_t seed = 0; seed < thorough_or(60U, 6U); ++seed) {
    std::mt19937 random(seed);
    Options options = plain(GetParam());
    // Groups with background threads progress by themselves; without, the waiting rank drives one
    // group.
    options.background = seed % 3 != 0;
    const Drawn drawn = draw(random, options.background ? 1 + seed % kGroups : 1);
    on_ranks(drawn.ranks, options, [&](Communicator& world) {
      run_drawn(world, drawn, std::mt19937(1000 * seed + static_cast<std::uint32_t>(world.rank())),
                "seed " + std::to_string(seed));
    });
    if (HasFatalFailure()) return;
  }
}

// From a code review: the same calls in the same order on both ends.
TEST_P(StartedSendsOver, ALaterHighPrioritySendOvertakes) {
  on_ranks(2, plain(GetParam()), [](Communicator& group) {
    constexpr Priority kOrder[] = {Priority::low, Priority::high, Priority::normal, Priority::high,
                                   Priority::low};
    std::vector<std::vector<std::uint8_t>> data;
    std::vector<Work> works;
    for (std::size_t i = 0; i < 100; ++i)
      data.emplace_back(i % 7 * 40'000, group.rank() == 0 ? static_cast<std::uint8_t>(i) : 255);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto work = group.start({.kind = Kind::send,
                                     .input = data[i].data(),
                                     .output = data[i].data(),
                                     .count = static_cast<std::int64_t>(data[i].size()),
                                     .type = ElementType::u8,
                                     .root = 0,
                                     .peer = 1,
                                     .priority = kOrder[i % std::size(kOrder)]});
      ASSERT_TRUE(work.ok()) << work.error().message;
      works.push_back(*work);
    }
    for (const Work& work : works) ASSERT_TRUE(work.wait().ok());
    for (std::size_t i = 0; i < data.size(); ++i)
      for (const std::uint8_t byte : data[i]) ASSERT_EQ(byte, static_cast<std::uint8_t>(i));
  });
}

// The most common pattern: every rank starts all its receives, then all its sends, in a ring and to
// all ranks.
TEST_P(StartedSendsOver, AllReceivesBeforeAllSends) {
  on_ranks(6, plain(GetParam()), [](Communicator& group) {
    const std::int32_t ranks = group.size(), me = group.rank();
    std::vector<std::int32_t> from(static_cast<std::size_t>(ranks), -1), to(from);
    std::vector<Work> works;
    for (const bool sends : {false, true})
      for (std::int32_t step = 1; step < ranks; ++step) {
        const std::int32_t other = (me + (sends ? step : ranks - step)) % ranks;
        std::int32_t& number = (sends ? to : from)[static_cast<std::size_t>(other)];
        if (sends) number = 10 * me + other;
        const auto work = group.start({.kind = Kind::send,
                                       .input = &number,
                                       .output = &number,
                                       .count = 1,
                                       .type = ElementType::i32,
                                       .root = sends ? me : other,
                                       .peer = sends ? other : me});
        ASSERT_TRUE(work.ok()) << work.error().message;
        works.push_back(*work);
      }
    for (const Work& work : works) {
      const auto status = work.wait_for(kHungSends);
      if (!status) group.fail(environment_error("a send hangs"));
      ASSERT_TRUE(status && status->ok());
    }
    for (std::int32_t other = 0; other < ranks; ++other)
      if (other != me) {
        EXPECT_EQ(from[static_cast<std::size_t>(other)], 10 * other + me);
      }
    ASSERT_TRUE(group.barrier().ok());
  });
}

}  // namespace
}  // namespace weft::comm
