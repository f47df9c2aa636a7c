// direct_probe -- latency of direct collectives among processes of this machine.
//
//   bench_direct_probe [--ranks 2,4,8] [--sizes 256,4096,...] [--kinds all_reduce,...] [--batches 9]
//                      [--way NAME] [--seconds 0.004] [--pin yes] [--set mailbox_bytes=4096,...]
//                      [--foreign-load 1]
//
// Ranks are forked and share one memfd; there is no job and no launcher. A batch is a loop of calls
// between two barriers that lasts a few milliseconds. Its time is that of the slowest rank. Batches
// with private and allocated buffers alternate. Prints the lowest and median time in microseconds
// per call, the lowest total processor time of all ranks, and voluntary and involuntary context
// switches per call, averaged over ranks and batches.
//
// --foreign-load starts this many busy processes.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "weft/base/machine.h"
#include "weft/communication/comm/direct/direct.h"

namespace {

using namespace weft;
using namespace weft::comm;
using Clock = std::chrono::steady_clock;

struct Plan {
  std::vector<std::int64_t> ranks = {2, 4, 8};
  std::vector<std::int64_t> sizes = {256, 4 << 10, 64 << 10, 1 << 20, 64 << 20};
  std::vector<Kind> kinds = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                             Kind::broadcast};
  int batches = 9;
  int foreign_loads = 0;
  double batch_seconds = 0.004;
  bool pin = false;  // pins rank r to core r % cores: for a machine with other load
  std::optional<DirectAlgorithm> way;
  DirectTuning tuning;
};

// Results for the parent process, and the calls per batch that rank 0 determined.
struct Board {
  double seconds[64];
  double processor_seconds[64];
  double given[64], lost[64];  // context switches per batch
  long calls;
};

Status run(DirectGroup& group, const Call& call, std::uint64_t number, std::optional<DirectAlgorithm> way) {
  Operation* const operation = group.start(call, number, way);
  Progress progress;
  while ((progress = operation->step()) != Progress::done) {
    if (progress == Progress::failed) return operation->error();
    if (progress == Progress::blocked) group.wait(group.signal(), std::chrono::milliseconds(100));
  }
  group.finish(operation);
  return {};
}

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Voluntary and involuntary context switches of this process.
struct Switches {
  double given = 0, lost = 0;
};
Switches switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {static_cast<double>(usage.ru_nvcsw), static_cast<double>(usage.ru_nivcsw)};
}

Call make_call(Kind kind, std::int64_t size, std::int32_t ranks, const void* input, void* output) {
  if (kind == Kind::broadcast) output = const_cast<void*>(input);  // as in MPI: one buffer
  const bool whole = kind == Kind::all_reduce || kind == Kind::broadcast || kind == Kind::reduce;
  return Call{.kind = kind, .input = input, .output = output, .count = size / 4 / (whole ? 1 : ranks)};
}

struct Rank {
  const Plan& plan;
  std::int32_t rank, ranks;
  DirectGroup& group;
  Board& board;
  float* heap;
  float* memory;  // private
  std::int64_t most;
  std::uint64_t number = 0;

  void must(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "rank %d: %s\n", rank, status.error().message.c_str());
    _exit(1);
  }
  void barrier() { must(run(group, Call{.kind = Kind::barrier}, number++, {})); }

  double batch(const Call& call, long calls) {
    barrier();
    const double processor_before = processor_time();
    const Switches before = switches();
    const auto begin = Clock::now();
    for (long i = 0; i < calls; ++i) must(run(group, call, number++, plan.way));
    board.seconds[rank] = std::chrono::duration<double>(Clock::now() - begin).count();
    board.processor_seconds[rank] = processor_time() - processor_before;
    const Switches after = switches();
    board.given[rank] = after.given - before.given;
    board.lost[rank] = after.lost - before.lost;
    barrier();
    return *std::max_element(board.seconds, board.seconds + ranks);
  }

  void measure(Kind kind, std::int64_t size) {
    struct Side {
      const char* name;
      Call call;
      std::vector<double> times = {};
      double processor = 0;
      double given = 0, lost = 0;  // over all batches and ranks
    };
    Side sides[2] = {{"private", make_call(kind, size, ranks, memory, memory + most / 4)},
                     {"allocated", make_call(kind, size, ranks, heap, heap + most / 4)}};
    long calls = 1;
    for (;;) {  // all ranks read the same time, so all continue alike
      const double seconds = batch(sides[0].call, calls);
      barrier();
      if (seconds > plan.batch_seconds / 3 || calls >= 100000) {
        calls = std::clamp(static_cast<long>(static_cast<double>(calls) * plan.batch_seconds / seconds), 2L,
                           100000L);
        break;
      }
      calls *= 3;
    }
    if (rank == 0) board.calls = calls;
    barrier();
    calls = board.calls;
    for (int i = 0; i < plan.batches; ++i) {
      for (Side& side : sides) {
        side.times.push_back(batch(side.call, calls) / static_cast<double>(calls) * 1e6);
        double processor = 0;
        for (int r = 0; r < ranks; ++r)
          processor += board.processor_seconds[r] / static_cast<double>(calls) * 1e6;
        for (int r = 0; r < ranks; ++r) {
          side.given += board.given[r];
          side.lost += board.lost[r];
        }
        side.processor = i == 0 ? processor : std::min(side.processor, processor);
        barrier();
      }
    }
    if (rank != 0) return;
    std::printf("%-14s %2d %9lld", std::string(collective::name(kind)).c_str(), ranks,
                static_cast<long long>(size));
    for (Side& side : sides) {
      std::sort(side.times.begin(), side.times.end());
      const double all_calls = static_cast<double>(calls) * plan.batches * ranks;
      std::printf("  %s %10.2f %10.2f cpu %10.2f given %.3f lost %.3f", side.name, side.times[0],
                  side.times[side.times.size() / 2], side.processor, side.given / all_calls,
                  side.lost / all_calls);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
};

int run_rank(const Plan& plan, std::int32_t rank, std::int32_t ranks, const transport::Segment& segment,
             const std::vector<transport::Segment>& heaps, Board& board, std::int64_t most) {
  auto mapped = transport::Segment::map(dup(segment.descriptor()), segment.size());
  const int cores = available_processors();
  auto group = DirectGroup::attach(std::move(mapped).value(), rank, ranks, plan.tuning, false);
  if (plan.pin) {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<std::size_t>(rank % cores), &core);
    sched_setaffinity(0, sizeof core, &core);
  }
  for (std::int32_t other = 0; other < ranks; ++other) {
    const auto& heap = heaps[static_cast<std::size_t>(other)];
    group->add_heap(other, 0, transport::Segment::map(dup(heap.descriptor()), heap.size()).value());
  }
  float* const heap = reinterpret_cast<float*>(heaps[static_cast<std::size_t>(rank)].data());
  std::vector<float> memory(static_cast<std::size_t>(most) / 2, 1.0f);
  std::fill_n(heap, most / 2, 1.0f);
  Rank self{plan, rank, ranks, *group, board, heap, memory.data(), most};
  for (const Kind kind : plan.kinds)
    for (const std::int64_t size : plan.sizes) self.measure(kind, size);
  return 0;
}

pid_t start_foreign_load() {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (volatile long turns = 0;;) turns = turns + 1;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

void set(DirectTuning& tuning, const std::string& assignment) {
  const auto equal = assignment.find('=');
  const std::string key = assignment.substr(0, equal);
  const long long value = std::stoll(assignment.substr(equal + 1));
  if (key == "mailbox_bytes") tuning.mailbox_bytes = value;
  if (key == "piece_bytes") tuning.fragment_bytes = value;
  if (key == "least_piece_bytes") tuning.least_fragment_bytes = value;
  if (key == "one_shot_bytes") tuning.one_shot_bytes = value;
  if (key == "pieces_ahead") tuning.fragments_ahead = static_cast<std::int32_t>(value);
  if (key == "in_place_bytes") tuning.in_place_bytes = value;
  if (key == "single_copy_bytes") tuning.single_copy_bytes = value;
  if (key == "non_temporal_bytes") tuning.non_temporal_bytes = value;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--foreign-load") plan.foreign_loads = std::stoi(value);
    if (key == "--batches") plan.batches = std::stoi(value);
    if (key == "--pin") plan.pin = value == "yes";
    if (key == "--seconds") plan.batch_seconds = std::stod(value);
    if (key == "--set")
      for (const auto& part : split(value)) set(plan.tuning, part);
    if (key == "--ranks") {
      plan.ranks.clear();
      for (const auto& part : split(value)) plan.ranks.push_back(std::stoll(part));
    }
    if (key == "--sizes") {
      plan.sizes.clear();
      for (const auto& part : split(value)) plan.sizes.push_back(std::stoll(part));
    }
    if (key == "--kinds") {
      plan.kinds.clear();
      for (const auto& part : split(value)) plan.kinds.push_back(*collective::find_kind(part));
    }
    if (key == "--way")
      for (std::size_t way = 0; way < kDirectAlgorithms; ++way)
        if (name(static_cast<DirectAlgorithm>(way)) == "direct " + value)
          plan.way = static_cast<DirectAlgorithm>(way);
  }
  const std::int64_t most = *std::max_element(plan.sizes.begin(), plan.sizes.end());
  std::vector<pid_t> foreign_loads;
  for (int i = 0; i < plan.foreign_loads; ++i) foreign_loads.push_back(start_foreign_load());
  int failed = 0;
  for (const std::int64_t ranks : plan.ranks) {
    const auto n = static_cast<std::int32_t>(ranks);
    auto segment =
        transport::Segment::create(DirectGroup::segment_bytes(n, plan.tuning), transport::Backing::full);
    auto board = transport::Segment::create(sizeof(Board), transport::Backing::full);
    if (!segment.ok() || !board.ok()) return 1;
    std::vector<transport::Segment> heaps;
    for (std::int32_t rank = 0; rank < n; ++rank)
      heaps.push_back(
          transport::Segment::create(static_cast<std::size_t>(2 * most), transport::Backing::full).value());
    std::vector<pid_t> children;
    for (std::int32_t rank = 0; rank < n; ++rank) {
      const pid_t child = fork();
      if (child == 0)
        _exit(run_rank(plan, rank, n, *segment, heaps, *reinterpret_cast<Board*>(board->data()), most));
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      failed |= status;
    }
    if (failed != 0) break;
  }
  for (const pid_t foreign_load : foreign_loads) {
    kill(foreign_load, SIGKILL);
    waitpid(foreign_load, nullptr, 0);
  }
  return failed != 0;
}
