// weft/collectives/chunks/collective.h -- the data of each rank before and after a collective.
//
//   all_gather, 3 ranks, 1 chunk per block        before (input)      after (output)
//                                          rank 0   a                   a b c
//                                          rank 1   b                   a b c
//                                          rank 2   c                   a b c
//
// Data moves in chunks. A *block* is what one rank contributes or receives. It has `chunks` chunks,
// or if blocks differ, the number in `counts`. Index k of a buffer is its k-th chunk. For N ranks
// and blocks of C chunks:
//
//   kind            input      output     after it
//   all_reduce      C          C          output[c] of r = sum over s of input[c] of s
//   reduce_scatter  N*C        C          output[c] of r = sum over s of input[r*C + c] of s
//   all_gather      C          N*C        output[s*C + c] of r = input[c] of s
//   all_to_all      N*C        N*C        output[s*C + c] of r = input[r*C + c] of s
//   broadcast       C          C          output[c] of r = input[c] of root
//   reduce          C          C          output[c] of root = sum over s of input[c] of s
//   gather          C          N*C        output[s*C + c] of root = input[c] of s
//   scatter         N*C        C          output[c] of r = input[r*C + c] of root
//   send            C          C          output[c] of peer = input[c] of root
//   barrier         1          1          an all_reduce of zero bytes: no rank leaves before all arrive
//   custom                                whatever `wants` lists, or nothing
//
// Only root has the input of a broadcast, scatter and send, and only root (peer) the output of a
// reduce, gather and send; other ranks may still have the buffer.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::collective {

inline constexpr std::int64_t kMostRanks = 65536;

enum class Kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  barrier,
  custom
};

std::string_view name(Kind kind);   // "all_reduce"
std::string field_name(Kind kind);  // "allreduce", as other tools write it
std::span<const std::string_view> kind_names();
// Reads Weft's names and those of other tools: allreduce, reducescatter, alltoallv, sendrecv.
std::optional<Kind> find_kind(std::string_view name);
// Like find_kind(), with an error that suggests a similar name.
Result<Kind> parse_kind(std::string_view name);

enum class Buffer : std::uint8_t { input, output, scratch };

std::string_view name(Buffer buffer);  // "input"

// One chunk of one rank's input: a term of a sum.
struct Contribution {
  std::int32_t rank = 0;
  std::int32_t index = 0;

  friend auto operator<=>(const Contribution&, const Contribution&) = default;
};

// The required content of one chunk of output.
struct Want {
  enum class What : std::uint8_t {
    anything,  // unspecified
    chunk,     // input[index] of rank
    sum,       // the sum of input[index] over all ranks
    listed     // the sum of `contributions`
  };
  What what = What::anything;
  std::int32_t rank = 0;
  std::int32_t index = 0;
  std::vector<Contribution> contributions;  // listed: sorted
};

// The required content of one output chunk of a custom collective.
struct CustomWant {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  std::vector<Contribution> contributions;

  friend bool operator==(const CustomWant&, const CustomWant&) = default;
};

struct Collective {
  Kind kind = Kind::custom;
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;  // per block
  std::int32_t root = 0;
  std::int32_t peer = 0;  // send: the receiver
  // Chunks per block if blocks differ: one count per rank for reduce_scatter, all_gather, gather
  // and scatter; for all_to_all counts[s * ranks + r] is the block from s to r. Empty: all have
  // `chunks`.
  std::vector<std::int32_t> counts;
  std::vector<CustomWant> wants;  // custom only, sorted by rank and index

  friend bool operator==(const Collective&, const Collective&) = default;
};

bool reduces(Kind kind);  // whether it sums
// Whether one of its buffers has a block per rank ...
bool has_block_per_rank(Kind kind);
// ... and whether the other buffer is one of those blocks: true of all of these but all_to_all.
bool has_one_block(Kind kind);
// The buffer that covers all of the memory that input and output share in place.
Buffer shared_buffer(Kind kind);

// The offset of the block of `rank` in a buffer with a block per rank.
std::int32_t first_of_block(const Collective& collective, std::int32_t rank);

// The number of chunks in the input or output buffer of `rank`; 0 for scratch.
std::int32_t extent(const Collective& collective, Buffer buffer, std::int32_t rank);

// The required content of output[index] of `rank`.
Want want(const Collective& collective, std::int32_t rank, std::int32_t index);

// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it: 2(N-1)/N for all_reduce,
// (N-1)/N for reduce_scatter, all_gather, all_to_all, gather and scatter, 1 for the rest.
double bus_factor(Kind kind, std::int32_t ranks);

// The number of chunks that the message size covers, as nccl-tests and MSCCL count it: N*C if a
// buffer has a block per rank, C otherwise. A chunk of an M-byte call has M / loop_chunks bytes.
std::int64_t loop_chunks(const Collective& collective);

// Element ranges when a count does not divide evenly: chunk k of `chunks` covers
// [first, first + size) of `elements`. Sizes differ by at most one.
struct Extent {
  std::int64_t first = 0;
  std::int64_t size = 0;
};
Extent chunk_extent(std::int64_t elements, std::int64_t chunks, std::int64_t index);

}  // namespace weft::collective
