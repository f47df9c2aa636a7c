#include "weft/communication/transport/process_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rank_processes.h"
#include "weft/base/random.h"
#include "weft/communication/transport/doctor.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
constexpr auto kHung = 60s;  // far longer than anything takes on a busy machine
using Clock = std::chrono::steady_clock;

std::vector<std::int32_t> first(std::int32_t ranks) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(ranks));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// Waits for another thread or process.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = 5s) {
  for (const auto until = Clock::now() + limit; Clock::now() < until; std::this_thread::sleep_for(200us)) {
    if (condition()) return true;
  }
  return condition();
}

TEST(ProcessJob, ExchangesParcelsAndDescriptors) {
  RankProcesses ranks;
  ranks.start_all(4, [](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 4, "exchange"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    Job& job = **joined;
    int wrong = 0;
    for (std::uint64_t round = 0; round < 20; ++round) {
      auto parcels = job.exchange(first(4), {0, round}, {fmt::format("{}/{}", rank, round), -1});
      if (!parcels.ok()) return check(false, "parcels", rank, parcels.error().message);
      for (std::int32_t from = 0; from < 4; ++from) {
        const std::string& bytes = (*parcels)[static_cast<std::size_t>(from)].bytes;
        wrong += check(bytes == fmt::format("{}/{}", from, round), "a parcel of each", rank, bytes);
      }
    }
    // Two groups at once, one of which this rank is not in, and a file that all write to.
    const std::vector<std::int32_t> pair = rank % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3};
    auto small = job.exchange(pair, {5, 1}, {std::to_string(rank), -1});
    wrong += check(small.ok() && (*small)[1].bytes == std::to_string(pair[1]), "parcels of a pair", rank);
    const int memory = rank == 1 ? ::memfd_create("shared", MFD_CLOEXEC) : -1;
    if (rank == 1) wrong += check(::ftruncate(memory, 64) == 0, "memory", rank);
    auto files = job.exchange(first(4), {0, 100}, {"", memory});
    if (!files.ok()) return check(false, "files", rank, files.error().message);
    const int mine = rank == 1 ? memory : (*files)[1].descriptor;
    const char letter = static_cast<char>('a' + rank);
    wrong += check(::pwrite(mine, &letter, 1, rank) == 1, "to write", rank, std::to_string(mine));
    wrong += check((*files)[0].descriptor == -1, "no file of rank 0", rank);
    wrong += check(job.exchange(first(4), {0, 101}, {}).ok(), "a barrier", rank);
    char text[5] = {};
    wrong += check(::pread(mine, text, 4, 0) == 4 && std::string(text) == "abcd", "all letters", rank, text);
    wrong += check(job.member(rank).process == ::getpid() && job.member(0).host == job.member(3).host,
                   "members", rank);
    wrong += check(job.key("a") != job.key("b") && job.key("a").size() == 64, "keys", rank);
    auto keys = job.exchange(first(4), {0, 102}, {job.key("wires"), -1});
    wrong += check(keys.ok() && (*keys)[0].bytes == (*keys)[3].bytes, "one key", rank);
    return wrong;
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(4, 0));
}

TEST(ProcessJob, RejectsInvalidExchanges) {
  auto job = join(local_meeting(0, 1, "alone"));
  ASSERT_TRUE(job.ok());
  const std::int32_t twice[] = {0, 0}, other[] = {1}, self[] = {0};
  EXPECT_FALSE((*job)->exchange(twice, {}, {}).ok());
  EXPECT_FALSE((*job)->exchange(other, {}, {}).ok());
  EXPECT_FALSE((*job)->exchange({}, {}, {}).ok());
  EXPECT_FALSE((*job)->exchange(self, {}, {std::string(Job::kMostBytes + 1, 'x'), -1}).ok());
  EXPECT_EQ((*job)->exchange(self, {}, {"alone", -1})->front().bytes, "alone");
  EXPECT_EQ(*(*job)->agree_on_survivors(self, {}), std::vector<std::int32_t>{0});
}

TEST(ProcessJob, DeliversMessagesInOrderOnceThereIsAHandler) {
  RankProcesses ranks;
  ranks.start_all(3, [](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 3, "messages"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    Job& job = **joined;
    constexpr std::uint64_t kMessages = 300;
    const std::string padding(3'000, 'p');
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      for (std::int32_t to = 0; to < 3; ++to) job.send(to, {7, i}, fmt::format("{} {} {}", rank, i, padding));
    }
    std::mutex mutex;
    std::map<std::int32_t, std::uint64_t> heard;
    int wrong = 0;
    job.handle(7, [&](std::int32_t from, std::uint64_t number, std::string_view bytes) {
      const std::lock_guard lock(mutex);
      if (number != heard[from]++ || !bytes.starts_with(fmt::format("{} {} p", from, number))) ++wrong;
    });
    const bool all = eventually([&] {
      const std::lock_guard lock(mutex);
      return heard[0] == kMessages && heard[1] == kMessages && heard[2] == kMessages;
    });
    job.handle(7, nullptr);
    wrong += check(all, "all messages", rank);
    wrong += check(job.exchange(first(3), {0, 1}, {}).ok(), "a barrier", rank);
    return wrong;
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(3, 0));
}

TEST(ProcessJob, AGoodbyeIsNotAFault) {
  RankProcesses ranks;
  ranks.start_all(3, [](std::int32_t rank) {
    std::atomic<int> reported = 0;  // outlives the job, which may report a failure until the end
    auto joined = join(local_meeting(rank, 3, "goodbye"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    Job& job = **joined;
    if (rank == 2) {
      job.send(0, {1, 0}, "last words");
      job.leave();
      job.leave();
      return check(!job.exchange(first(3), {0, 1}, {}).ok(), "no exchange after leaving", rank);
    }
    job.on_death([&](const Death& death) { reported += death.rank == 2 && death.left ? 1 : 100; });
    int wrong = check(eventually([&] { return !job.deaths().empty(); }), "to hear of it", rank);
    wrong +=
        check(job.deaths()[0].rank == 2 && job.deaths()[0].left, "that it left", rank, job.deaths()[0].how);
    wrong += check(reported % 100 <= 1, "to be reported once, or not at all if it left before", rank);
    const auto failed = job.exchange(first(3), {0, 1}, {});
    wrong += check(!failed.ok() && failed.error().message == "rank 2 has left the job", "an error", rank);
    const std::int32_t rest[] = {0, 1};
    wrong += check(job.exchange(rest, {0, 2}, {}).ok(), "the others to go on", rank);
    if (rank == 0) {
      std::atomic<bool> heard = false;
      job.handle(1,
                 [&](std::int32_t, std::uint64_t, std::string_view bytes) { heard = bytes == "last words"; });
      wrong += check(eventually([&] { return heard.load(); }), "its last words", rank);
      job.handle(1, nullptr);
    }
    return wrong;
  });
  EXPECT_EQ(ranks.wait_all(), std::vector<int>(3, 0));
}

// Times are of the machine's steady clock, which all its processes share.
struct Scene {
  std::atomic<int> ready;
  std::atomic<std::int64_t> killed_at;
  std::atomic<std::int64_t> noticed_at[16];
};

Scene* shared_scene() {
  void* memory = ::mmap(nullptr, sizeof(Scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Scene();
}

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

TEST(ProcessJob, AllRanksAreNotifiedOfAKilledRankAtOnce) {
  Scene* scene = shared_scene();
  RankProcesses ranks;
  ranks.start_all(4, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 4, "killed"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    Job& job = **joined;
    job.on_death([&](const Death& death) {
      if (death.rank == 1) scene->noticed_at[rank] = now();
    });
    ++scene->ready;
    if (rank == 1) ::pause();
    // During an exchange that rank 1 never joins.
    const auto failed = job.exchange(first(4), {0, 1}, {});
    int wrong = check(!failed.ok() && failed.error().message == "rank 1 is lost: its process ended",
                      "its name", rank, failed.ok() ? "success" : failed.error().message);
    wrong += check(eventually([&] { return scene->noticed_at[rank] != 0; }), "a call", rank);
    const std::int32_t rest[] = {0, 2, 3};
    wrong += check(job.exchange(rest, {0, 2}, {}).ok(), "the others to go on", rank);
    return wrong;
  });
  ASSERT_TRUE(eventually([&] { return scene->ready == 4; }));
  scene->killed_at = now();
  ::kill(ranks.process(1), SIGKILL);
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 128 + SIGKILL, 0, 0}));
  for (const int rank : {0, 2, 3}) {
    const double ms = static_cast<double>(scene->noticed_at[rank] - scene->killed_at) / 1e6;
    RecordProperty(fmt::format("rank_{}_noticed_after_ms", rank), fmt::format("{:.3f}", ms));
    fmt::print("rank {} noticed after {:.3f} ms\n", rank, ms);
    EXPECT_LT(ms, 2000);
  }
  ::munmap(scene, sizeof *scene);
}

// Rank 1 sent its parcel before it was killed; rank 2 was notified of that first and does not join.
TEST(ProcessJob, NoRankWaitsForOneThatGaveUpAfterAFailure) {
  Scene* scene = shared_scene();
  RankProcesses ranks;
  ranks.start_all(3, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 3, "gave-up", 20s));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    ++scene->ready;
    if (rank == 2)
      return check(eventually([&] { return scene->noticed_at[0] != 0; }), "rank 0 to give up too", rank);
    const auto failed = (*joined)->exchange(first(3), {0, 1}, {});
    if (rank == 0) scene->noticed_at[0] = now();
    return check(!failed.ok() && failed.error().message == "rank 1 is lost: its process ended", "its name",
                 rank, failed.ok() ? "success" : failed.error().message);
  });
  ASSERT_TRUE(eventually([&] { return scene->ready == 3; }));
  std::this_thread::sleep_for(50ms);
  ::kill(ranks.process(1), SIGKILL);
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 128 + SIGKILL, 0}));
  ::munmap(scene, sizeof *scene);
}

TEST(ProcessJob, AStoppedRankIsNotAFailedRank) {
  Scene* scene = shared_scene();
  RankProcesses ranks;
  ranks.start_all(2, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 2, "stopped", 4s));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    ++scene->ready;
    if (rank == 1 && !eventually([&] { return scene->killed_at != 0; })) return 1;
    const auto parcels = (*joined)->exchange(first(2), {0, 1}, {});
    int wrong = check(parcels.ok(), "an exchange", rank, parcels.ok() ? "" : parcels.error().message);
    wrong += check((*joined)->deaths().empty(), "no death", rank);
    return wrong + check((*joined)->exchange(first(2), {0, 2}, {}).ok(), "a barrier", rank);
  });
  ASSERT_TRUE(eventually([&] { return scene->ready == 2; }));
  ::kill(ranks.process(1), SIGSTOP);
  scene->killed_at = now();
  std::this_thread::sleep_for(500ms);
  ::kill(ranks.process(1), SIGCONT);
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 0}));
  ::munmap(scene, sizeof *scene);
}

TEST(ProcessJob, ARankEndsWithItsLauncherThroughAShell) {
  int life[2] = {};
  ASSERT_EQ(::pipe(life), 0);
  RankProcesses ranks;
  ranks.start_all(1, [&](std::int32_t rank) {
    ::close(life[1]);
    ::setenv("WEFT_LAUNCHER_FD", std::to_string(life[0]).c_str(), 1);
    auto joined = join(local_meeting(rank, 1, "launcher"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    std::this_thread::sleep_for(kHung);
    return check(false, "an end before", rank);
  });
  ::close(life[1]);  // as the kernel does for a killed launcher
  EXPECT_EQ(ranks.wait(0), 128 + SIGKILL);
  ::close(life[0]);
}

TEST(ProcessJob, NamesRanksMissingFromAnExchange) {
  RankProcesses ranks;
  ranks.start_all(2, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 2, "silent", 300ms));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    if (rank == 1) return eventually([&] { return !(*joined)->deaths().empty(); }) ? 0 : 1;
    const auto failed = (*joined)->exchange(first(2), {0, 1}, {});
    return check(!failed.ok() && failed.error().message == "rank 1 did not join an exchange within 300 ms",
                 "its name", rank, failed.ok() ? "success" : failed.error().message);
  });
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 0}));
}

TEST(ProcessJob, SurvivorsAgreeWhenTheirLeaderIsKilled) {
  Scene* scene = shared_scene();
  RankProcesses ranks;
  ranks.start_all(5, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 5, "survivors"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    Job& job = **joined;
    ++scene->ready;
    if (rank == 3) ::pause();  // killed before any rank asks
    eventually([&] { return job.deaths().size() == 1; });
    if (rank == 0) ::pause();  // the leader, which never gets to lead
    if (rank == 1) scene->killed_at = now();
    const auto agreed = job.agree_on_survivors(first(5), {9, 1});
    if (!agreed.ok()) return check(false, "to agree", rank, agreed.error().message);
    int wrong =
        check(*agreed == std::vector<std::int32_t>{1, 2, 4}, "1 2 4", rank, std::to_string(agreed->size()));
    const auto again = job.agree_on_survivors(first(5), {9, 1});
    wrong += check(again.ok() && *again == *agreed, "the same again", rank);
    wrong += check(job.exchange(*agreed, {10, 0}, {}).ok(), "to go on", rank);
    return wrong;
  });
  ASSERT_TRUE(eventually([&] { return scene->ready == 5; }));
  ::kill(ranks.process(3), SIGKILL);
  ASSERT_TRUE(eventually([&] { return scene->killed_at != 0; }));
  std::this_thread::sleep_for(20ms);
  ::kill(ranks.process(0), SIGKILL);
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{128 + SIGKILL, 0, 0, 128 + SIGKILL, 0}));
  ::munmap(scene, sizeof *scene);
}

TEST(ProcessJob, AnswersTheDoctor) {
  Scene* scene = shared_scene();
  RankProcesses ranks;
  ranks.start_all(2, [&](std::int32_t rank) {
    auto joined = join(local_meeting(rank, 2, "doctor"));
    if (!joined.ok()) return check(false, "to join", rank, joined.error().message);
    (*joined)->on_doctor_query([rank] { return fmt::format("  my number is {}\n", rank); });
    ++scene->ready;
    if (rank == 1 && !eventually([&] { return scene->killed_at != 0; })) return 1;
    return (*joined)->exchange(first(2), {0, 7}, {}).ok() ? 0 : 1;
  });
  ASSERT_TRUE(eventually([&] { return scene->ready == 2; }));
  std::this_thread::sleep_for(20ms);
  const auto one = query_ranks(ranks.process(0), 1s);
  ASSERT_TRUE(one.ok() && one->size() == 1);
  EXPECT_EQ(one->front().rank, 0);
  EXPECT_EQ(one->front().ranks, 2);
  EXPECT_NE(one->front().answer.find("waits for rank 1 in an exchange"), std::string::npos)
      << one->front().answer;
  EXPECT_NE(one->front().answer.find("my number is 0"), std::string::npos);

  ::kill(ranks.process(1), SIGSTOP);
  eventually([&] { return query_ranks(ranks.process(1), 50ms)->front().state == "stopped (T)"; });
  const auto two = query_ranks(ranks.process(1), 100ms);
  ASSERT_TRUE(two.ok() && two->size() == 1);
  EXPECT_EQ(two->front().answer, "");
  EXPECT_EQ(two->front().state, "stopped (T)");
  ::kill(ranks.process(1), SIGCONT);
  scene->killed_at = now();
  EXPECT_EQ(ranks.wait_all(), (std::vector<int>{0, 0}));
  EXPECT_TRUE(query_ranks(::getpid(), 100ms)->empty());
  ::munmap(scene, sizeof *scene);
}

// TCP links, as between hosts: rank r's link to rank s is lines[r][s].
std::vector<std::vector<tcp::Socket>> tcp_lines(std::size_t ranks) {
  std::vector<std::vector<tcp::Socket>> lines(ranks);
  for (auto& each : lines) each.resize(ranks);
  const auto listener = tcp::listen("127.0.0.1", 0);
  const std::uint16_t port = tcp::local_address(*listener)->port();
  for (std::size_t low = 0; low < ranks; ++low) {
    for (std::size_t high = low + 1; high < ranks; ++high) {
      lines[low][high] = tcp::connect("127.0.0.1", port, Clock::now() + 5s).value();
      EXPECT_TRUE(tcp::wait_for(*listener, POLLIN, Clock::now() + 5s));
      lines[high][low] = tcp::accept(*listener).value();
    }
  }
  return lines;
}

std::unique_ptr<Job> job_of(std::size_t rank, std::vector<tcp::Socket> sockets,
                            std::chrono::milliseconds timeout) {
  Circle circle{static_cast<std::int32_t>(rank), {}, {}, "secret", timeout};
  circle.members.resize(sockets.size());
  for (tcp::Socket& socket : sockets)
    circle.lines.push_back(socket ? ControlLink(std::move(socket), false) : ControlLink());
  return make_process_job(std::move(circle)).value();
}

TEST(ProcessJob, StaysConnectedOverTcpAndSaysGoodbye) {
  auto lines = tcp_lines(3);
  std::vector<std::unique_ptr<Job>> jobs;
  for (std::size_t rank = 0; rank < 3; ++rank) jobs.push_back(job_of(rank, std::move(lines[rank]), 300ms));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Job& job = *jobs[rank];
      for (std::uint64_t round = 0; round < 50; ++round) {
        const auto parcels = job.exchange(first(3), {0, round % 3}, {fmt::format("{} {}", rank, round), -1});
        if (!parcels.ok() || (*parcels)[(rank + 1) % 3].bytes != fmt::format("{} {}", (rank + 1) % 3, round))
          ++wrong;
      }
      // Longer than the timeout, with nothing but heartbeats.
      std::this_thread::sleep_for(400ms);
      if (!job.deaths().empty()) ++wrong;
      if (!job.exchange(first(3), {1, 0}, {}).ok()) ++wrong;
      job.leave();
      for (const Death& death : job.deaths()) wrong += death.left ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A rank whose other end is this test, which may send anything.
struct Puppet {
  std::unique_ptr<Job> job;
  tcp::Socket strings;

  explicit Puppet(std::size_t ranks = 2) {
    auto lines = tcp_lines(ranks);
    strings = std::move(lines[1][0]);
    job = job_of(0, std::move(lines[0]), 30s);
  }
  void say(std::string_view bytes) const {
    ::send(strings.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string fate() const {
    eventually([&] { return !job->deaths().empty(); });
    const auto deaths = job->deaths();
    return deaths.empty() ? "alive" : deaths.front().how;
  }
};

TEST(ProcessJob, DetectsInvalidFrames) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    std::string garbage;
    for (int i = 0; i < 200; ++i) garbage += static_cast<char>(random.next());
    const Puppet puppet;
    puppet.say(garbage);
    puppet.say(std::string(2 << 20, '\xff'));
    EXPECT_EQ(puppet.fate(), "its messages are corrupted") << seed;
  }
}

TEST(ProcessJob, DetectsAFlippedBitAndATruncatedStream) {
  std::string frame;
  {
    std::array<int, 2> ends = {};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ControlLink line(tcp::Socket{ends[0]}, false);
    const tcp::Socket other(ends[1]);
    line.send(FrameKind::parcel, 0, 1, "four score and seven");
    frame.resize(1000);
    frame.resize(static_cast<std::size_t>(::recv(other.descriptor(), frame.data(), frame.size(), 0)));
  }
  const std::int32_t both[] = {0, 1};
  {
    const Puppet puppet;
    puppet.say(frame);
    EXPECT_EQ((*puppet.job->exchange(both, {0, 1}, {}))[1].bytes, "four score and seven");
  }
  for (std::size_t bit = 0; bit < 8 * frame.size(); bit += 13) {
    std::string flipped = frame;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    Puppet puppet;
    puppet.say(flipped);
    puppet.strings.close();  // a longer length waits for more bytes, which never arrive
    const std::string fate = puppet.fate();
    EXPECT_TRUE(fate == "its messages are corrupted" || (bit < 32 && fate == "its process ended"))
        << bit << ": " << fate;
    EXPECT_FALSE(puppet.job->exchange(both, {0, 1}, {}).ok());
  }
  Puppet cut;
  cut.say(std::string_view(frame).substr(0, frame.size() - 1));
  cut.strings.close();
  EXPECT_EQ(cut.fate(), "its process ended");
}

TEST(ProcessJob, LearnsThatItWasDropped) {
  Puppet puppet;
  ControlLink line(std::move(puppet.strings), false);
  line.send(FrameKind::death, 0, 0, "no heartbeat for 2 s");
  EXPECT_EQ(puppet.fate(), "it dropped this rank: no heartbeat for 2 s");
  const auto failed = puppet.job->exchange(first(2), {0, 1}, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "the other ranks dropped this rank: no heartbeat for 2 s");
  EXPECT_FALSE(puppet.job->agree_on_survivors(first(2), {0, 2}).ok());
}

TEST(ProcessJob, NeverWaitsForARankThatDoesNotRead) {
  Puppet puppet;
  const std::string megabyte(Job::kMostBytes, 'm');
  const auto begun = Clock::now();
  for (int i = 0; i < 70; ++i) puppet.job->send(1, {3, 0}, megabyte);
  EXPECT_LT(Clock::now() - begun, kHung) << "hung";
  EXPECT_EQ(puppet.fate(), "it does not read its messages");
}

}  // namespace
}  // namespace weft::transport
