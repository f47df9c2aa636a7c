#include "weft/communication/transport/rendezvous.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <deque>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rank_processes.h"
#include "temporary_folder.h"
#include "weft/base/sha256.h"
#include "weft/communication/transport/bootstrap_messages.h"
#include "weft/communication/transport/seal.h"
#include "weft/communication/transport/secret.h"
#include "weft/communication/transport/tcp/socket.h"
#include "weft/communication/transport/unix_socket.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;

// A port chosen by the kernel, with a listening socket, as weft launch passes it on.
struct Port {
  tcp::Socket listener;
  std::string host;
  std::uint16_t number = 0;

  explicit Port(std::string address = "127.0.0.1") : host(std::move(address)) {
    auto socket = tcp::listen(host, 0);
    if (!socket.ok()) return;
    number = tcp::local_address(*socket)->port();
    listener = std::move(*socket);
  }

  Rendezvous meeting(std::int32_t rank, std::int32_t ranks, std::chrono::milliseconds timeout = 10s) const {
    Rendezvous out = local_meeting(rank, ranks, "", timeout);
    out.address = host;
    out.port = number;
    if (rank == 0 && listener) out.listener = ::fcntl(listener.descriptor(), F_DUPFD_CLOEXEC, 0);
    return out;
  }
};

int join_and_exchange(const Rendezvous& rendezvous) {
  auto job = join(rendezvous);
  if (!job.ok()) return check(false, "to join", rendezvous.rank, job.error().message);
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 0; rank < rendezvous.ranks; ++rank) all.push_back(rank);
  return check((*job)->exchange(all, {0, 0}, {}).ok(), "an exchange", rendezvous.rank);
}

int fails_with(const Rendezvous& rendezvous, const std::string& message) {
  const auto job = join(rendezvous);
  const std::string seen = job.ok() ? "success" : job.error().message;
  return check(seen.find(message) != std::string::npos, message.c_str(), rendezvous.rank, seen);
}

TEST(Join, RetriesAnUnknownNameUntilTheTimeout) {
  Rendezvous rendezvous;
  rendezvous.rank = 1;
  rendezvous.ranks = 2;
  rendezvous.address = "no.such.name.invalid";
  rendezvous.port = 1;
  rendezvous.secret = "0123456789abcdef";
  rendezvous.timeout = 700ms;
  const auto begun = std::chrono::steady_clock::now();
  const auto joined = join(rendezvous);
  ASSERT_FALSE(joined.ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 700ms);
  EXPECT_NE(joined.error().message.find("no.such.name.invalid"), std::string::npos) << joined.error().message;
}

TEST(Join, ByNameByAddressAndByAnInheritedSocket) {
  const Port port;
  for (const bool by_address : {false, true}) {
    RankProcesses ranks;
    ranks.start_all(4, [&](std::int32_t rank) {
      return join_and_exchange(by_address ? port.meeting(rank, 4) : local_meeting(rank, 4, "join"));
    });
    EXPECT_EQ(ranks.wait_all(), std::vector<int>(4, 0)) << by_address;
  }
}

TEST(Join, OverIpv6AndWhenRankZeroIsLast) {
  Port port("::1");
  if (!port.listener) GTEST_SKIP() << "this machine has no IPv6 loopback";
  port.listener.close();  // rank 0 opens it itself, late: the others retry until then
  RankProcesses ranks;
  ranks.start_all(3, [&](std::int32_t rank) {
    if (rank == 0) std::this_thread::sleep_for(100ms);
    return join_and_exchange(port.meeting(rank, 3));
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(3, 0));
}

TEST(Join, NamesMissingRanks) {
  const Port port;
  RankProcesses ranks;
  for (const std::int32_t rank : {0, 2}) {
    ranks.start(rank, [&](std::int32_t self) {
      return fails_with(port.meeting(self, 4, 300ms),
                        "2 of 4 ranks connected within 300 ms: rank 1 and rank 3 are missing");
    });
  }
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(2, 0));
}

TEST(Join, ReportsThatNoRankAnswers) {
  Port port;
  port.listener.close();
  Rendezvous alone = port.meeting(1, 2, 50ms);
  const auto job = join(alone);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().message, fmt::format("rank 0 at 127.0.0.1:{0} does not answer within 50 ms: cannot "
                                             "connect to 127.0.0.1:{0}: no process listens there",
                                             port.number));
}

TEST(Join, RejectsAWrongSecret) {
  const Port port;
  RankProcesses ranks;
  ranks.start_all(2, [&](std::int32_t rank) {
    Rendezvous meeting = port.meeting(rank, 2, 400ms);
    if (rank == 0)
      return fails_with(meeting, "rank 1 is missing; 1 connected process does not have the job's secret");
    meeting.secret = "something else entirely";
    return fails_with(meeting, "does not have the job's secret");
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(2, 0));
}

TEST(Join, ReportsContradictionsToAllRanks) {
  const Port port;
  RankProcesses sizes;
  sizes.start_all(2, [&](std::int32_t rank) {
    return fails_with(port.meeting(rank, rank == 0 ? 2 : 3),
                      "rank 1 was started with WORLD_SIZE 3, rank 0 with 2");
  });
  EXPECT_EQ(sizes.wait_all(), std::vector<int>(2, 0));
  RankProcesses twins;
  for (const std::int32_t rank : {0, 1, 1}) {
    twins.start(
        rank, [&](std::int32_t self) { return fails_with(port.meeting(self, 3), "rank 1 connected twice"); });
  }
  EXPECT_EQ(twins.wait_all(), std::vector<int>(3, 0));
}

// A rank that joins and exits before all have joined: the others are notified at once, not after
// the timeout.
TEST(Join, NamesARankThatExitsMeanwhile) {
  const Port port;
  RankProcesses ranks;
  for (const std::int32_t rank : {0, 1, 2}) {
    ranks.start(rank, [&](std::int32_t self) {
      return fails_with(port.meeting(self, 4), "rank 2 ended while the ranks were connecting");
    });
  }
  std::this_thread::sleep_for(150ms);
  ::kill(ranks.process(2), SIGKILL);
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 0, 128 + SIGKILL}));
}

// Connections that send nothing, half a hello, or garbage all the while: they are dropped, and the
// job starts.
TEST(Join, ToleratesStrangers) {
  const Port port;
  RankProcesses ranks;
  ranks.start(0, [&](std::int32_t rank) { return join_and_exchange(port.meeting(rank, 4)); });
  std::vector<tcp::Socket> strangers;
  const std::string speeches[] = {"", "GET / HTTP/1.1\r\n\r\n", "weft-2\n\nhalf of a",
                                  std::string(5000, '\xff'), "weft-2\n\n" + std::string(32 + 32 + 100, 'x')};
  for (int i = 0; i < 600; ++i) {
    auto socket = tcp::connect("127.0.0.1", port.number, std::chrono::steady_clock::now() + 1s);
    if (!socket.ok()) continue;
    const std::string& speech = speeches[i % 5];
    ::send(socket->descriptor(), speech.data(), speech.size(), MSG_NOSIGNAL);
    if (i % 3 != 0) strangers.push_back(std::move(*socket));
  }
  for (const std::int32_t rank : {1, 2, 3}) {
    ranks.start(rank, [&](std::int32_t self) { return join_and_exchange(port.meeting(self, 4)); });
  }
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(4, 0));
}

// As fast as a process can: silence, valid hellos, and hellos byte by byte. Never ends.
int flood(std::uint16_t port) {
  const std::string hello = "weft-2\n\n" + std::string(32, 'x');
  std::deque<tcp::Socket> held;
  for (std::size_t i = 0;; ++i) {
    auto socket = tcp::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 1s);
    if (!socket.ok()) continue;
    const std::size_t said = i % 3 == 0 ? 0 : i % 3 == 1 ? hello.size() : 1 + i % 39;
    ::send(socket->descriptor(), hello.data(), said, MSG_NOSIGNAL);
    held.push_back(std::move(*socket));
    if (held.size() > 300) held.pop_front();
  }
}

TEST(Join, SurvivesAFlood) {
  const Port port;
  RankProcesses attackers;
  for (int i = 0; i < 4; ++i) attackers.start(i, [&](std::int32_t) { return flood(port.number); });
  RankProcesses ranks(30s);
  ranks.start_all(3, [&](std::int32_t rank) { return join_and_exchange(port.meeting(rank, 3, 20s)); });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(3, 0));
}

// Any user of the machine may take any name, so the socket name is one that only the job's ranks
// can compute.
TEST(Join, UsesANameThatOthersCannotGuess) {
  const std::string name = "taken" + std::to_string(::getpid());
  const auto taken =
      listen_unix(fmt::format("weft-meet-{}-{}", ::geteuid(), hex(bytes_of(sha256(name))).substr(0, 32)));
  ASSERT_TRUE(taken.ok());
  RankProcesses ranks;
  ranks.start_all(2, [&](std::int32_t rank) { return join_and_exchange(local_meeting(rank, 2, "taken")); });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(2, 0));
}

TEST(Join, SecureRanksConnect) {
  if (!check_can_seal().ok()) GTEST_SKIP();
  const Port port;
  RankProcesses ranks;
  ranks.start_all(3, [&](std::int32_t rank) {
    Rendezvous meeting = port.meeting(rank, 3);
    meeting.secure = true;
    meeting.listen = "127.0.0.1";
    return join_and_exchange(meeting);
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(3, 0));
}

TEST(Join, ReportsARankThatDoesNotEncrypt) {
  if (!check_can_seal().ok()) GTEST_SKIP();
  const Port port;
  for (const bool host_encrypts : {false, true}) {
    RankProcesses ranks;
    ranks.start_all(2, [&](std::int32_t rank) {
      Rendezvous meeting = port.meeting(rank, 2, 400ms);
      meeting.secure = (rank == 0) == host_encrypts;
      if (rank == 0)
        return fails_with(meeting, host_encrypts
                                       ? "1 connected process sent unencrypted data, rank 0 encrypts"
                                       : "1 connected process used encryption, rank 0 does not");
      return fails_with(
          meeting, host_encrypts ? fmt::format("rank 0 at 127.0.0.1:{} encrypts its messages", port.number)
                                 : fmt::format("rank 0 at 127.0.0.1:{} does not encrypt", port.number));
    });
    EXPECT_EQ(ranks.wait_all(), std::vector<int>(2, 0)) << host_encrypts;
  }
}

TEST(Join, RejectsInvalidOptions) {
  EXPECT_FALSE(join(local_meeting(2, 2, "none")).ok());
  EXPECT_FALSE(join(local_meeting(-1, 2, "none")).ok());
  Rendezvous open = local_meeting(0, 2, "none");
  open.secret.clear();
  EXPECT_FALSE(join(open).ok());
}

TEST(Invitation, ParsesBackAndRejectsGarbage) {
  const BootstrapMember one{2, 4, {"host/1", "[::1]:41", 77}, "weft-door"};
  const auto back = parse_bootstrap_member(print(one));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, 2);
  EXPECT_EQ(back->member.address, "[::1]:41");
  const auto table = parse_table(print(Table{"s", {one, one}}));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->attendees.size(), 2U);
  for (const std::string text :
       {"", "{}", "[]", "nonsense", R"({"rank": "two"})", R"({"session": 1, "members": []})"}) {
    EXPECT_FALSE(parse_bootstrap_member(text)) << text;
    EXPECT_FALSE(parse_table(text)) << text;
  }
  EXPECT_EQ(parse_failure(print(environment_error("why", "what to do"))).hint, "what to do");
  EXPECT_FALSE(parse_failure("garbage").message.empty());
}

// Sets environment variables for one test, and clears those that a launcher of the tests may have
// set.
class Environment : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_FD",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "PMIX_NAMESPACE",
                             "OMPI_MCA_ess_base_jobid",
                             "PMI_JOBID",
                             "WEFT_PORT",
                             "WEFT_LISTEN",
                             "WEFT_TIMEOUT",
                             "WEFT_JOB",
                             "WEFT_JOB_SECRET",
                             "WEFT_JOB_SECRET_FILE",
                             "WEFT_LISTENER_FD",
                             "TORCHELASTIC_RUN_ID",
                             "XDG_CONFIG_HOME"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
    set("WEFT_JOB_SECRET", "0123456789abcdef");
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static std::string complaint() {
    const auto read = rendezvous_from_environment();
    return read.ok() ? "none" : read.error().message;
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST_F(Environment, SupportsTorchrunAndWeftLaunch) {
  set("RANK", "3"), set("WORLD_SIZE", "8"), set("MASTER_ADDR", "node1"), set("MASTER_PORT", "29500");
  auto read = rendezvous_from_environment();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->ranks, 8);
  EXPECT_EQ(read->address, "node1");
  EXPECT_EQ(read->port, 29500);
  EXPECT_EQ(read->timeout, 30s);
  EXPECT_EQ(read->secret, "0123456789abcdef");
  set("TORCHELASTIC_RUN_ID", "x");  // torchrun's own store is at 29500
  EXPECT_EQ(rendezvous_from_environment()->port, 29501);
  set("WEFT_PORT", "4000"), set("WEFT_TIMEOUT", "1.5 s"), set("WEFT_LISTEN", "10.0.0.1");
  read = rendezvous_from_environment();
  EXPECT_EQ(read->port, 4000);
  EXPECT_EQ(read->timeout, 1500ms);
  EXPECT_EQ(read->listen, "10.0.0.1");
}

TEST_F(Environment, SupportsMpirunMpiexecAndSrun) {
  set("OMPI_COMM_WORLD_RANK", "1"), set("OMPI_COMM_WORLD_SIZE", "2"), set("PMIX_NAMESPACE", "4711");
  auto read = rendezvous_from_environment();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->address, "");
  EXPECT_NE(read->name.find("4711"), std::string::npos);
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("PMIX_NAMESPACE");
  set("PMI_RANK", "0"), set("PMI_SIZE", "2");
  EXPECT_NE(complaint().find("cannot identify this job"), std::string::npos);
  set("SLURM_JOB_ID", "12"), set("SLURM_STEP_ID", "3");
  EXPECT_EQ(rendezvous_from_environment()->name, "slurm 12.3");
  ::unsetenv("PMI_RANK");
  set("SLURM_PROCID", "4"), set("SLURM_NTASKS", "5");
  EXPECT_EQ(rendezvous_from_environment()->rank, 4);
}

TEST_F(Environment, ExplainsInvalidVariables) {
  EXPECT_NE(complaint().find("cannot tell which rank this is"), std::string::npos);
  set("RANK", "4");
  EXPECT_EQ(complaint(), "WORLD_SIZE must be a whole number from 1 to 65536: ''");
  set("WORLD_SIZE", "4");
  EXPECT_EQ(complaint(), "contradictory environment: RANK is 4, WORLD_SIZE is 4");
  set("RANK", "1x");
  EXPECT_EQ(complaint(), "RANK must be a whole number from 0 to 65536: '1x'");
  set("RANK", "1"), set("MASTER_ADDR", "localhost");
  EXPECT_EQ(complaint(), "MASTER_ADDR is set, but MASTER_PORT is not");
  set("MASTER_PORT", "99999999999999999999");
  EXPECT_EQ(complaint(), "MASTER_PORT must be a whole number from 1 to 65535: '99999999999999999999'");
  set("MASTER_PORT", "1000"), set("WEFT_TIMEOUT", "soon");
  EXPECT_EQ(complaint(), "WEFT_TIMEOUT must be a time from 10 ms to a week: 'soon'");
}

TEST_F(Environment, ReadsTheSecretOrItsFile) {
  const TemporaryFolder folder;
  set("RANK", "0"), set("WORLD_SIZE", "2"), set("MASTER_ADDR", "localhost"), set("MASTER_PORT", "1000");
  set("WEFT_JOB_SECRET", "short");
  EXPECT_EQ(complaint(), "a job's secret needs at least 16 characters: WEFT_JOB_SECRET has 5");
  ::unsetenv("WEFT_JOB_SECRET");

  const std::string file = folder / "secret";
  std::ofstream(file) << "a secret in a file\n";
  ::chmod(file.c_str(), 0644);
  set("WEFT_JOB_SECRET_FILE", file);
  EXPECT_NE(complaint().find("other users can read the job's secret"), std::string::npos);
  ::chmod(file.c_str(), 0600);
  EXPECT_EQ(rendezvous_from_environment()->secret, "a secret in a file");
  set("WEFT_JOB_SECRET_FILE", folder / "none");
  EXPECT_NE(complaint().find("cannot be read"), std::string::npos);
  ::unsetenv("WEFT_JOB_SECRET_FILE");

  // Neither is set: a secret is created for this user, once, even if several ranks do so at the
  // same time.
  set("XDG_CONFIG_HOME", folder / "config");
  RankProcesses ranks;
  ranks.start_all(4, [](std::int32_t) { return find_secret().ok() ? 0 : 1; });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(4, 0));
  const std::string secret = rendezvous_from_environment()->secret;
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(rendezvous_from_environment()->secret, secret);
  struct stat info = {};
  ASSERT_EQ(::stat((folder / "config/weft/job_key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(Environment, UsesAListenerOnlyIfItIsValid) {
  const Port port;
  set("RANK", "0"), set("WORLD_SIZE", "2"), set("MASTER_ADDR", "127.0.0.1"), set("MASTER_PORT", "1000");
  set("WEFT_LISTENER_FD", std::to_string(port.listener.descriptor()));
  EXPECT_EQ(rendezvous_from_environment()->listener, -1);  // it listens elsewhere
  set("WEFT_PORT", std::to_string(port.number));
  EXPECT_EQ(rendezvous_from_environment()->listener, port.listener.descriptor());
  set("WEFT_LISTENER_FD", "900");
  EXPECT_EQ(rendezvous_from_environment()->listener, -1);
}

TEST(NewSecret, IsNewEachTime) {
  EXPECT_EQ(new_secret().size(), 64U);
  EXPECT_NE(new_secret(), new_secret());
}

}  // namespace
}  // namespace weft::transport
