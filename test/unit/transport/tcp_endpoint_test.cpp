// Ranks that communicate by sockets: they connect despite other connections to their ports, and
// none waits forever.

#include "weft/communication/transport/tcp/endpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "elsewhere_job.h"
#include "weft/base/hash.h"
#include "weft/communication/transport/inproc/job.h"
#include "weft/communication/transport/seal.h"
#include "weft/communication/transport/tcp/socket.h"

namespace {

using namespace weft::transport;
using namespace weft::transport::tcp;
using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

Bytes message(std::size_t length, std::uint64_t seed) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(weft::mix(seed * length + i));
  return bytes;
}

std::vector<std::shared_ptr<Elsewhere>> make_jobs(std::int32_t ranks, const std::string& address,
                                                  bool many_hosts, std::chrono::milliseconds timeout = 5s) {
  std::vector<Member> members;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    members.push_back({.host = many_hosts ? "host " + std::to_string(rank) : "here", .address = address});
  std::vector<std::shared_ptr<Elsewhere>> jobs;
  for (auto& job : make_thread_jobs(ranks, timeout))
    jobs.push_back(std::make_shared<Elsewhere>(std::move(job), members));
  return jobs;
}

void on_all_ranks(std::int32_t ranks, const std::function<void(std::int32_t)>& rank_part) {
  std::vector<std::jthread> threads;
  for (std::int32_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { rank_part(rank); });
}

std::vector<std::int32_t> all(std::int32_t ranks) {
  std::vector<std::int32_t> members;
  for (std::int32_t rank = 0; rank < ranks; ++rank) members.push_back(rank);
  return members;
}

const std::vector<Wire> kBothWays = {{.from = 0, .to = 1, .channel = 0}, {.from = 1, .to = 0, .channel = 0}};

struct Part {
  std::unique_ptr<Endpoint> endpoint;
  Ends ends;
  Outgoing& out() { return *ends.outgoing[endpoint->rank() == 0 ? 0 : 1]; }
  Incoming& in() { return *ends.incoming[endpoint->rank() == 0 ? 1 : 0]; }
};

Part open_part(const std::shared_ptr<Job>& job, const Capacity& capacity = {},
               const TcpOptions& options = {}) {
  auto endpoint = make_endpoint(job, all(job->ranks()), 0, options);
  if (!endpoint.ok()) throw std::runtime_error(endpoint.error().message);
  auto ends = (*endpoint)->open(kBothWays, capacity);
  if (!ends.ok()) throw std::runtime_error(ends.error().message);
  return {std::move(*endpoint), std::move(*ends)};
}

bool has_ipv6() { return listen("::1", 0).ok(); }

TEST(TcpEndpoint, CarriesMessagesBothWaysOverBothProtocols) {
  for (const std::string address : {"", "127.0.0.1:1", "[::1]:1"}) {
    if (address.starts_with('[') && !has_ipv6()) continue;
    for (const bool many_hosts : {false, true}) {
      const auto jobs = make_jobs(2, address, many_hosts);
      on_all_ranks(2, [&](std::int32_t rank) {
        Part part = open_part(jobs[static_cast<std::size_t>(rank)], {.slots = 2, .slot_bytes = 300'000});
        EXPECT_EQ(part.endpoint->transport(), "tcp");
        EXPECT_EQ(part.ends.outgoing[rank == 0 ? 1 : 0], nullptr);
        for (const std::size_t length : {0UL, 1UL, 5000UL, 300'000UL}) {
          const auto own = static_cast<std::uint64_t>(rank), other = 1 - own;
          part.out().set_label(length);
          part.in().set_label(length);
          const Bytes out = message(length, own);
          Bytes in(length);
          EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.out().send_from(out); }));
          EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.in().receive_into(in); }));
          EXPECT_EQ(in, message(length, other));
        }
      });
    }
  }
}

// The two directions of a pair share a socket: closing one does not close the other.
TEST(TcpEndpoint, OneDirectionClosesAlone) {
  const auto jobs = make_jobs(2, "", false);
  std::vector<Part> parts(2);
  on_all_ranks(2, [&](std::int32_t rank) {
    const auto r = static_cast<std::size_t>(rank);
    parts[r] = open_part(jobs[r]);
  });
  parts[0].ends.outgoing[0].reset();
  Bytes in(10);
  EXPECT_FALSE(until(*parts[1].endpoint, 1s, [&] { return parts[1].in().receive_into(in); }));
  ASSERT_TRUE(parts[1].endpoint->fault());
  EXPECT_EQ(parts[1].endpoint->fault()->what, WireFault::What::closed);
  const Bytes out = message(10, 7);
  EXPECT_TRUE(parts[1].out().send_from(out));
  EXPECT_TRUE(until(*parts[0].endpoint, kHung, [&] { return parts[0].in().receive_into(in); }));
  EXPECT_EQ(in, out);
}

TEST(TcpEndpoint, ManyRanksAndChannelsAndASecondOpening) {
  constexpr std::int32_t kRanks = 4;
  const auto jobs = make_jobs(kRanks, "", false);
  std::vector<Wire> wires;
  for (std::int32_t from = 0; from < kRanks; ++from)
    for (std::int32_t to = 0; to < kRanks; ++to)
      for (std::int32_t channel = 0; channel < 2; ++channel) wires.push_back({from, to, channel});
  on_all_ranks(kRanks, [&](std::int32_t rank) {
    auto endpoint = make_endpoint(jobs[static_cast<std::size_t>(rank)], all(kRanks), 7);
    ASSERT_TRUE(endpoint.ok());
    for (int opening = 0; opening < 2; ++opening) {
      auto ends = (*endpoint)->open(wires, {});
      ASSERT_TRUE(ends.ok()) << ends.error().message;
      for (std::size_t i = 0; i < wires.size(); ++i)
        if (wires[i].from == rank) {
          const Bytes out = message(300, i);
          EXPECT_TRUE(until(**endpoint, kHung, [&] { return ends->outgoing[i]->send_from(out); }));
        }
      for (std::size_t i = 0; i < wires.size(); ++i)
        if (wires[i].to == rank) {
          const std::byte* in = nullptr;
          EXPECT_TRUE(
              until(**endpoint, kHung, [&] { return (in = ends->incoming[i]->front(300)) != nullptr; }));
          EXPECT_EQ(Bytes(in, in + 300), message(300, i));
          ends->incoming[i]->pop();
        }
    }
  });
}

// Both ranks fill all slots before either receives, far more than the kernel buffers: each is
// guaranteed that space.
TEST(TcpEndpoint, SlotsHoldMoreThanTheKernelBuffers) {
  constexpr Capacity kCapacity{.slots = 4, .slot_bytes = 300'000};
  const auto jobs = make_jobs(2, "", false);
  on_all_ranks(2, [&](std::int32_t rank) {
    Part part = open_part(jobs[static_cast<std::size_t>(rank)], kCapacity, {.buffer_bytes = 64 << 10});
    const Bytes out = message(300'000, 1);
    for (int i = 0; i < kCapacity.slots; ++i)
      ASSERT_TRUE(until(*part.endpoint, kHung, [&] { return part.out().send_from(out); })) << i;
    for (int i = 0; i < kCapacity.slots; ++i) {
      Bytes in(out.size());
      ASSERT_TRUE(until(*part.endpoint, kHung, [&] { return part.in().receive_into(in); })) << i;
      EXPECT_EQ(in, out);
    }
    // No rank closes before the other is done.
    EXPECT_TRUE(jobs[static_cast<std::size_t>(rank)]->exchange(all(2), {0, 99}, {}).ok());
  });
}

// Sent messages arrive although the sender makes no further calls and drops its end at once.
TEST(TcpEndpoint, SentMessagesArriveWithoutFurtherCalls) {
  const auto jobs = make_jobs(2, "", false);
  const Bytes bytes = message(300'000, 1);
  std::atomic<bool> received = false;
  on_all_ranks(2, [&](std::int32_t rank) {
    Part part = open_part(jobs[static_cast<std::size_t>(rank)], {.slots = 1, .slot_bytes = 300'000},
                          {.buffer_bytes = 64 << 10});
    if (rank == 0) {
      std::copy(bytes.begin(), bytes.end(), part.out().room(bytes.size()));
      part.out().send();
      part.ends.outgoing.clear();
      for (int i = 0; i < 1000 && !received; ++i) std::this_thread::sleep_for(10ms);
      return;
    }
    std::this_thread::sleep_for(20ms);
    Bytes in(bytes.size());
    EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.in().receive_into(in); }));
    EXPECT_EQ(in, bytes);
    received = true;
  });
}

TEST(TcpEndpoint, ToleratesStrangers) {
  auto jobs = make_jobs(2, "", true, 2 * kHung);
  std::atomic<int> knocked = 0;
  // Rank 0 learns where rank 1 listens and sends strangers there before it continues.
  std::vector<Socket> strangers;
  jobs[0]->on_exchange = [&](const std::vector<Parcel>& parcels) {
    const std::size_t at = parcels[1].bytes.find('@', 48);
    if (at == std::string::npos) return;
    const auto address = parse_host_port(parcels[1].bytes.substr(at + 1));
    if (!address.ok()) return;
    for (const std::string_view said : {"", "GET / HTTP/1.1\r\n\r\n", "weft-2\n\n",
                                        "weft-2\n\n00000000000000000000000000000000", "\0\0\0\0"}) {
      auto socket = connect(address->host, address->port, Clock::now() + 1s);
      ASSERT_TRUE(socket.ok());
      EXPECT_TRUE(send_all(*socket, std::as_bytes(std::span(said)), Clock::now() + 1s).ok());
      strangers.push_back(std::move(*socket));
      ++knocked;
    }
    for (int i = 0; i < 300; ++i)  // more than are accepted at a time
      if (auto socket = connect(address->host, address->port, Clock::now() + 1s); socket.ok())
        strangers.push_back(std::move(*socket));
  };
  const auto begin = Clock::now();
  on_all_ranks(2, [&](std::int32_t rank) {
    Part part = open_part(jobs[static_cast<std::size_t>(rank)]);
    Bytes bytes = message(50, 1);
    EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.out().send_from(bytes); }));
    EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.in().receive_into(bytes); }));
  });
  EXPECT_EQ(knocked, 5);
  EXPECT_LT(Clock::now() - begin, kHung) << "hung: a rank waits for a stranger";
}

// A rank that encrypts and one that does not never connect: each reports the other's mode.
TEST(TcpEndpoint, SecureRanksConnectToSecureRanksOnly) {
  if (!check_can_seal().ok()) GTEST_SKIP();
  auto jobs = make_jobs(2, "", true, 2 * kHung);
  for (const auto& job : jobs) job->seals = true;
  on_all_ranks(2, [&](std::int32_t rank) {
    Part part = open_part(jobs[static_cast<std::size_t>(rank)]);
    for (const std::size_t length : {50UL, 60'000UL}) {
      const Bytes sent = message(length, 3);
      Bytes came(length);
      bool out = false, in = false;
      EXPECT_TRUE(until(*part.endpoint, kHung, [&] {
        if (!out) out = part.out().send_from(sent);
        if (!in) in = part.in().receive_into(came);
        return out && in;
      }));
      EXPECT_EQ(came, sent);
    }
  });
  auto unlike = make_jobs(2, "", true, 300ms);
  unlike[0]->seals = true;
  on_all_ranks(2, [&](std::int32_t rank) {
    auto endpoint = make_endpoint(unlike[static_cast<std::size_t>(rank)], all(2), 0, {});
    const auto ends = (*endpoint)->open(kBothWays, {});
    ASSERT_FALSE(ends.ok());
    EXPECT_NE(ends.error().message.find("does not encrypt its messages, this rank does"), std::string::npos)
        << ends.error().message;
  });
}

// The two directions of a channel share a descriptor, and nothing else stays open.
TEST(TcpEndpoint, BothDirectionsShareOneDescriptor) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  auto jobs = make_jobs(2, "", true, 2 * kHung);
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (const auto& job : jobs) {
    auto endpoint = make_endpoint(job, all(2), 0, {});
    endpoints.push_back(std::move(*endpoint));
  }
  const auto before = open_descriptors();
  std::vector<Ends> ends(2);
  on_all_ranks(2, [&](std::int32_t rank) {
    const auto place = static_cast<std::size_t>(rank);
    auto opened = endpoints[place]->open(kBothWays, {});
    ASSERT_TRUE(opened.ok());
    ends[place] = std::move(*opened);
  });
  EXPECT_EQ(open_descriptors() - before, 2);  // one per rank
}

TEST(TcpEndpoint, OpeningFailsAndNamesTheMissingRank) {
  const auto jobs = make_jobs(2, "", false);
  inproc::kill_thread_rank(jobs[1]->inner());
  auto endpoint = make_endpoint(jobs[0], all(2), 0);
  ASSERT_TRUE(endpoint.ok());
  const auto ends = (*endpoint)->open(kBothWays, {});
  ASSERT_FALSE(ends.ok());
  EXPECT_NE(ends.error().message.find("rank 1"), std::string::npos) << ends.error().message;
}

// A rank that cannot listen notifies the others, which would otherwise wait for it.
TEST(TcpEndpoint, ReportsAnErrorOfOneRankToAll) {
  auto jobs = make_jobs(2, "", false);
  std::vector<Member> members = {{.host = "here", .address = ""},
                                 {.host = "here", .address = "203.0.113.1:1"}};
  auto inner = make_thread_jobs(2, 5s);
  for (std::size_t rank = 0; rank < 2; ++rank)
    jobs[rank] = std::make_shared<Elsewhere>(std::move(inner[rank]), members);
  on_all_ranks(2, [&](std::int32_t rank) {
    auto endpoint = make_endpoint(jobs[static_cast<std::size_t>(rank)], all(2), 0);
    const auto ends = (*endpoint)->open(kBothWays, {});
    ASSERT_FALSE(ends.ok());
    const std::string text = "cannot listen on 203.0.113.1:0: address or port not available";
    EXPECT_EQ(ends.error().message, rank == 1 ? text : "rank 1 cannot open its connections: " + text);
  });
}

TEST(TcpEndpoint, NotifiesRanksThatOpenDifferentConnections) {
  const auto jobs = make_jobs(2, "", false);
  on_all_ranks(2, [&](std::int32_t rank) {
    auto endpoint = make_endpoint(jobs[static_cast<std::size_t>(rank)], all(2), 0);
    const auto ends = (*endpoint)->open(kBothWays, {.slots = 1 + rank});
    ASSERT_FALSE(ends.ok());
    EXPECT_EQ(ends.error().message, rank == 0 ? "ranks open different connections: rank 0 and rank 1"
                                              : "ranks open different connections: rank 1 and rank 0");
  });
  auto endpoint = make_endpoint(jobs[0], all(2), 0);
  EXPECT_FALSE((*endpoint)->open(std::vector<Wire>{{0, 2, 0}}, {}).ok());
  EXPECT_FALSE((*endpoint)->open(std::vector<Wire>{{0, 1, 0}, {0, 1, 0}}, {}).ok());
  EXPECT_FALSE((*endpoint)->open(kBothWays, {.slots = 0}).ok());
  EXPECT_FALSE((*endpoint)->open(kBothWays, {.slot_bytes = std::int64_t{1} << 40}).ok());
  EXPECT_FALSE(make_endpoint(jobs[0], {1}, 0).ok());
}

TEST(TcpEndpoint, MismatchedCallsAndClosedEndsAreFaults) {
  const auto jobs = make_jobs(2, "", false);
  on_all_ranks(2, [&](std::int32_t rank) {
    Part part = open_part(jobs[static_cast<std::size_t>(rank)]);
    Bytes bytes = message(50, 1);
    if (rank == 0) {
      part.out().set_label(17);
      EXPECT_TRUE(until(*part.endpoint, kHung, [&] { return part.out().send_from(bytes); }));
      EXPECT_FALSE(until(*part.endpoint, 1s, [&] { return part.in().receive_into(bytes); }));
      ASSERT_TRUE(part.endpoint->fault());
      EXPECT_EQ(part.endpoint->fault()->what, WireFault::What::closed);
      return;
    }
    part.in().set_label(18);
    EXPECT_FALSE(until(*part.endpoint, 1s, [&] { return part.in().receive_into(bytes); }));
    ASSERT_TRUE(part.endpoint->fault());
    EXPECT_EQ(part.endpoint->fault()->what, WireFault::What::other_call);
    EXPECT_EQ(part.endpoint->fault()->wire, kBothWays[0]);
  });
}

TEST(TcpEndpoint, WakesEverySleeper) {
  const auto jobs = make_jobs(2, "", false);
  const auto begin = Clock::now();
  auto endpoint = make_endpoint(jobs[0], {0}, 0);
  {
    std::atomic<int> awake = 0;
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < 3; ++i)
      sleepers.emplace_back([&] {
        (*endpoint)->wait((*endpoint)->signal(), 2 * kHung);
        ++awake;
      });
    while (awake < 3) {  // threads that had not read the signal yet sleep through the first wake-up
      (*endpoint)->wake();
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_LT(Clock::now() - begin, kHung) << "hung: slept through the wake-up";
  const std::uint32_t seen = (*endpoint)->signal();
  (*endpoint)->wait(seen, 2ms);
  EXPECT_EQ((*endpoint)->signal(), seen) << "nothing happened";
}

}  // namespace
