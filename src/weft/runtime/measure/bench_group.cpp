#include "weft/runtime/measure/bench_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "weft/runtime/measure/bench_rank.h"

extern char** environ;

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Milliseconds left until `deadline` for poll(), at most `most`.
int left(Clock::time_point deadline, std::int64_t most) {
  const auto now = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(now, 0, most));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// This process's environment, with the variables in `more` added or replaced.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const auto replaced = [&](const auto& pair) { return pair.first == name; };
    if (std::ranges::none_of(more, replaced)) all.emplace_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// Starts a child in its own process group, so that terminal signals reach only the benchmark.
Result<pid_t> spawn_one(std::vector<std::string> command, std::vector<std::string> environment, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Restores default signal handling, which the benchmark may have changed (a closed pipe).
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGALRM}) sigaddset(&defaults, number);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, command.front().c_str(), &actions, &attributes,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return environment_error(fmt::format("{} does not start: {}", command.front(), std::strerror(failed)));
  return process;
}

}  // namespace

Result<std::unique_ptr<BenchGroup>> BenchGroup::start(const BenchRecipe& recipe, std::int32_t ranks,
                                                      std::int64_t limit) {
  WEFT_TRY(listener, BenchListener::open());
  std::unique_ptr<BenchGroup> group(new BenchGroup(std::move(listener)));
  WEFT_TRY_STATUS(group->spawn(recipe, ranks));
  WEFT_TRY_STATUS(group->gather(ranks, limit));
  return group;
}

BenchGroup::~BenchGroup() {
  end(2000);
  if (words_ >= 0) close(words_);
}

Status BenchGroup::spawn(const BenchRecipe& recipe, std::int32_t ranks) {
  words_ = memfd_create("weft-bench-words", MFD_CLOEXEC);
  if (words_ < 0)
    return environment_error(
        fmt::format("cannot create a memory file for the output of ranks: {}", std::strerror(errno)));
  auto environment = recipe.environment;
  environment.emplace_back(kBenchSocket, listener_.name());
  for (std::int32_t rank = 0; rank < (recipe.each_rank ? ranks : 1); ++rank) {
    auto own = environment;
    if (recipe.each_rank) {
      own.emplace_back("RANK", std::to_string(rank));
      own.emplace_back("WORLD_SIZE", std::to_string(ranks));
    }
    WEFT_TRY(process, spawn_one(recipe.command, environment_with(own), words_));
    started_.push_back(process);
  }
  return {};
}

Status BenchGroup::gather(std::int32_t ranks, std::int64_t limit) {
  const auto deadline = Clock::now() + std::chrono::seconds(limit);
  std::vector<std::optional<Rank>> places(static_cast<std::size_t>(ranks));
  for (std::int32_t came = 0; came < ranks;) {
    pollfd wait{listener_.socket(), POLLIN, 0};
    poll(&wait, 1, left(deadline, 50));
    auto caller = listener_.accept();
    if (!caller) {
      if (!all_started_run()) return fail("a process ended before its rank connected");
      if (Clock::now() >= deadline)
        return fail(fmt::format("{} of {} ranks connected within {} s", came, ranks, limit));
      continue;
    }
    const auto said = caller->line.read();
    if (!said) return fail("a rank disconnected before its handshake");
    const Result<BenchHello> hello = parse_bench_hello(*said);
    if (!hello.ok()) return fail(hello.error().message);
    auto& place = places[static_cast<std::size_t>(std::min(hello->rank, ranks - 1))];
    if (hello->ranks != ranks || place)
      return fail(fmt::format("rank {} of {} connected to a group of {}", hello->rank, hello->ranks, ranks));
    version_ = hello->version;
    place.emplace(Rank{std::move(caller->line), caller->process});
    ++came;
  }
  for (auto& place : places) ranks_.push_back(std::move(*place));
  return {};
}

Result<std::vector<std::string>> BenchGroup::ask(std::string_view line, std::int64_t limit) {
  if (!alive()) return environment_error(failure_);
  for (Rank& rank : ranks_)
    if (!rank.line.write(line)) return fail("a rank failed");
  // Ranks exit at the limit; allow a little more before killing them.
  const auto deadline = Clock::now() + std::chrono::seconds(limit + 2);
  std::vector<std::string> answers(ranks_.size());
  std::vector<pollfd> waits;
  for (const Rank& rank : ranks_) waits.push_back({rank.line.socket(), POLLIN, 0});
  for (std::size_t missing = ranks_.size(); missing > 0;) {
    poll(waits.data(), waits.size(), left(deadline, 1000));
    if (Clock::now() >= deadline) return fail(fmt::format("no answer within {} s", limit));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      if (!ranks_[i].line.receive()) {
        const bool late = Clock::now() + std::chrono::seconds(3) >= deadline;
        return fail(late ? fmt::format("no answer within {} s", limit) : fmt::format("rank {} ended", i));
      }
      auto said = ranks_[i].line.next();
      if (!said) continue;
      answers[i] = std::move(*said);
      waits[i].fd = -1;
      --missing;
    }
  }
  return answers;
}

Result<std::vector<std::string>> BenchGroup::variants(collective::Kind kind) {
  WEFT_TRY(answers, ask(fmt::format("variants {}", collective::name(kind)), 10));
  std::vector<std::string> names;
  for (const std::string_view word : words_of(answers.front())) names.emplace_back(word);
  return names;
}

Result<BenchAnswer> BenchGroup::turn(const BenchTurn& turn) {
  WEFT_TRY(answers, ask(print(turn), turn.limit));
  BenchAnswer all;
  for (const std::string& line : answers) {
    const Result<BenchAnswer> one = parse_bench_answer(line);
    // An operation that a rank does not support is not a failure of the group.
    if (!one.ok() && one.error().fault == Fault::world) return one.error();
    if (!one.ok()) return fail(one.error().message);
    all.seconds = std::max(all.seconds, one->seconds);
    all.processor_seconds += one->processor_seconds;
    all.wrong += one->wrong;
  }
  return all;
}

bool BenchGroup::all_started_run() {
  for (const pid_t process : started_) {
    siginfo_t state{};
    if (waitid(P_PID, static_cast<id_t>(process), &state, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        state.si_pid != 0)
      return false;
  }
  return true;
}

// The first line of output with letters: launchers print the reason first, then advice.
std::string BenchGroup::first_output_line() const {
  std::string text(2048, '\0');
  const ssize_t count = pread(words_, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (std::ranges::count_if(line, is_letter) > 0) return line;
    at = end + 1;
  }
  return {};
}

Error BenchGroup::fail(std::string reason) {
  if (const std::string words = first_output_line(); !words.empty()) reason += fmt::format(": {}", words);
  failure_ = std::move(reason);
  for (const Rank& rank : ranks_) kill(rank.process, SIGKILL);
  end(2000);  // gives the launcher time to clean up after its ranks
  return environment_error(failure_);
}

// Closes the connections, waits for started processes to exit, then kills them.
void BenchGroup::end(std::int64_t patience_milliseconds) {
  ranks_.clear();
  const auto deadline = Clock::now() + milliseconds(patience_milliseconds);
  for (const pid_t process : started_) {
    while (waitpid(process, nullptr, WNOHANG) == 0) {
      if (Clock::now() >= deadline) {
        kill(-process, SIGKILL);
        waitpid(process, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  started_.clear();
}

}  // namespace weft::measure
