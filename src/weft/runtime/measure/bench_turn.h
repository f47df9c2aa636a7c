// weft/runtime/measure/bench_turn.h -- what `weft bench` and the ranks that it measures say to each other, by lines.
//
//   rank   hello 1 2 Open MPI v4.1.4           its rank, the ranks in all, what it is
//   bench  variants all_reduce
//   rank   ring bcube                          ways in which it can do it
//   bench  all_reduce 4096 f32 in_place=0 iterations=20 warmup=3 variant=ring buffers=private keep=1 limit=20
//   rank   5.12e-06 1.01e-05 0                 seconds and processor seconds per call, wrong elements
//   rank   error MPI has no sums of bf16       or why it cannot
//
// Between two lines a rank sleeps in read(): a library that spins in its own barrier would take the processor
// from the side whose turn it is.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/device/element_type.h"

namespace weft::measure {

struct BenchTurn {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int64_t bytes = 0;  // of the message, as nccl-tests counts: the larger buffer
  device::ElementType type = device::ElementType::f32;
  bool in_place = false;
  std::int64_t iterations = 1;
  std::int64_t warmup = 1;        // calls before; the result of the first is checked
  std::string variant = "plain";  // one of those that the library named
  bool allocated = false;         // buffers from the library's own allocator
  bool keep = true;               // the buffers, for the next turn
  std::int64_t limit = 20;        // seconds; a rank that takes longer ends itself

  friend bool operator==(const BenchTurn&, const BenchTurn&) = default;
};

// Elements of a block: of the whole buffer, or of one rank's part where a buffer has a block for every rank.
// At least one, else as many as fit into `bytes`.
std::int64_t block_elements(const BenchTurn& turn, std::int32_t ranks);
// What is really moved: a little less than `bytes` where they do not divide.
std::int64_t message_bytes(const BenchTurn& turn, std::int32_t ranks);

struct BenchAnswer {
  double seconds = 0, processor_seconds = 0;  // a call
  std::int64_t wrong = 0;                     // elements

  friend bool operator==(const BenchAnswer&, const BenchAnswer&) = default;
};

struct BenchHello {
  std::int32_t rank = 0, ranks = 0;
  std::string version;
};

inline constexpr std::size_t kMostBenchLine = 4096;

// Without the end of the line. Reading fails on anything that printing would not have written; an answer
// that begins with `error` is an error with the words that follow.
std::string print(const BenchTurn& turn);
Result<BenchTurn> parse_bench_turn(std::string_view line);
std::string print(const BenchAnswer& answer);
Result<BenchAnswer> parse_bench_answer(std::string_view line);
std::string print(const BenchHello& hello);
Result<BenchHello> parse_bench_hello(std::string_view line);

// The words between spaces.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace weft::measure
