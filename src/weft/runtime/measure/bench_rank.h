// weft/runtime/measure/bench_rank.h -- a rank that `weft bench` measures: does a library's calls when told to.
//
//   struct Mine : BenchLibrary { ... };            the library under test, behind five functions
//   Mine mine;  serve_bench(mine, address);        sleeps, works, answers, until the bench hangs up
//
// A turn: fill the input, one call whose result is checked, further calls to warm up, a barrier of the
// library, then a tight loop of calls between two looks at the clock. Every library is measured by this same
// loop: Weft's own (bench_weft_rank.cpp) and the peers of bench/peers/collectives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_turn.h"

namespace weft::measure {

class BenchLibrary {
 public:
  virtual ~BenchLibrary() = default;

  virtual std::string version() const = 0;  // "Open MPI v4.1.4"
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t ranks() const = 0;

  // Different ways to do a collective, each of which is given its turns. One word each.
  virtual std::vector<std::string> variants(collective::Kind kind) const;

  virtual Status barrier() = 0;

  // What the calls that follow do. `count` elements a block, as in comm/call.h; in place the buffers overlap
  // as collective.h says, a broadcast always has one buffer.
  struct Buffers {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::int64_t count = 0;
  };
  virtual Status prepare(const BenchTurn& turn, const Buffers& buffers) = 0;
  virtual Status call() = 0;
  // Where the result lies: a library that only knows its own place says so.
  virtual const std::byte* result(const Buffers& buffers) const { return buffers.output; }
  virtual void finish() {}  // the turn is over, its buffers may go away

  // Memory that the library likes best; private memory of this process where it has no opinion.
  virtual Result<std::byte*> allocate(std::size_t bytes);
  virtual void release(std::byte* memory);
};

// Where a rank finds the bench: the name of an abstract Unix socket.
inline constexpr const char* kBenchSocket = "WEFT_BENCH_SOCKET";

// Answers turns until the bench hangs up. A rank that is stuck past a turn's limit is ended by SIGALRM, so
// that nothing is left behind even when the bench was killed.
Status serve_bench(BenchLibrary& library);

// RANK and WORLD_SIZE, for ranks that the bench starts one by one; from then on they die with it.
Result<BenchHello> rank_from_bench_environment();

// One rank of Weft's own side; the bench starts it. Does not return before the bench hangs up.
Status run_bench_rank(std::string_view transport);

}  // namespace weft::measure
