#include "weft/runtime/measure/bench_rank.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>

#include <fmt/format.h>

#include "weft/runtime/measure/bench_line.h"
#include "weft/runtime/measure/bench_pattern.h"

namespace weft::measure {
namespace {

constexpr std::size_t kPage = 4096;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The two buffers of a turn, private or from the library. Reused by the next turn if the sizes
// match.
class Memory {
 public:
  Memory(BenchLibrary& library, bool allocated) : library_(library), allocated_(allocated) {}
  ~Memory() { drop(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<BenchLibrary::Buffers> provide(const BenchTurn& turn, const BenchPattern& pattern) {
    const std::int64_t in = pattern.input_bytes(), out = pattern.output_bytes();
    const bool one = turn.in_place || turn.kind == collective::Kind::broadcast;
    const std::size_t first = static_cast<std::size_t>(one ? std::max(in, out) : in);
    const std::size_t second = static_cast<std::size_t>(one ? 0 : out);
    if (first != sizes_[0] || second != sizes_[1]) {
      drop();
      WEFT_TRY_STATUS(take(0, first));
      WEFT_TRY_STATUS(take(1, second));
    }
    BenchLibrary::Buffers buffers{memory_[0], one ? memory_[0] : memory_[1],
                                  block_elements(turn, library_.ranks())};
    // In place, the smaller buffer is this rank's block of the larger one.
    const std::int64_t mine = library_.rank() * std::min(in, out);
    if (one && in < out) buffers.input += mine;
    if (one && out < in) buffers.output += mine;
    return buffers;
  }

  void drop() {
    for (std::size_t i = 0; i < 2; ++i) {
      if (memory_[i] != nullptr) give_back(memory_[i]);
      memory_[i] = nullptr;
      sizes_[i] = 0;
    }
  }

 private:
  Status take(std::size_t which, std::size_t bytes) {
    if (bytes == 0) return {};
    std::byte* memory = nullptr;
    if (allocated_) {
      WEFT_TRY(given, library_.allocate(bytes));
      memory = given;
    } else {
      memory = static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
    }
    if (memory == nullptr) return environment_error(fmt::format("no memory for a buffer of {} bytes", bytes));
    memory_[which] = memory;
    sizes_[which] = bytes;
    return {};
  }

  void give_back(std::byte* memory) {
    if (allocated_)
      library_.release(memory);
    else
      std::free(memory);
  }

  BenchLibrary& library_;
  std::byte* memory_[2] = {nullptr, nullptr};
  std::size_t sizes_[2] = {0, 0};
  bool allocated_;
};

Result<BenchAnswer> take_turn(BenchLibrary& library, const BenchTurn& turn,
                              const BenchLibrary::Buffers& buffers, const BenchPattern& pattern) {
  WEFT_TRY_STATUS(library.prepare(turn, buffers));
  BenchAnswer answer;
  if (turn.warmup > 0) {
    pattern.fill(buffers.input);
    WEFT_TRY_STATUS(library.barrier());  // in place, no rank may write to a buffer that is still being filled
    WEFT_TRY_STATUS(library.call());
    answer.wrong = pattern.wrong(library.result(buffers));
  }
  for (std::int64_t i = 1; i < turn.warmup; ++i) WEFT_TRY_STATUS(library.call());
  WEFT_TRY_STATUS(library.barrier());
  const double wall = wall_seconds(), processor = processor_seconds();
  for (std::int64_t i = 0; i < turn.iterations; ++i) WEFT_TRY_STATUS(library.call());
  const auto calls = static_cast<double>(turn.iterations);
  answer.seconds = (wall_seconds() - wall) / calls;
  answer.processor_seconds = (processor_seconds() - processor) / calls;
  return answer;
}

std::string answer_turn(BenchLibrary& library, std::array<Memory, 2>& memories, std::string_view line) {
  const auto worked = [&]() -> Result<BenchAnswer> {
    WEFT_TRY(turn, parse_bench_turn(line));
    alarm(static_cast<unsigned>(turn.limit));
    const BenchPattern pattern(turn, library.ranks(), library.rank());
    Memory& memory = memories[turn.allocated ? 1 : 0];
    WEFT_TRY(buffers, memory.provide(turn, pattern));
    Result<BenchAnswer> answer = take_turn(library, turn, buffers, pattern);
    library.finish();
    if (!turn.keep) memory.drop();
    return answer;
  };
  // Other libraries may throw; the message becomes the answer.
  try {
    const Result<BenchAnswer> answer = worked();
    alarm(0);
    return answer.ok() ? print(*answer) : "error " + answer.error().message;
  } catch (const std::exception& failure) {
    alarm(0);
    return fmt::format("error {}", failure.what());
  }
}

// Replaces control characters so that the message fits on one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  if (text.size() >= kMostBenchLine) text.resize(kMostBenchLine - 1);
  return text;
}

}  // namespace

std::vector<std::string> BenchLibrary::variants(collective::Kind) const { return {"plain"}; }

Result<std::byte*> BenchLibrary::allocate(std::size_t) { return user_error("the library has no allocator"); }

void BenchLibrary::release(std::byte*) {}

Status serve_bench(BenchLibrary& library) {
  const char* address = std::getenv(kBenchSocket);
  if (address == nullptr)
    return user_error(fmt::format("{} is not set", kBenchSocket), "run weft bench instead");
  WEFT_TRY(line, BenchLine::connect(address));
  line.write(one_line(print(BenchHello{library.rank(), library.ranks(), library.version()})));
  std::array<Memory, 2> memories = {Memory(library, false), Memory(library, true)};
  while (const auto said = line.read()) {
    constexpr std::string_view kVariants = "variants ";
    std::string answer;
    if (said->starts_with(kVariants)) {
      const auto kind = collective::find_kind(std::string_view(*said).substr(kVariants.size()));
      answer = kind ? fmt::format("{}", fmt::join(library.variants(*kind), " ")) : "error unknown collective";
    } else {
      answer = answer_turn(library, memories, *said);
    }
    if (!line.write(one_line(std::move(answer)))) break;
  }
  return {};
}

Result<BenchHello> rank_from_bench_environment() {
  const char* rank = std::getenv("RANK");
  const char* ranks = std::getenv("WORLD_SIZE");
  if (rank == nullptr || ranks == nullptr)
    return user_error("RANK and WORLD_SIZE are not set", "run weft bench instead");
  // During rendezvous a rank does not notice that the benchmark exits, so let the kernel kill it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return parse_bench_hello(fmt::format("hello {} {}", rank, ranks));
}

}  // namespace weft::measure
