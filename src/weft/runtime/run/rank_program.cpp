#include "weft/runtime/run/rank_program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/runtime/run/serialized_training.h"

extern char** environ;

namespace weft::run {
namespace {

using nlohmann::json;

// "rank parent complaints orders": the rank, the parent's pid, and two file descriptors.
constexpr const char* kRankProcess = "WEFT_RANK_PROCESS";
constexpr const char* kRankProgram = "WEFT_RANK_PROGRAM";

bool has_rank_main = false;  // this program calls rank_main()

std::atomic<bool> listens_for_end = false, was_told_to_end = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

void on_rank_terminate(int) {
  was_told_to_end = true;
  if (listens_for_end) return;
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);  // delivered when this handler returns
}

// A file mapped to memory for the lifetime of this object.
class Mapped {
 public:
  explicit Mapped(int descriptor) {
    struct stat what = {};
    if (fstat(descriptor, &what) != 0) return;
    size_ = static_cast<std::size_t>(what.st_size);
    void* const found = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (found != MAP_FAILED) at_ = static_cast<const std::byte*>(found);
  }
  ~Mapped() {
    if (at_ != nullptr) munmap(const_cast<std::byte*>(at_), size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::span<const std::byte> bytes() const { return {at_, at_ == nullptr ? 0 : size_}; }

 private:
  const std::byte* at_ = nullptr;
  std::size_t size_ = 0;
};

Status write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return environment_error(
          fmt::format("cannot create shared memory for ranks: {}", std::strerror(errno)));
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

// The `weft` program installed beside the library, for other programs that load the library.
std::optional<std::string> installed_program() {
  Dl_info found{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&rank_main), &found) == 0) return std::nullopt;
  const auto own = std::filesystem::canonical(found.dli_fname, ignored).parent_path();
  const auto program = (own / ".." / "bin" / "weft").lexically_normal();
  if (access(program.c_str(), X_OK) != 0) return std::nullopt;
  return program.string();
}

// The program to start as a rank.
Result<std::string> find_rank_program() {
  if (const char* const named = std::getenv(kRankProgram); named != nullptr && *named != '\0')
    return std::string(named);
  // A program without rank_main() would repeat everything it does when started again.
  if (!has_rank_main) {
    if (auto installed = installed_program()) return std::move(*installed);
    return environment_error(
        "this program cannot be started again as a rank",
        "call weft::run::rank_main() at the start of main(), or set WEFT_RANK_PROGRAM to a "
        "program that does; SET transport = inproc runs ranks as threads");
  }
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure)
    return environment_error(
        fmt::format("cannot find this program by /proc/self/exe: {}", failure.message()),
        "mount /proc, or name the program in WEFT_RANK_PROGRAM; SET transport = inproc runs ranks as "
        "threads");
  return program.string();
}

Result<NamedRankFunction> find_part(const std::string& name, std::span<const NamedRankFunction> more) {
  const NamedRankFunction own[] = {{kTrainingPart, &run_training_rank}};
  for (const std::span<const NamedRankFunction> parts : {std::span<const NamedRankFunction>(own), more})
    for (const NamedRankFunction& each : parts)
      if (each.name == name) return each;
  return environment_error(fmt::format("this program has no rank function named {}", name));
}

transport::Rendezvous meeting_of(std::int32_t rank, const json& orders) {
  transport::Rendezvous meeting;
  meeting.rank = rank;
  meeting.ranks = orders.at("ranks");
  meeting.name = orders.at("name");
  meeting.secret = orders.at("secret");
  meeting.timeout = std::chrono::milliseconds(orders.at("timeout_ms").get<std::int64_t>());
  return meeting;
}

int run_rank(std::int32_t rank, int complaints_at, int orders_at, std::span<const NamedRankFunction> more) {
  constexpr int kFailed = 2;
  const Mapped given(orders_at);
  std::uint64_t header = 0;
  if (given.bytes().size() < sizeof header) return kFailed;
  std::memcpy(&header, given.bytes().data(), sizeof header);
  const auto text = given.bytes().subspan(sizeof header, header);
  const json orders = json::parse(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
  auto complaints = Complaints::open(complaints_at, orders.at("ranks"));
  if (!complaints.ok()) return kFailed;
  std::shared_ptr<transport::Job> job;
  const Status status = run_guarded([&]() -> Status {
    WEFT_TRY(joined, transport::join(meeting_of(rank, orders)));
    job = std::move(joined);  // join first, because the other ranks wait for it
    WEFT_TRY(found, find_part(orders.at("part"), more));
    return found.part(job, given.bytes().subspan(sizeof header + header));
  });
  // Before the rank leaves the job, because other ranks report errors when it does.
  if (!status.ok()) complaints->write(rank, status.error());
  return status.ok() ? 0 : kFailed;
}

}  // namespace

std::optional<int> rank_main(std::span<const NamedRankFunction> more) {
  has_rank_main = true;
  const char* const told = std::getenv(kRankProcess);
  if (told == nullptr) return std::nullopt;
  int rank = 0, parent = 0, complaints = -1, orders = -1;
  const int read = std::sscanf(told, "%d %d %d %d", &rank, &parent, &complaints, &orders);
  unsetenv(kRankProcess);  // processes started from here are not ranks
  if (read != 4) return 2;
  // Killed with its parent, also if that exited before this line. Terminal signals are for rank 0,
  // which informs the others.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 2;
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, on_rank_terminate);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int descriptor : {complaints, orders}) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  try {
    return run_rank(rank, complaints, orders, more);
  } catch (const std::exception&) {  // before errors could be reported
    return 2;
  }
}

bool received_sigterm() {
  listens_for_end = true;
  return was_told_to_end;
}

Result<RankInput> RankInput::make(const transport::Rendezvous& meeting, std::string_view part,
                                  std::span<const std::byte> work) {
  WEFT_TRY(program, find_rank_program());
  RankInput orders(std::move(program), memfd_create("weft orders", MFD_CLOEXEC));
  if (orders.descriptor_ < 0)
    return environment_error(fmt::format("cannot create shared memory for ranks: {}", std::strerror(errno)));
  const std::string header = json{
      {"part", part},
      {"ranks", meeting.ranks},
      {"name", meeting.name},
      {"secret", meeting.secret},
      {"timeout_ms",
       meeting.timeout.count()}}.dump();
  const std::uint64_t size = header.size();
  WEFT_TRY_STATUS(write_all(orders.descriptor_, std::as_bytes(std::span(&size, 1))));
  WEFT_TRY_STATUS(write_all(orders.descriptor_, std::as_bytes(std::span(header))));
  WEFT_TRY_STATUS(write_all(orders.descriptor_, work));
  return orders;
}

RankInput::RankInput(RankInput&& other) noexcept
    : program_(std::move(other.program_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RankInput::~RankInput() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<pid_t> RankInput::start(std::int32_t rank, const Complaints& complaints) const {
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  std::string told =
      fmt::format("{}={} {} {} {}", kRankProcess, rank, getpid(), complaints.descriptor(), descriptor_);
  environment.push_back(told.data());
  environment.push_back(nullptr);
  std::string program = program_, shown = fmt::format("--rank={}", rank);  // visible in ps
  char* const arguments[] = {program.data(), shown.data(), nullptr};

  // dup2 of a descriptor to itself keeps it open across exec. Signals stay blocked until the rank
  // has set its handlers.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {complaints.descriptor(), descriptor_})
    posix_spawn_file_actions_adddup2(&files, descriptor, descriptor);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t blocked, defaults;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGTERM);
  posix_spawnattr_setsigmask(&how, &blocked);
  posix_spawnattr_setsigdefault(&how, &defaults);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int failed = posix_spawn(&process, program.c_str(), &files, &how, arguments, environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failed != 0)
    return environment_error(
        fmt::format("cannot start rank {} as {}: {}", rank, program_, std::strerror(failed)),
        "use fewer ranks: LOCAL 2");
  return process;
}

}  // namespace weft::run
