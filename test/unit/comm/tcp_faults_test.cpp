// Network faults: no free ports, a peer that accepts a connection and sends nothing, a host that
// vanishes. Each ends in time with an error that names the rank and the address.

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "elsewhere_job.h"
#include "rank_processes.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/tcp/endpoint.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Clock = std::chrono::steady_clock;

constexpr int kCannot = 77;  // network namespaces are not available

const std::vector<Wire> kBothWays = {{0, 1, 0}, {1, 0, 0}};
const std::vector<std::int32_t> kBoth = {0, 1};

Result<Ends> open_wires(const std::shared_ptr<Job>& job, std::unique_ptr<Endpoint>& endpoint) {
  WEFT_TRY(made, tcp::make_endpoint(job, kBoth, 5));
  endpoint = std::move(made);
  return endpoint->open(kBothWays, {});
}

// A network namespace for this process, with a loopback device and a limited port range.
bool enter_network(int first_port, int last_port) {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const tcp::Socket any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::copy_n("lo", 3, loopback.ifr_name);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(any.descriptor(), SIOCSIFFLAGS, &loopback) != 0) return false;
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << first_port << ' ' << last_port << std::endl;
  return range.good();
}

int expect_text(const Error& error, const std::string& message, std::int32_t rank) {
  return check(error.message == message, message.c_str(), rank, error.message) |
         check(error.hint.find("ip_local_port_range") != std::string::npos || rank != 0, "a hint", rank,
               error.hint);
}

// No port left to listen on, then none to connect from.
int without_ports(std::int32_t) {
  if (!enter_network(20000, 20003)) return kCannot;
  std::vector<tcp::Socket> taken;
  for (auto each = tcp::listen("127.0.0.1", 0); each.ok(); each = tcp::listen("127.0.0.1", 0))
    taken.push_back(std::move(*each));
  int wrong = check(taken.size() == 4, "four ports", 0, std::to_string(taken.size()));
  const auto none = tcp::listen("127.0.0.1", 0);
  wrong |= expect_text(none.error(), "cannot listen on 127.0.0.1:0: address or port not available", 0);
  const auto listener = tcp::listen("127.0.0.1", 30000);
  if (!listener.ok()) return check(false, "a port outside the range", 0, listener.error().message);
  const auto call = tcp::connect("127.0.0.1", 30000, Clock::now() + 2s);
  if (call.ok()) return check(false, "no port to call from", 0);
  wrong |= expect_text(call.error(), "cannot connect to 127.0.0.1:30000: address or port not available", 0);

  // Ranks: one port is free again. Rank 1, which is connected to, listens on it; rank 0 has none to
  // connect from.
  taken.pop_back();
  auto jobs = make_elsewhere({"a", "b"}, 5s);
  const auto begin = Clock::now();
  std::vector<std::string> said(2), hints(2);
  {
    std::vector<std::jthread> threads;
    for (const std::size_t rank : {0u, 1u})
      threads.emplace_back([&, rank] {
        std::unique_ptr<Endpoint> endpoint;
        const auto made = tcp::make_endpoint(jobs[rank], kBoth, 5);
        const auto ends = (*made)->open(std::vector<Wire>{{0, 1, 0}}, {});
        if (!ends.ok()) {
          said[rank] = ends.error().message;
          hints[rank] = ends.error().hint;
        }
      });
  }
  wrong |= check(Clock::now() - begin < 2s, "no waiting", 0);
  const auto reached = said[0].find("cannot reach rank 1: cannot connect to 127.0.0.1:2000");
  wrong |= check(reached == 0 && said[0].ends_with("address or port not available"),
                 "no port to call rank 1 from", 0, said[0]);
  wrong |= check(hints[0].find("ip_local_port_range") != std::string::npos, "a hint", 0, hints[0]);
  wrong |= check(said[1] == "rank 0 cannot open its connections: " + said[0], "what rank 0 said", 1, said[1]);
  return wrong;
}

TEST(TcpFaults, ReportsAnExhaustedPortRangeToAllRanks) {
  RankProcesses processes;
  processes.start(0, without_ports);
  const int code = processes.wait(0);
  if (code == kCannot) GTEST_SKIP() << "network namespaces cannot be made here";
  EXPECT_EQ(code, 0);
}

// Makes `rank` announce another address than the one it listens at.
void say_listens_at(Elsewhere& job, std::size_t rank, const std::string& address) {
  job.on_exchange = [rank, address](std::vector<Parcel>& parcels) {
    std::string& notice = parcels[rank].bytes;
    if (const std::size_t at = notice.find('@', 48); at != std::string::npos)
      notice.replace(at + 1, std::string::npos, address);
  };
}

// The kernel accepts connections for a stuck program: the connection opens and no data ever
// arrives.
TEST(TcpFaults, NamesASilentPeerInTime) {
  const auto silent = tcp::listen("127.0.0.1", 0);
  ASSERT_TRUE(silent.ok());
  const std::string address = tcp::local_address(*silent)->text();
  auto jobs = make_elsewhere({"a", "b"}, 500ms);
  say_listens_at(*jobs[0], 1, address);
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (const std::size_t rank : {0u, 1u})
      threads.emplace_back([&, rank] {
        // So that rank 0 times out first.
        if (rank == 1) std::this_thread::sleep_for(150ms);
        std::unique_ptr<Endpoint> endpoint;
        const auto ends = open_wires(jobs[rank], endpoint);
        ASSERT_FALSE(ends.ok());
        const std::string& said = ends.error().message;
        if (rank == 0) {
          EXPECT_EQ(said, "rank 1 at " + address + " does not answer within 0.5 s");
        } else {
          EXPECT_TRUE(said.starts_with("rank 0 did not connect to 127.0.0.1:") ||
                      said.starts_with("rank 0 cannot open its connections: rank 1 at " + address))
              << said;
        }
      });
  }
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, 450ms);
  EXPECT_LT(took, kHung) << "hung";
}

TEST(TcpFaults, HintsAtFirewallAndDoctor) {
  const auto silent = tcp::listen("127.0.0.1", 0);
  auto jobs = make_elsewhere({"a", "b"}, 300ms);
  say_listens_at(*jobs[0], 1, tcp::local_address(*silent)->text());
  std::jthread other([&] {
    std::this_thread::sleep_for(150ms);
    std::unique_ptr<Endpoint> endpoint;
    EXPECT_FALSE(open_wires(jobs[1], endpoint).ok());
  });
  std::unique_ptr<Endpoint> endpoint;
  const auto ends = open_wires(jobs[0], endpoint);
  ASSERT_FALSE(ends.ok());
  EXPECT_NE(ends.error().hint.find("firewall"), std::string::npos) << ends.error().hint;
  EXPECT_NE(ends.error().hint.find("weft doctor"), std::string::npos) << ends.error().hint;
}

bool run_ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

// Two networks joined by a cable that is cut while rank 0 waits: no packet tells that rank 1 is
// gone.
struct CutOff {
  int ready[2][2], go[2][2];  // per rank: "my network is up", and "it has its cable"

  int part(std::int32_t rank) const {
    if (!enter_network(20000, 30000)) return kCannot;
    char byte = 0;
    if (::write(ready[rank][1], "r", 1) != 1 || ::read(go[rank][0], &byte, 1) != 1) return 2;
    const std::string own = "10.88.0." + std::to_string(rank + 1), cable = "cable" + std::to_string(rank);
    if (!run_ip("address add " + own + "/24 dev " + cable) || !run_ip("link set " + cable + " up")) return 2;
    Rendezvous meeting = local_meeting(rank, 2, "cut off");
    meeting.name.clear();
    meeting.address = "10.88.0.1";
    meeting.port = 4712;
    meeting.timeout = 2s;
    auto job = join(meeting);
    if (!job.ok()) return check(false, "a meeting", rank, job.error().message);
    comm::Options options;
    options.statistics = "none";
    auto group = comm::Communicator::create(std::shared_ptr<Job>(std::move(*job)), options);
    if (!group.ok()) return check(false, "a group", rank, group.error().message);
    float sum = 1;
    const Status first = (*group)->all_reduce(&sum, &sum, 1, comm::ElementType::f32);
    if (!first.ok()) return check(false, "a sum", rank, first.error().message);
    if (rank == 1) {  // its own end of the cable, so that nothing it still sends arrives
      if (!run_ip("link set " + cable + " down")) return 2;
      ::kill(::getpid(), SIGKILL);
    }
    const auto begin = Clock::now();
    const Status second = (*group)->all_reduce(&sum, &sum, 1, comm::ElementType::f32);
    const auto took = Clock::now() - begin;
    if (second.ok()) return check(false, "an error", rank);
    return check(second.error().message.starts_with("rank 1 failed: no heartbeat for 2 s"),
                 "rank 1's silence", rank, second.error().message) |
           check(took < 4s, "an end within the timeout", rank);
  }
};

TEST(TcpFaults, NamesARankWhoseHostVanishedWithinTheTimeout) {
  if (::geteuid() != 0 || !run_ip("-V")) GTEST_SKIP() << "needs root and the program ip";
  CutOff scene;
  for (const int rank : {0, 1}) {
    ASSERT_EQ(::pipe(scene.ready[rank]), 0);
    ASSERT_EQ(::pipe(scene.go[rank]), 0);
  }
  RankProcesses processes;
  processes.start_all(2, [&](std::int32_t rank) { return scene.part(rank); });
  bool cabled = true;
  for (const int rank : {0, 1}) {
    ::close(scene.ready[rank][1]);  // so that a rank that gives up is noticed
    char byte = 0;
    cabled = ::read(scene.ready[rank][0], &byte, 1) == 1 && cabled;
  }
  const std::string first = std::to_string(processes.process(0)),
                    second = std::to_string(processes.process(1));
  cabled = cabled && run_ip("link add cable0 netns " + first + " type veth peer name cable1 netns " + second);
  if (!cabled) GTEST_SKIP() << "network namespaces cannot be made or joined here";
  for (const int rank : {0, 1}) EXPECT_EQ(::write(scene.go[rank][1], "g", 1), 1);
  EXPECT_EQ(processes.wait(0), 0);
  EXPECT_EQ(processes.wait(1), 128 + SIGKILL);
  for (const int rank : {0, 1})
    for (const int end : {scene.ready[rank][0], scene.go[rank][0], scene.go[rank][1]}) ::close(end);
}

}  // namespace
}  // namespace weft::transport
