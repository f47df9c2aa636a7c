// The MPI transport over an MPI made of threads (fake_mpi.h). test/mpi runs it on real
// implementations.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elsewhere_job.h"
#include "fake_mpi.h"
#include "weft/base/random.h"
#include "weft/communication/transport/mpi/endpoint.h"
#include "weft/communication/transport/mpi/job.h"
#include "weft/communication/transport/mpi/plugin.h"

namespace weft::transport::mpi {
namespace {

using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Clock = std::chrono::steady_clock;

// The private state of one rank of a test.
struct Place {
  std::shared_ptr<Library> library;
  std::shared_ptr<Job> job;
  std::vector<std::int32_t> everyone;

  std::unique_ptr<Endpoint> endpoint(std::uint64_t group = 1) const {
    return make_endpoint(job, everyone, group, library).value();
  }
};

// Runs `body` on every rank, each a thread.
void as_ranks(FakeMpi& mpi, int ranks, const std::function<void(Place&)>& body,
              std::chrono::milliseconds timeout = 5s) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Place place{Library::start(mpi.table(r)).value(), nullptr,
                  std::vector<std::int32_t>(static_cast<std::size_t>(ranks))};
      std::iota(place.everyone.begin(), place.everyone.end(), 0);
      Result<std::unique_ptr<Job>> job = join(place.library, timeout);
      ASSERT_TRUE(job.ok()) << job.error().message;
      place.job = std::move(job).value();
      body(place);
    });
  }
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Steps until done, a fault, or the deadline.
bool finish(Endpoint& endpoint, const std::function<bool()>& step) {
  for (const auto end = Clock::now() + 5s; Clock::now() < end && !endpoint.fault();) {
    const std::uint32_t seen = endpoint.signal();
    if (step()) return true;
    endpoint.wait(seen, 20ms);
  }
  return false;
}

TEST(MpiJob, ExchangesAmongAllAndSomeRanks) {
  FakeMpi mpi(4);
  as_ranks(mpi, 4, [](Place& place) {
    const std::int32_t rank = place.job->rank();
    EXPECT_EQ(place.job->member(3).host, place.job->member(0).host);
    for (std::uint64_t number = 0; number < 5; ++number) {
      const auto all = place.job->exchange(place.everyone, {5, number}, {std::to_string(rank + 10)});
      ASSERT_TRUE(all.ok()) << all.error().message;
      for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ((*all)[r].bytes, std::to_string(r + 10));
      EXPECT_EQ((*all)[0].descriptor, -1);
    }
    const std::vector<std::int32_t> pair = rank < 2 ? std::vector{0, 1} : std::vector{2, 3};
    const auto some =
        place.job->exchange(pair, {6, 1}, {std::string(1 << 20, static_cast<char>('a' + rank))});
    ASSERT_TRUE(some.ok()) << some.error().message;
    EXPECT_EQ((*some)[1].bytes, std::string(1 << 20, static_cast<char>('a' + pair[1])));
  });
  EXPECT_EQ(mpi.unreceived(), 0);
}

TEST(MpiJob, RejectsAGroupWithoutItself) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const std::vector<std::int32_t> other = {1 - place.job->rank()};
    EXPECT_FALSE(place.job->exchange(other, {5, 1}, {}).ok());
    EXPECT_FALSE(place.job->exchange(std::vector<std::int32_t>{1, 0}, {5, 1}, {}).ok());
    EXPECT_FALSE(place.job->exchange(std::vector<std::int32_t>{0, 1, 2}, {5, 1}, {}).ok());
    EXPECT_FALSE(place.job->exchange(std::vector<std::int32_t>{}, {5, 1}, {}).ok());
  });
}

TEST(MpiJob, DeliversMessagesInOrderIncludingEarlyOnes) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const std::int32_t other = 1 - place.job->rank();
    for (std::uint64_t i = 0; i < 50; ++i) place.job->send(other, {9, i}, std::to_string(i));
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 1}, {}).ok());  // all have arrived by now
    std::atomic<std::uint64_t> next = 0;
    std::atomic<bool> right = true;
    place.job->handle(9, [&](std::int32_t from, std::uint64_t number, std::string_view bytes) {
      right = right && from == other && number == next && bytes == std::to_string(number);
      ++next;
    });
    for (std::uint64_t i = 50; i < 100; ++i) place.job->send(other, {9, i}, std::to_string(i));
    for (const auto end = Clock::now() + 5s; next < 100 && Clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    place.job->handle(9, nullptr);
    EXPECT_EQ(next, 100u);
    EXPECT_TRUE(right);
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 2}, {}).ok());
  });
}

TEST(MpiJob, ReportsDepartedRanksAndContinues) {
  FakeMpi mpi(3);
  as_ranks(mpi, 3, [](Place& place) {
    std::atomic<bool> heard = false;
    const std::uint64_t listener =
        place.job->on_death([&](const Death& death) { heard = heard || (death.left && death.rank == 1); });
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 0}, {}).ok());
    if (place.job->rank() == 1) return place.job->leave();
    const auto all = place.job->exchange(place.everyone, {5, 1}, {});
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().message, "rank 1 has left the job");
    const auto survivors = place.job->agree_on_survivors(place.everyone, {5, 2});
    ASSERT_TRUE(survivors.ok()) << survivors.error().message;
    EXPECT_EQ(*survivors, (std::vector<std::int32_t>{0, 2}));
    ASSERT_FALSE(place.job->deaths().empty());
    EXPECT_EQ(place.job->deaths()[0].how, "it left the job");
    ASSERT_TRUE(place.job->exchange(*survivors, {5, 3}, {}).ok());
    for (const auto end = Clock::now() + 5s; !heard && Clock::now() < end;) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(heard);
    place.job->forget(listener);
    place.job->leave();
  });
}

TEST(MpiJob, NamesAMissingRank) {
  FakeMpi mpi(2);
  std::atomic<bool> reported = false;
  as_ranks(
      mpi, 2,
      [&](Place& place) {
        if (place.job->rank() == 0) {
          const auto all = place.job->exchange(place.everyone, {5, 1}, {});
          ASSERT_FALSE(all.ok());
          EXPECT_EQ(all.error().message, "rank 1 did not join within 200 ms");
          reported = true;
        }
        for (const auto end = Clock::now() + 5s; !reported && Clock::now() < end;)
          std::this_thread::sleep_for(1ms);
      },
      200ms);
}

// Any lengths, any number of slots, several connections at once: messages arrive in order.
TEST(MpiConnection, KeepsOrderAndContents) {
  for (const std::int32_t slots : {1, 2, 4}) {
    FakeMpi mpi(3);
    as_ranks(mpi, 3, [&](Place& place) {
      const auto endpoint = place.endpoint();
      EXPECT_EQ(endpoint->transport(), "mpi");
      const std::vector<Wire> wires = {{0, 1, 0}, {1, 0, 0}, {0, 1, 1}, {2, 1, 0}, {1, 2, 5}};
      Ends ends = endpoint->open(wires, {slots, 300}).value();
      std::vector<Random> draws;
      for (std::size_t w = 0; w < wires.size(); ++w) draws.emplace_back(w);
      std::vector<int> left(wires.size(), 100);
      std::vector<std::vector<std::byte>> messages(wires.size());
      const auto draw = [&](std::size_t w) {
        messages[w].resize(draws[w].below(301));
        for (std::byte& byte : messages[w]) byte = static_cast<std::byte>(draws[w].next());
      };
      for (std::size_t w = 0; w < wires.size(); ++w) {
        draw(w);
        EXPECT_EQ(ends.outgoing[w] != nullptr, wires[w].from == endpoint->rank());
        EXPECT_EQ(ends.incoming[w] != nullptr, wires[w].to == endpoint->rank());
        if (!ends.outgoing[w] && !ends.incoming[w]) left[w] = 0;
      }
      EXPECT_TRUE(finish(*endpoint, [&] {
        for (bool moved = true; moved;) {
          moved = false;
          for (std::size_t w = 0; w < wires.size(); ++w) {
            if (left[w] == 0) continue;
            std::vector<std::byte> target(messages[w].size());
            if (ends.outgoing[w] ? !ends.outgoing[w]->send_from(messages[w])
                                 : !ends.incoming[w]->receive_into(target)) {
              continue;
            }
            if (ends.incoming[w]) {
              EXPECT_EQ(target, messages[w]);
            }
            moved = true;
            --left[w];
            draw(w);
          }
        }
        return std::accumulate(left.begin(), left.end(), 0) == 0;
      }));
    });
  }
}

// A receiver that reads nothing stops its sender after the slots of both ends.
TEST(MpiConnection, IsBounded) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const auto endpoint = place.endpoint();
    Ends ends = endpoint->open(std::vector<Wire>{{0, 1, 0}}, {3, 8}).value();
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 0}, {}).ok());  // the receiver is ready
    int sent = 0;
    if (Outgoing* out = ends.outgoing[0].get()) {
      while (sent < 100 && out->send_from(bytes_of("12345678"))) ++sent;
      EXPECT_EQ(sent, 6);
      EXPECT_EQ(out->room(8), nullptr);
    }
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 1}, {}).ok());
    if (Incoming* in = ends.incoming[0].get()) {
      for (int i = 0; i < 7; ++i) {
        EXPECT_TRUE(finish(*endpoint, [&] {
          if (in->front(8) == nullptr) return false;
          in->pop();
          return true;
        }));
      }
    } else {
      EXPECT_TRUE(finish(*endpoint, [&] { return ends.outgoing[0]->send_from(bytes_of("12345678")); }));
    }
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 2}, {}).ok());
  });
}

TEST(MpiConnection, ReportsBothSidesOfAMismatch) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const auto endpoint = place.endpoint();
    Ends ends = endpoint->open(std::vector<Wire>{{0, 1, 0}}, {2, 64}).value();
    if (Outgoing* out = ends.outgoing[0].get()) {
      out->set_label(0xa);
      EXPECT_TRUE(out->send_from(bytes_of("0123456789abcdef")));
    } else {
      ends.incoming[0]->set_label(0xb);
      EXPECT_FALSE(finish(*endpoint, [&] { return ends.incoming[0]->front(24) != nullptr; }));
      const auto fault = endpoint->fault();
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->what, WireFault::What::other_call);
      EXPECT_EQ(fault->wire, (Wire{0, 1, 0}));
      EXPECT_EQ(fault->text, "rank 0 sent 16 bytes of call 0xa, where 24 bytes of call 0xb were expected");
      ends.incoming[0]->set_label(0xa);
      EXPECT_EQ(ends.incoming[0]->front(16), nullptr);  // it stays broken
    }
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 1}, {}).ok());
  });
}

TEST(MpiConnection, DetectsADamagedMessageBetweenHosts) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [&](Place& place) {
    const auto far = std::make_shared<Elsewhere>(place.job, std::vector<Member>{{"0", "", 1}, {"1", "", 1}});
    const auto endpoint = make_endpoint(far, place.everyone, 1, place.library).value();
    Ends ends = endpoint->open(std::vector<Wire>{{0, 1, 0}}, {1, 64}).value();
    mpi.flip_a_byte();
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 1}, {}).ok());
    if (ends.outgoing[0]) {
      EXPECT_TRUE(ends.outgoing[0]->send_from(bytes_of("as it was")));
    } else {
      EXPECT_FALSE(finish(*endpoint, [&] { return ends.incoming[0]->front(9) != nullptr; }));
      const auto fault = endpoint->fault();
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->what, WireFault::What::damaged);
      EXPECT_TRUE(fault->text.starts_with("a message of rank 0 is corrupted: checksum 0x")) << fault->text;
    }
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 2}, {}).ok());
  });
}

TEST(MpiConnection, ReportsMpiErrors) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [&](Place& place) {
    const auto endpoint = place.endpoint();
    Ends ends = endpoint->open(std::vector<Wire>{{0, 1, 0}}, {1, 64}).value();
    ASSERT_TRUE(place.job->exchange(place.everyone, {5, 1}, {}).ok());
    if (!ends.outgoing[0]) return;
    mpi.refuse_sends();
    static_cast<void>(ends.outgoing[0]->send_from(bytes_of("x")));
    const auto fault = endpoint->fault();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->text, "a fake MPI cannot send to rank 1: refused");
    EXPECT_EQ(ends.outgoing[0]->room(1), nullptr);
  });
}

TEST(MpiEndpoint, RejectsConnectionsThatOthersDoNotOpen) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const auto endpoint = place.endpoint();
    const auto ends = endpoint->open(std::vector<Wire>{{0, 1, place.job->rank()}}, {1, 64});
    ASSERT_FALSE(ends.ok());
    EXPECT_NE(ends.error().message.find("opens different connections from"), std::string::npos)
        << ends.error().message;
    EXPECT_FALSE(endpoint->open(std::vector<Wire>{{0, 2, 0}}, {1, 64}).ok());
    EXPECT_FALSE(endpoint->open(std::vector<Wire>{{0, 1, 0}}, {0, 64}).ok());
    EXPECT_FALSE(endpoint->open(std::vector<Wire>{{0, 1, 0}}, {1, std::int64_t{1} << 40}).ok());
  });
}

TEST(MpiEndpoint, ReportsExhaustedTags) {
  FakeMpi mpi(2);
  mpi.allow_tags(3);
  as_ranks(mpi, 2, [](Place& place) {
    const auto endpoint = place.endpoint();
    const std::vector<Wire> wires = {{0, 1, 0}, {0, 1, 1}, {1, 0, 0}, {1, 0, 1}};
    EXPECT_TRUE(endpoint->open(wires, {1, 8}).ok());
    const auto more = endpoint->open(wires, {1, 8});
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().message,
              "a fake MPI has no tags left for connections: 3 of 3 are used, 2 more are needed");
  });
}

TEST(MpiEndpoint, IsWokenFromSleep) {
  FakeMpi mpi(1);
  as_ranks(mpi, 1, [](Place& place) {
    const auto endpoint = place.endpoint();
    const auto start = Clock::now();
    endpoint->wait(endpoint->signal(), 20ms);
    EXPECT_GE(Clock::now() - start, 20ms);
    const std::uint32_t seen = endpoint->signal();
    std::jthread waker([&] {
      std::this_thread::sleep_for(10ms);
      endpoint->wake();
    });
    endpoint->wait(seen, 2 * kHung);
    EXPECT_LT(Clock::now() - start, kHung) << "hung: slept through the wake-up";
    EXPECT_NE(endpoint->signal(), seen);
  });
}

// Connections destroyed during transfers leave no memory that MPI still reads, and no unreceived
// message.
TEST(MpiLibrary, EndsCleanlyDuringTransfers) {
  FakeMpi mpi(2);
  as_ranks(mpi, 2, [](Place& place) {
    const auto endpoint = place.endpoint();
    Ends ends = endpoint->open(std::vector<Wire>{{0, 1, 0}, {1, 0, 0}}, {2, 64}).value();
    for (const auto& out : ends.outgoing) {
      while (out && out->send_from(bytes_of("nobody wants this"))) {
      }
    }
  });
  EXPECT_EQ(mpi.unreceived(), 0);
}

// Sets environment variables temporarily.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char*, const char*>> variables = {}) {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "WEFT_MPI_PLUGIN"})
      ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "WEFT_MPI_PLUGIN"})
      ::unsetenv(name);
  }
};

TEST(MpiPlugin, ReportsWhatIsMissing) {
  {
    const Environment nothing;
    EXPECT_FALSE(launched_by_mpi());
    EXPECT_EQ(load_plugin().error().message,
              "MPI did not start this process: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set");
  }
  {
    const Environment wrong({{"WEFT_MPI_PLUGIN", "lam"}});
    EXPECT_EQ(load_plugin().error().message, "WEFT_MPI_PLUGIN is openmpi, mpich or a path, not lam");
  }
  {
    const Environment missing({{"PMI_RANK", "0"}, {"WEFT_MPI_PLUGIN", "/nowhere/weft_mpi_mpich.so"}});
    EXPECT_TRUE(launched_by_mpi());
    const auto plugin = load_plugin();
    ASSERT_FALSE(plugin.ok());
    EXPECT_TRUE(
        plugin.error().message.starts_with("the MPI plugin cannot be loaded: /nowhere/weft_mpi_mpich.so"))
        << plugin.error().message;
    EXPECT_EQ(plugin.error().hint, "install libmpich-dev");
  }
}

}  // namespace
}  // namespace weft::transport::mpi
