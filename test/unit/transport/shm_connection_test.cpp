// Connections through shared memory: every message arrives whole and in order, for any sizes and
// timing.
#include "weft/communication/transport/shm/connection.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "forked_job.h"
#include "weft/base/hash.h"
#include "weft/base/random.h"
#include "weft/communication/transport/inproc/endpoint.h"
#include "weft/communication/transport/peer_memory.h"
#include "weft/communication/transport/shm/endpoint.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kDeadline = 60s;

// After one timeout the others are short, so a broken connection fails soon, however many cases
// follow.
std::atomic<bool> in_vain = false;

// Retries a call until it succeeds, waiting in between; false at the deadline or if the connection
// has a fault.
bool go_on(Endpoint& endpoint, const std::function<bool()>& call) {
  const auto begin = Clock::now();
  const std::chrono::nanoseconds limit = in_vain ? 50ms : kDeadline;
  for (;;) {
    const std::uint32_t seen = endpoint.signal();
    if (call()) return true;
    if (endpoint.fault()) return false;
    if (Clock::now() - begin >= limit) {
      in_vain = true;
      return false;
    }
    endpoint.wait(seen, limit);
  }
}

// Runs a function on each of `ranks` threads with an endpoint of one group.
void with_threads(std::int32_t ranks, std::int64_t single_copy_bytes,
                  const std::function<void(Endpoint&)>& run) {
  auto jobs = make_thread_jobs(ranks, kDeadline);
  std::vector<std::int32_t> members;
  for (std::int32_t rank = 0; rank < ranks; ++rank) members.push_back(rank);
  std::vector<std::thread> threads;
  for (auto& job : jobs)
    threads.emplace_back([&, shared = std::shared_ptr<Job>(std::move(job))] {
      auto endpoint = inproc::make_endpoint(shared, members, 1, {.single_copy_bytes = single_copy_bytes});
      ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
      run(**endpoint);
    });
  for (auto& thread : threads) thread.join();
}

struct Stream {
  Capacity capacity;
  std::vector<std::size_t> sizes;
  std::int64_t single_copy_bytes = 0;
  std::uint64_t seed = 0;
};

std::vector<std::byte> content(const Stream& stream, std::size_t message) {
  std::vector<std::byte> bytes(stream.sizes[message]);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(mix(stream.seed + message) + i);
  return bytes;
}

bool send_all(Endpoint& endpoint, Outgoing& out, const Stream& stream) {
  Random random(stream.seed + 1);
  for (std::size_t i = 0; i < stream.sizes.size(); ++i) {
    const std::vector<std::byte> bytes = content(stream, i);
    out.set_label(i / 3);
    const bool in_place = random.below(2) == 0;
    const bool sent = go_on(endpoint, [&] {
      if (!in_place) return out.send_from(bytes);
      std::byte* const room = out.room(bytes.size());
      if (room == nullptr) return false;
      if (!bytes.empty()) std::memcpy(room, bytes.data(), bytes.size());
      out.send();
      return true;
    });
    if (!sent) return false;
    if (random.below(8) == 0) std::this_thread::yield();
  }
  return true;
}

bool receive_all(Endpoint& endpoint, Incoming& in, const Stream& stream) {
  Random random(stream.seed + 2);
  for (std::size_t i = 0; i < stream.sizes.size(); ++i) {
    std::vector<std::byte> bytes(stream.sizes[i]);
    in.set_label(i / 3);
    const bool in_place = random.below(2) == 0;
    const bool received = go_on(endpoint, [&] {
      if (!in_place) return in.receive_into(bytes);
      const std::byte* const front = in.front(bytes.size());
      if (front == nullptr || front != in.front(bytes.size())) return false;
      if (!bytes.empty()) std::memcpy(bytes.data(), front, bytes.size());
      in.pop();
      return true;
    });
    if (!received || bytes != content(stream, i)) return false;
    if (random.below(8) == 0) std::this_thread::yield();
  }
  return true;
}

TEST(ShmConnection, EveryMessageArrivesWholeAndInOrder) {
  EXPECT_TRUE(rc::check([] {
    Stream stream;
    stream.capacity = {.slots = *rc::gen::inRange(1, 5), .slot_bytes = *rc::gen::inRange(1, 400)};
    stream.single_copy_bytes = *rc::gen::element(0, 1, 100);
    stream.seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto largest = static_cast<std::size_t>(stream.capacity.slot_bytes);
    stream.sizes =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, largest + 1));
    stream.sizes.push_back(largest);
    bool sent = false, received = false;
    with_threads(2, stream.single_copy_bytes, [&](Endpoint& endpoint) {
      const Wire wires[] = {{0, 1, 0}};
      auto ends = endpoint.open(wires, stream.capacity);
      RC_ASSERT(ends.ok());
      if (endpoint.rank() == 0) sent = send_all(endpoint, *ends->outgoing[0], stream);
      if (endpoint.rank() == 1) received = receive_all(endpoint, *ends->incoming[0], stream);
    });
    RC_ASSERT(sent);
    RC_ASSERT(received);
  }));
}

// All ranks send to all others on two channels before they receive, as programs do that rely on
// slots.
TEST(ShmConnection, RanksThatAllSendFirstMakeProgress) {
  for (const std::int64_t single_copy_bytes : {0, 1})
    with_threads(3, single_copy_bytes, [](Endpoint& endpoint) {
      std::vector<Wire> wires;
      for (const std::int32_t from : {2, 0, 1})
        for (const std::int32_t to : {0, 2, 1})
          for (const std::int32_t channel : {1, 0})
            if (from != to) wires.push_back({from, to, channel});
      auto ends = endpoint.open(wires, {.slots = 1, .slot_bytes = 64});
      ASSERT_TRUE(ends.ok()) << ends.error().message;
      for (std::uint8_t round = 0; round < 20; ++round) {
        const auto text = [&](const Wire& wire) {
          return std::array<std::uint8_t, 4>{static_cast<std::uint8_t>(wire.from),
                                             static_cast<std::uint8_t>(wire.to),
                                             static_cast<std::uint8_t>(wire.channel), round};
        };
        for (std::size_t i = 0; i < wires.size(); ++i) {
          ASSERT_EQ(ends->outgoing[i] != nullptr, wires[i].from == endpoint.rank());
          ASSERT_EQ(ends->incoming[i] != nullptr, wires[i].to == endpoint.rank());
          if (!ends->outgoing[i]) continue;
          const auto mine = text(wires[i]);
          ASSERT_TRUE(
              go_on(endpoint, [&] { return ends->outgoing[i]->send_from(std::as_bytes(std::span(mine))); }));
        }
        for (std::size_t i = 0; i < wires.size(); ++i) {
          if (!ends->incoming[i]) continue;
          std::array<std::uint8_t, 4> theirs{};
          ASSERT_TRUE(go_on(endpoint, [&] {
            return ends->incoming[i]->receive_into(std::as_writable_bytes(std::span(theirs)));
          }));
          ASSERT_EQ(theirs, text(wires[i]));
        }
      }
    });
}

TEST(ShmConnection, AMessageOfAnotherCallOrLengthIsAFault) {
  struct Case {
    std::uint64_t label;
    std::size_t bytes;
    std::string text;
  };
  for (const Case& expected :
       {Case{0xabc, 16,
             "rank 0 sent 16 bytes of call 0x0000000000000123 on channel 4, expected 16 bytes of call "
             "0x0000000000000abc"},
        Case{0x123, 17,
             "rank 0 sent 16 bytes of call 0x0000000000000123 on channel 4, expected 17 bytes of call "
             "0x0000000000000123"}})
    with_threads(2, 0, [&](Endpoint& endpoint) {
      const Wire wires[] = {{0, 1, 4}};
      auto ends = endpoint.open(wires, {.slots = 2, .slot_bytes = 64});
      ASSERT_TRUE(ends.ok());
      std::vector<std::byte> bytes(expected.bytes);
      if (endpoint.rank() == 0) {
        ends->outgoing[0]->set_label(0x123);
        ASSERT_NE(ends->outgoing[0]->room(16), nullptr);
        ends->outgoing[0]->send();
        EXPECT_FALSE(endpoint.fault());
        return;
      }
      ends->incoming[0]->set_label(expected.label);
      EXPECT_FALSE(go_on(endpoint, [&] { return ends->incoming[0]->receive_into(bytes); }));
      const auto fault = endpoint.fault();
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->wire, wires[0]);
      EXPECT_EQ(fault->what, WireFault::What::other_call);
      EXPECT_EQ(fault->text, expected.text);
      // The fault persists.
      ends->incoming[0]->set_label(0x123);
      EXPECT_EQ(ends->incoming[0]->front(16), nullptr);
    });
}

TEST(ShmConnection, ASenderThatGivesUpWithdrawsItsMemory) {
  PeerMemory own;
  const std::string card = own.card();
  ASSERT_TRUE(own.meet(std::array<std::string_view, 1>{card}).ok());
  if (!own.reaches(0)) GTEST_SKIP() << "the kernel does not let processes read each other's memory here";
  with_threads(2, 1, [](Endpoint& endpoint) {
    auto ends = endpoint.open(std::vector<Wire>{{0, 1, 0}}, {.slots = 1, .slot_bytes = 64});
    ASSERT_TRUE(ends.ok());
    std::array<std::byte, 8> bytes{};
    if (endpoint.rank() == 0) {
      EXPECT_FALSE(ends->outgoing[0]->send_from(bytes)) << "posted, but not yet fetched";
      ends->outgoing[0].reset();
      return;
    }
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(go_on(endpoint, [&] { return ends->incoming[0]->receive_into(bytes); }));
    ASSERT_TRUE(endpoint.fault());
    EXPECT_EQ(endpoint.fault()->what, WireFault::What::closed);
  });
}

TEST(ShmEndpoint, WakesAndGivesUpInTime) {
  with_threads(1, 0, [](Endpoint& endpoint) {
    const std::uint32_t seen = endpoint.signal();
    const auto begin = Clock::now();
    endpoint.wait(seen, 20ms);
    EXPECT_GE(Clock::now() - begin, 20ms);
    std::thread waker([&] {
      std::this_thread::sleep_for(5ms);
      endpoint.wake();
    });
    endpoint.wait(seen, kDeadline);
    EXPECT_LT(Clock::now() - begin, kDeadline) << "hung: slept through the wake-up";
    EXPECT_NE(endpoint.signal(), seen);
    waker.join();
    EXPECT_EQ(endpoint.transport(), "inproc");
    EXPECT_FALSE(endpoint.progress());
  });
}

TEST(ShmEndpoint, InvalidConnectionsFailOnEveryRank) {
  struct Case {
    std::vector<Wire> wires;
    Capacity capacity;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{{0, 2, 0}}, {}, "a connection is outside the group: rank 0 to rank 2 of 2 ranks"},
      {{{-1, 0, 0}}, {}, "a connection is outside the group: rank -1 to rank 0 of 2 ranks"},
      {{{0, 1, 0}, {1, 0, 0}, {0, 1, 0}}, {}, "a connection is opened twice: rank 0 to rank 1, channel 0"},
      {{{0, 1, 0}}, {.slots = 0}, "a connection has 1 to 65536 slots: 0"},
      {{{0, 1, 0}}, {.slots = 4, .slot_bytes = -1}, "a slot has 1 to 1099511627776 bytes: -1"},
      {{{0, 1, 0}}, {.slots = 1 << 16, .slot_bytes = std::int64_t{1} << 40}, "not enough shared memory"}};
  with_threads(2, 0, [&](Endpoint& endpoint) {
    for (const Case& wrong : cases) {
      const auto ends = endpoint.open(wrong.wires, wrong.capacity);
      ASSERT_FALSE(ends.ok());
      EXPECT_EQ(ends.error().message.find(wrong.text), 0u) << ends.error().message;
    }
    // Ranks that request different connections are notified.
    const Wire wires[] = {{0, 1, endpoint.rank()}};
    const auto ends = endpoint.open(wires, {});
    ASSERT_FALSE(ends.ok());
    EXPECT_NE(ends.error().message.find("ranks open different connections"), std::string::npos);
    // Valid connections still work.
    EXPECT_TRUE(endpoint.open(std::vector<Wire>{{0, 1, 0}}, {}).ok());
    EXPECT_TRUE(endpoint.open({}, {}).ok());
  });
}

TEST(ShmEndpoint, LeavesNoDescriptorOpen) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_descriptors();
  with_threads(3, 0, [](Endpoint& endpoint) {
    auto ends = endpoint.open(std::vector<Wire>{{0, 1, 0}, {1, 2, 0}}, {});
    ASSERT_TRUE(ends.ok());
    EXPECT_FALSE(endpoint.open(std::vector<Wire>{{0, 9, 0}}, {}).ok());
  });
  EXPECT_EQ(open_descriptors(), before);
}

// An echo in another process: what arrives is sent back.
void echo_among_processes(std::int64_t single_copy_bytes) {
  constexpr int kMessages = 500;
  constexpr Capacity kCapacity{.slots = 3, .slot_bytes = 20'000};
  const auto job = std::make_shared<ForkedJob>();
  const auto run = [&](std::int32_t rank) -> std::string {
    job->become(rank);
    auto made = shm::make_endpoint(job, {0, 1}, 1, {.single_copy_bytes = single_copy_bytes});
    if (!made.ok()) return made.error().message;
    Endpoint& endpoint = **made;
    auto ends = endpoint.open(std::vector<Wire>{{0, 1, 0}, {1, 0, 0}}, kCapacity);
    if (!ends.ok()) return ends.error().message;
    Outgoing& out = *ends->outgoing[rank];
    Incoming& in = *ends->incoming[1 - rank];
    Random random(17);
    for (int i = 0; i < kMessages; ++i) {
      std::vector<std::uint8_t> bytes(random.below(i % 16 == 0 ? 20'001 : 40), static_cast<std::uint8_t>(i));
      const auto target = std::as_writable_bytes(std::span(bytes));
      if (rank == 1) std::ranges::fill(bytes, std::uint8_t{0});
      for (const bool sending : {rank == 0, rank == 1}) {
        if (!go_on(endpoint, [&] { return sending ? out.send_from(target) : in.receive_into(target); }))
          return "message " + std::to_string(i) + " was waited for in vain";
        if (rank == 0 && sending) std::ranges::fill(bytes, std::uint8_t{0});
      }
      for (const std::uint8_t byte : bytes)
        if (byte != static_cast<std::uint8_t>(i)) return "message " + std::to_string(i) + " is damaged";
    }
    return "";
  };
  const pid_t child = fork();
  if (child == 0) {
    alarm(15);
    const std::string problem = run(1);
    if (!problem.empty()) (void)!write(STDERR_FILENO, problem.data(), problem.size());
    _exit(problem.empty() ? 0 : 1);
  }
  EXPECT_EQ(run(0), "");
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ShmEndpoint, CarriesAnEchoBetweenProcesses) { echo_among_processes(0); }
TEST(ShmEndpoint, CarriesAnEchoBetweenProcessesWithoutSlots) { echo_among_processes(1000); }

}  // namespace
}  // namespace weft::transport
