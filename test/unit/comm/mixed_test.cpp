// Groups that span hosts: shared memory within each host, sockets between them, and one wait for
// both. The hosts are fake: threads of this process whose job reports different hosts.

#include "weft/communication/transport/mixed/endpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "elsewhere_job.h"
#include "weft/base/hash.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/inproc/job.h"
#include "weft/communication/transport/machine_ranks.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;
using Jobs = std::vector<std::shared_ptr<Elsewhere>>;

// An address that this machine does not have: opening a socket fails.
constexpr const char* kNowhere = "203.0.113.1:1";

void on_all(const Jobs& jobs, const std::function<void(const std::shared_ptr<Elsewhere>&)>& part) {
  std::vector<std::jthread> threads;
  for (const auto& job : jobs) threads.emplace_back([&part, job] { part(job); });
}

std::vector<std::int32_t> everyone(const Job& job) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(job.ranks()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

std::unique_ptr<Endpoint> endpoint_of(const std::shared_ptr<Elsewhere>& job) {
  auto made = mixed::make_endpoint(job, everyone(*job), 7);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

std::vector<Wire> all_pairs(std::int32_t ranks, std::int32_t channels) {
  std::vector<Wire> wires;
  for (std::int32_t from = 0; from < ranks; ++from)
    for (std::int32_t to = 0; to < ranks; ++to)
      for (std::int32_t channel = 0; channel < channels; ++channel) wires.push_back({from, to, channel});
  return wires;
}

Bytes message(std::size_t length, std::uint64_t seed) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(mix(seed * length + i));
  return bytes;
}

TEST(FindHosts, NumbersHostsAndRanksOnThem) {
  const Jobs jobs = make_elsewhere({"a/1", "a/1", "b/7", "a/1", "a/2"}, 1s);
  const Hosts hosts = find_hosts(*jobs[0], everyone(*jobs[0]));
  EXPECT_EQ(hosts.of, (std::vector<std::int32_t>{0, 0, 1, 0, 2}));
  EXPECT_EQ(hosts.places, (std::vector<std::int32_t>{0, 1, 0, 2, 0}));
  EXPECT_EQ(hosts.count, 3);
  EXPECT_TRUE(hosts.is_mixed());
  EXPECT_EQ(find_hosts(*jobs[0], std::vector{0, 1, 3}).count, 1);
  EXPECT_FALSE(find_hosts(*jobs[0], std::vector{0, 1, 3}).is_mixed());
  EXPECT_FALSE(find_hosts(*jobs[0], std::vector{0, 2, 4}).is_mixed()) << "no two ranks share a host";
  EXPECT_EQ(ranks_on_this_machine(*jobs[0], everyone(*jobs[0])), 4) << "namespaces share cores";
  EXPECT_EQ(find_hosts(*jobs[0]).by_host(), (std::vector<std::int32_t>{0, 1, 3, 2, 4}));
}

TEST(Mixed, CarriesMessagesBetweenAllRanks) {
  for (const auto& hosts : {std::vector<std::string>{"a", "b", "a", "b", "c"}, {"a", "a"}, {"a", "b"}}) {
    const Jobs jobs = make_elsewhere(hosts, 5s);
    const auto wires = all_pairs(static_cast<std::int32_t>(hosts.size()), 2);
    on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
      const auto endpoint = endpoint_of(job);
      EXPECT_EQ(endpoint->transport(), "mixed");
      for (int opening = 0; opening < 2; ++opening) {
        auto ends = endpoint->open(wires, {.slots = 3, .slot_bytes = 5000});
        ASSERT_TRUE(ends.ok()) << ends.error().message;
        for (const std::size_t length : {0UL, 1UL, 5000UL}) {
          for (std::size_t i = 0; i < wires.size(); ++i) {
            ASSERT_EQ(ends->outgoing[i] != nullptr, wires[i].from == job->rank());
            if (wires[i].from != job->rank()) continue;
            const Bytes out = message(length, i);
            ends->outgoing[i]->set_label(i);
            EXPECT_TRUE(until(*endpoint, 5s, [&] { return ends->outgoing[i]->send_from(out); }));
          }
          for (std::size_t i = 0; i < wires.size(); ++i) {
            ASSERT_EQ(ends->incoming[i] != nullptr, wires[i].to == job->rank());
            if (wires[i].to != job->rank()) continue;
            Bytes in(length);
            ends->incoming[i]->set_label(i);
            EXPECT_TRUE(until(*endpoint, 5s, [&] { return ends->incoming[i]->receive_into(in); }));
            EXPECT_EQ(in, message(length, i));
          }
        }
      }
      EXPECT_FALSE(endpoint->fault());
    });
  }
}

TEST(Mixed, RanksOfOneHostNeedNoSockets) {
  Jobs jobs = make_elsewhere({"a", "b", "a"}, 5s);
  for (const auto& job : jobs)
    for (Member& member : job->members()) member.address = kNowhere;
  on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
    const auto endpoint = endpoint_of(job);
    const auto near = endpoint->open(std::vector<Wire>{{0, 2, 0}, {2, 0, 0}}, {});
    EXPECT_TRUE(near.ok()) << near.error().message;
    const auto far = endpoint->open(std::vector<Wire>{{0, 2, 0}, {0, 1, 0}}, {});
    ASSERT_FALSE(far.ok());
    const std::string trouble = "cannot listen on 203.0.113.1:0: address or port not available";
    EXPECT_EQ(far.error().message,
              job->rank() == 1 ? trouble : "rank 1 cannot open its connections: " + trouble);
  });
}

// One host cannot open shared memory: the others would wait for its sockets.
TEST(Mixed, ReportsAnErrorOnOneHostToAll) {
  const Jobs jobs = make_elsewhere({"a", "b", "b"}, 2 * kHung);
  const auto begin = Clock::now();
  on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
    const auto endpoint = endpoint_of(job);
    const auto ends = endpoint->open(std::vector<Wire>{{0, 1, 0}, {1, 2, 0}, {1, 2, 0}}, {});
    ASSERT_FALSE(ends.ok());
    EXPECT_NE(ends.error().message.find("opened twice"), std::string::npos) << ends.error().message;
    if (job->rank() == 0) {
      EXPECT_TRUE(ends.error().message.starts_with("rank 1 cannot open")) << ends.error().message;
    }
  });
  EXPECT_LT(Clock::now() - begin, kHung) << "hung: waited for sockets that were never opened";
}

TEST(Mixed, FaultsUseRanksOfTheGroup) {
  const Jobs jobs = make_elsewhere({"a", "b", "a", "b"}, 5s);
  const std::vector<Wire> wires = {{3, 1, 0}, {2, 1, 0}};  // near: on b; far: from a to b
  for (const std::size_t wrong : {0u, 1u}) {
    on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
      const auto endpoint = endpoint_of(job);
      auto ends = endpoint->open(wires, {});
      ASSERT_TRUE(ends.ok());
      Bytes bytes = message(50, 1);
      const auto& out = ends->outgoing[wrong];
      const auto& in = ends->incoming[wrong];
      if (out) {
        out->set_label(17);
        EXPECT_TRUE(until(*endpoint, 2 * kHung, [&] { return out->send_from(bytes); }));
      }
      if (in) {
        EXPECT_FALSE(until(*endpoint, 2 * kHung, [&] { return in->receive_into(bytes); }));
        const auto fault = endpoint->fault();
        ASSERT_TRUE(fault);
        EXPECT_EQ(fault->what, WireFault::What::other_call);
        EXPECT_EQ(fault->wire, wires[wrong]);
        EXPECT_NE(fault->text.find("rank " + std::to_string(wires[wrong].from)), std::string::npos)
            << fault->text;
      }
      (void)job->exchange(everyone(*job), {7, 99 + wrong}, {});  // no rank closes before the other has looked
    });
  }
}

// Three ranks in a row pass on a token: 0 and 1 by memory, 1 and 2 by sockets. Each falls asleep
// now and then before its token arrives.
TEST(Mixed, MissesNoWakeUpFromEitherTransport) {
  constexpr int kRounds = 300;
  const Jobs jobs = make_elsewhere({"a", "a", "b", "b"}, 2 * kHung);
  const std::vector<Wire> wires = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 0, 0}};
  const auto begin = Clock::now();
  on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
    const auto endpoint = endpoint_of(job);
    auto ends = endpoint->open(wires, {.slots = 1, .slot_bytes = 8});
    ASSERT_TRUE(ends.ok());
    const auto rank = static_cast<std::size_t>(job->rank());
    Outgoing& out = *ends->outgoing[rank];
    Incoming& in = *ends->incoming[(rank + 3) % 4];
    Bytes token(8);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      if (rank != 0) {
        ASSERT_TRUE(until(*endpoint, 2 * kHung, [&] { return in.receive_into(token); })) << round;
      }
      const std::uint64_t pause = mix(round * 4 + rank) % 8;
      if (pause > 4) std::this_thread::sleep_for(std::chrono::microseconds(30 * pause));
      ASSERT_TRUE(until(*endpoint, 2 * kHung, [&] { return out.send_from(token); })) << round;
      if (rank == 0) {
        ASSERT_TRUE(until(*endpoint, 2 * kHung, [&] { return in.receive_into(token); })) << round;
      }
    }
  });
  EXPECT_LT(Clock::now() - begin, kHung) << "hung: a wake-up was missed";
}

TEST(Mixed, WakesEverySleeper) {
  const Jobs jobs = make_elsewhere({"a", "a", "b"}, 5s);
  const auto begin = Clock::now();
  on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
    const auto endpoint = endpoint_of(job);
    std::atomic<int> awake = 0;
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < 3; ++i)
      sleepers.emplace_back([&] {
        endpoint->wait(endpoint->signal(), 2 * kHung);
        ++awake;
      });
    while (awake < 3) {  // threads that had not read the signal yet sleep through the first wake-up
      endpoint->wake();
      std::this_thread::sleep_for(1ms);
    }
    const std::uint32_t seen = endpoint->signal();
    endpoint->wait(seen, 2ms);
  });
  EXPECT_LT(Clock::now() - begin, kHung) << "hung: slept through the wake-up";
}

using comm::Communicator;
using comm::ElementType;
using comm::TransportKind;

comm::Options plain(TransportKind transport = TransportKind::automatic) {
  comm::Options options;
  options.transport = transport;
  options.statistics = "none";
  return options;
}

std::unique_ptr<Communicator> group_of(const std::shared_ptr<Elsewhere>& job,
                                       TransportKind transport = TransportKind::automatic) {
  auto made = Communicator::create(job, plain(transport));
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

Status sum_of_ranks(Communicator& group, std::int64_t& sum) {
  sum = group.rank() + 1;
  return group.all_reduce(&sum, &sum, 1, ElementType::i64);
}

TEST(MixedGroup, AutomaticUsesWhatTheHostsAllow) {
  const std::vector<std::pair<std::vector<std::string>, std::string_view>> cases = {
      {{"a", "a", "b"}, "mixed"}, {{"a", "b", "c"}, "tcp"}, {{"a", "a"}, "inproc"}};
  for (const auto& hosts_and_transport : cases)
    on_all(make_elsewhere(hosts_and_transport.first, 5s), [&](const std::shared_ptr<Elsewhere>& job) {
      const auto group = group_of(job);
      EXPECT_EQ(group->transport(), hosts_and_transport.second);
      std::int64_t sum = 0;
      EXPECT_TRUE(sum_of_ranks(*group, sum).ok());
      EXPECT_EQ(sum, job->ranks() * (job->ranks() + 1) / 2);
    });
  on_all(make_elsewhere({"a", "a", "b"}, 5s), [&](const std::shared_ptr<Elsewhere>& job) {
    EXPECT_EQ(group_of(job, TransportKind::tcp)->transport(), "tcp");
  });
}

TEST(MixedGroup, RejectsSharedMemoryAcrossHosts) {
  on_all(make_elsewhere({"a", "a", "b"}, 5s), [&](const std::shared_ptr<Elsewhere>& job) {
    const auto group = Communicator::create(job, plain(TransportKind::shm));
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.error().message, "shared memory needs all ranks on one machine, found 2 machines");
    EXPECT_NE(group.error().hint.find("automatic"), std::string::npos);
  });
}

TEST(MixedGroup, SubgroupsChooseTheirTransport) {
  on_all(make_elsewhere({"a", "b", "a", "b"}, 5s), [&](const std::shared_ptr<Elsewhere>& job) {
    const auto group = group_of(job, TransportKind::mixed);
    ASSERT_EQ(group->transport(), "mixed");
    const auto host = group->split(group->rank() % 2, 0);
    ASSERT_TRUE(host.ok()) << host.error().message;
    EXPECT_EQ((*host)->transport(), "inproc");
    const auto across = group->split(group->rank() / 2, -group->rank());  // not in the job's order
    ASSERT_TRUE(across.ok());
    EXPECT_EQ((*across)->transport(), "tcp");
    const auto backwards = group->split(0, -group->rank());
    ASSERT_TRUE(backwards.ok());
    EXPECT_EQ((*backwards)->transport(), "mixed");
    for (Communicator* each : {host->get(), across->get(), backwards->get()}) {
      std::int64_t sum = 0;
      EXPECT_TRUE(sum_of_ranks(*each, sum).ok());
      EXPECT_EQ(sum, each->size() * (each->size() + 1) / 2);
    }
    // A rank of another host and one of the same host.
    for (const std::int32_t distance : {1, 2}) {
      const std::int32_t other = group->rank() ^ distance;
      std::int32_t mine = group->rank(), theirs = -1;
      const auto sending = group->start({.kind = comm::Kind::send,
                                         .input = &mine,
                                         .count = 1,
                                         .type = ElementType::i32,
                                         .root = group->rank(),
                                         .peer = other});
      ASSERT_TRUE(sending.ok()) << sending.error().message;
      EXPECT_TRUE(group->receive(&theirs, 1, ElementType::i32, other).ok());
      EXPECT_TRUE(sending->wait().ok());
      EXPECT_EQ(theirs, other);
    }
    EXPECT_TRUE(group->barrier().ok());
  });
}

TEST(MixedGroup, NamesAFailedRankOnBothHostsAndContinues) {
  for (const std::int32_t victim : {0, 3}) {
    const Jobs jobs = make_elsewhere({"a", "a", "b", "b"}, 2 * kHung);
    on_all(jobs, [&](const std::shared_ptr<Elsewhere>& job) {
      const auto group = group_of(job);
      ASSERT_TRUE(group->barrier().ok());
      if (job->rank() == victim) {
        std::this_thread::sleep_for(30ms);  // the others are asleep by now
        inproc::kill_thread_rank(job->inner());
        return;
      }
      const auto begin = Clock::now();
      std::int64_t sum = 0;
      const Status status = sum_of_ranks(*group, sum);
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.error().message.find("rank " + std::to_string(victim) + " failed"), std::string::npos)
          << status.error().message;
      EXPECT_LT(Clock::now() - begin, kHung) << "hung: waited for the failed rank";
      const auto rest = group->shrink();
      ASSERT_TRUE(rest.ok()) << rest.error().message;
      EXPECT_EQ((*rest)->transport(), "mixed");
      EXPECT_TRUE(sum_of_ranks(**rest, sum).ok());
      EXPECT_EQ(sum, 6);
    });
  }
}

}  // namespace
}  // namespace weft::transport
