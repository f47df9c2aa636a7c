// weft/runtime/measure/bench_turn.h -- the line protocol between `weft bench` and the ranks it measures.
//
//   rank   hello 1 2 Open MPI v4.1.4           its rank, the number of ranks, its version
//   bench  variants all_reduce
//   rank   ring bcube                          its variants of the collective
//   bench  all_reduce 4096 f32 in_place=0 iterations=20 warmup=3 variant=ring buffers=private keep=1 limit=20
//   rank   5.12e-06 1.01e-05 0                 seconds and processor seconds per call, wrong elements
//   rank   error MPI has no sums of bf16       or why it cannot run the call
//
// Between lines a rank sleeps in read(). A library spinning in its own barrier would take processor
// time from the library being measured.
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
  std::int64_t bytes = 0;  // message size as in nccl-tests: the larger buffer
  device::ElementType type = device::ElementType::f32;
  bool in_place = false;
  std::int64_t iterations = 1;
  std::int64_t warmup = 1;        // calls before timing; the first result is checked
  std::string variant = "plain";  // one of the library's variants
  bool allocated = false;         // buffers from the library's own allocator
  bool keep = true;               // keep the buffers for the next turn
  std::int64_t limit = 20;        // seconds until the rank exits

  friend bool operator==(const BenchTurn&, const BenchTurn&) = default;
};

// Elements per block: the whole buffer, or one rank's block if a buffer has a block per rank. At
// least one, otherwise as many as fit into `bytes`.
std::int64_t block_elements(const BenchTurn& turn, std::int32_t ranks);
// The actual message size: slightly less than `bytes` if it does not divide evenly.
std::int64_t message_bytes(const BenchTurn& turn, std::int32_t ranks);

struct BenchAnswer {
  double seconds = 0, processor_seconds = 0;  // per call
  std::int64_t wrong = 0;                     // elements

  friend bool operator==(const BenchAnswer&, const BenchAnswer&) = default;
};

struct BenchHello {
  std::int32_t rank = 0, ranks = 0;
  std::string version;
};

inline constexpr std::size_t kMostBenchLine = 4096;

// Lines without their end. Parsing fails on anything that printing does not produce; an answer that
// starts with `error` is an error with the rest as message.
std::string print(const BenchTurn& turn);
Result<BenchTurn> parse_bench_turn(std::string_view line);
std::string print(const BenchAnswer& answer);
Result<BenchAnswer> parse_bench_answer(std::string_view line);
std::string print(const BenchHello& hello);
Result<BenchHello> parse_bench_hello(std::string_view line);

// Splits at spaces.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace weft::measure
