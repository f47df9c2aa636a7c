// weft/runtime/measure/bench_rank.h -- a rank measured by `weft bench`: runs a library's calls on request.
//
//   struct Mine : BenchLibrary { ... };            the library under test, behind five functions
//   Mine mine;  serve_bench(mine, address);        sleeps, works, answers, until the connection closes
//
// A turn fills the input, checks the result of one call, runs further warm-up calls and a barrier,
// then times a tight loop of calls. All libraries are measured by this same loop: Weft's own
// (bench_weft_rank.cpp) and the peers in bench/peers/collectives.
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

  // Alternative implementations of a collective, each measured separately. Names of one word.
  virtual std::vector<std::string> variants(collective::Kind kind) const;

  virtual Status barrier() = 0;

  // Sets up the calls that follow. `count` is elements per block, as in comm/call.h. In place, the
  // buffers overlap as described in collective.h; a broadcast always has one buffer.
  struct Buffers {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::int64_t count = 0;
  };
  virtual Status prepare(const BenchTurn& turn, const Buffers& buffers) = 0;
  virtual Status call() = 0;
  // The address of the result, for libraries that write it to their own buffer.
  virtual const std::byte* result(const Buffers& buffers) const { return buffers.output; }
  virtual void finish() {}  // end of a turn; its buffers may be freed

  // Memory from the library's own allocator, if it has one.
  virtual Result<std::byte*> allocate(std::size_t bytes);
  virtual void release(std::byte* memory);
};

// The environment variable with the name of the benchmark's abstract Unix socket.
inline constexpr const char* kBenchSocket = "WEFT_BENCH_SOCKET";

// Answers turns until the connection closes. A rank stuck past a turn's limit is killed by SIGALRM,
// so that no process remains even if the benchmark was killed.
Status serve_bench(BenchLibrary& library);

// RANK and WORLD_SIZE, for ranks that the benchmark starts one by one; afterwards they are killed
// when it exits.
Result<BenchHello> rank_from_bench_environment();

// Runs a rank of Weft itself, started by the benchmark. Returns when the connection closes.
Status run_bench_rank(std::string_view transport);

}  // namespace weft::measure
