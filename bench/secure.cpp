// Cost of encryption: all-reduce over TCP among processes of this machine, in turns with and
// without WEFT_SECURE=1; and the number of file descriptors per rank after calls of all kinds.
//
//   bench_secure [ranks]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/units.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/rendezvous.h"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 31;  // the fastest counts, since other programs may use the machine
struct Size {
  std::int64_t bytes;
  int calls;  // per turn
};
constexpr std::array<Size, 5> kSizes = {
    {{256, 400}, {4 << 10, 300}, {64 << 10, 100}, {1 << 20, 20}, {16 << 20, 2}}};

std::unique_ptr<comm::Communicator> open_group(std::int32_t rank, std::int32_t ranks,
                                               const std::string& secret, bool secure) {
  transport::Rendezvous meeting;
  meeting.rank = rank;
  meeting.ranks = ranks;
  meeting.name = secure ? "secure" : "plain";
  meeting.secret = secret;
  meeting.secure = secure;
  auto job = transport::join(meeting);
  if (!job.ok()) throw std::runtime_error(job.error().message);
  comm::Options options;
  options.transport = comm::TransportKind::tcp;
  options.statistics = "none";
  auto group = comm::Communicator::create(std::move(*job), options);
  if (!group.ok()) throw std::runtime_error(group.error().message);
  return std::move(*group);
}

void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

double turn(comm::Communicator& group, const Size& size, std::vector<float>& values) {
  must(group.barrier());
  const auto begin = Clock::now();
  for (int call = 0; call < size.calls; ++call)
    must(group.all_reduce(values.data(), values.data(), size.bytes / 4, comm::ElementType::f32));
  return std::chrono::duration<double>(Clock::now() - begin).count() / size.calls;
}

void call_every_kind(comm::Communicator& group) {
  using comm::ElementType;
  for (const std::int64_t count : {std::int64_t{64}, std::int64_t{1} << 18}) {
    std::vector<float> in(static_cast<std::size_t>(count * group.size()), 1.0F), out(in.size());
    must(group.all_reduce(in.data(), out.data(), count, ElementType::f32));
    must(group.all_gather(in.data(), out.data(), count, ElementType::f32));
    must(group.reduce_scatter(in.data(), out.data(), count, ElementType::f32));
    must(group.all_to_all(in.data(), out.data(), count, ElementType::f32));
    for (std::int32_t root = 0; root < group.size(); ++root) {
      must(group.broadcast(in.data(), out.data(), count, ElementType::f32, root));
      must(group.reduce(in.data(), out.data(), count, ElementType::f32, comm::ReduceOp::sum, root));
    }
  }
}

std::int64_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}) - 1;
}

void run_rank(std::int32_t rank, std::int32_t ranks, const std::string& secret) {
  auto plain = open_group(rank, ranks, secret, false);
  auto secure = open_group(rank, ranks, secret, true);
  if (rank == 0) fmt::print("all-reduce of {} ranks over TCP, processes of one machine\n\n", ranks);
  if (rank == 0) fmt::print("{:>10} {:>12} {:>12} {:>16}\n", "size", "plain us", "secure us", "secure is");
  for (const Size& size : kSizes) {
    std::vector<float> values(static_cast<std::size_t>(size.bytes / 4), 0.0F);
    std::vector<double> times[2];
    for (int i = -1; i < kTurns; ++i) {  // the first turn of each is a warm-up
      const double first = turn(*plain, size, values), second = turn(*secure, size, values);
      if (i < 0) continue;
      times[0].push_back(first);
      times[1].push_back(second);
    }
    const double open = std::ranges::min(times[0]), sealed = std::ranges::min(times[1]);
    if (rank == 0)
      fmt::print("{:>10} {:>12.1f} {:>12.1f} {:>9.2f} of plain\n",
                 print_bytes(static_cast<double>(size.bytes)), open * 1e6, sealed * 1e6, open / sealed);
  }
  secure.reset();
  const std::int64_t before = open_descriptors();
  call_every_kind(*plain);
  if (rank == 0)
    fmt::print("\ndescriptors of rank 0: {} after all-reduces, {} after calls of every kind and root\n",
               before, open_descriptors());
  must(plain->barrier());
}

}  // namespace

int main(int argc, char** argv) {
  const std::int32_t ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string secret = transport::new_secret();
  std::vector<pid_t> others;
  std::int32_t rank = 0;
  for (std::int32_t other = 1; other < ranks && rank == 0; ++other) {
    const pid_t process = fork();
    if (process == 0)
      rank = other;
    else
      others.push_back(process);
  }
  int code = 0;
  try {
    run_rank(rank, ranks, secret);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    code = 1;
  }
  if (rank != 0) _exit(code);
  for (const pid_t process : others) waitpid(process, nullptr, 0);
  return code;
}
