// weft/collectives/one_sided/one_sided.h -- a plan of one-sided operations, as MSCCL++ runs them.
//
//   rank 0  block 0                                      rank 1  block 0
//     0  put     input[0..2) to scratch[4..6) of 1         0  wait  memory channel 0
//     1  nop                                               1  nop
//     2  signal  memory channel 0                          2  copy  scratch[4..6) to output[0..2)
//
// A threadblock writes (put) and reads (get) the memory of other ranks without their participation.
// Counters synchronize them: `signal` increments a counter at the other end of a channel, `wait`
// decrements the counter at this end; `release` and `acquire` do the same with a semaphore of their
// own rank. The k-th channel of rank a to b ends at the k-th channel of b to a with the same path.
// A packet carries its own flag, so its reader waits until it was written. A switch accesses the
// memory of all its ranks at once: a load sums, a store goes to all.
//
// `part` of `parts`: a group of threadblocks shares the step; each does one part of every chunk. A
// pipeline iterates over slices of its chunks. Slices share no bytes, so one iteration over whole
// chunks is equivalent, provided no block overtakes another: memory_order.h checks that.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

enum class Verb : std::uint8_t {
  nop,  // synchronizes the threads of the block
  barrier,
  signal,
  relaxed_signal,
  wait,
  relaxed_wait,
  flush,
  acquire,
  release,
  copy,
  put,
  put_signal,
  put_signal_flush,
  get,
  reduce,                    // target = the sum of the sources, all local
  reduce_send,               //   ... and to the targets after the first, which are remote
  read_reduce,               // sources after the first are remote
  read_reduce_send,          // both
  put_packets,               // local to remote packets
  read_put_packets,          // local packets to remote packets
  copy_packets,              // local to local packets
  unpack_packets,            // local packets to local
  reduce_packets,            // sources after the first are packets
  reduce_send_packets,       // ... and to the targets after the first, remote packets
  reduce_copy_packets,       // ... and to the second target, local packets
  reduce_copy_send_packets,  // all of it
  switch_reduce_store,       // sum over a switch, stored to all its ranks
  switch_store,              // local to all ranks of a switch
  switch_store_packets,      // local packets to packets on all ranks of a switch
  pipeline
};
inline constexpr std::size_t kVerbs = 30;

std::string_view name(Verb verb);  // "read_reduce_send"
std::string_view word(Verb verb);  // as MSCCL++ writes it: "rres"
std::optional<Verb> find_verb(std::string_view word);
bool sums(Verb verb);

// The operands of a verb, one letter each: l local, p local packets, r remote, q remote packets, s
// all ranks of a switch, t packets on all ranks of a switch. A final * means that the letter before
// it occurs any number of times. In pairs, each source has its own target; otherwise the sum of all
// sources goes to every target.
struct Shape {
  std::string_view sources, targets;
  bool in_pairs = false;
};
Shape shape(Verb verb);
char letter(std::string_view operands, std::size_t position);  // of the operand at `position`

// How a step accesses other ranks: through their memory, a network port, or a switch.
enum class Path : std::uint8_t { none, memory, port, switched };

std::string_view name(Path path);  // "memory", as MSCCL++ writes it; "switch" for switched

struct Operand {
  enum class Where : std::uint8_t { local, remote, switched };
  Where where = Where::local;
  std::int32_t peer = 0;          // remote: the rank; switched: the index of the switch; local: 0
  Buffer buffer = Buffer::input;  // switched: the buffer of the switch
  std::int32_t index = 0, count = 1;

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct OneSidedStep {
  Verb verb = Verb::nop;
  Path path = Path::none;
  std::vector<Operand> sources = {}, targets = {};
  std::vector<std::int32_t> channels = {};    // indices into this rank's channels of this path
  std::vector<std::int32_t> semaphores = {};  // indices into this rank's semaphores
  std::int32_t barrier = -1, members = 0;
  std::int32_t part = 0, parts = 1;
  std::int64_t unit_bytes = 0;  // pipeline: per slice
  std::int32_t unit_chunks = 0;
  std::vector<OneSidedStep> body = {};  // pipeline

  friend bool operator==(const OneSidedStep&, const OneSidedStep&) = default;
};

struct Switch {
  Buffer buffer = Buffer::input;
  std::vector<std::int32_t> ranks;

  friend bool operator==(const Switch&, const Switch&) = default;
};

struct OneSidedRank {
  std::int32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<std::int32_t> memory_peers, port_peers;  // per channel: the rank at the other end
  std::vector<Switch> switches;
  std::vector<std::int32_t> semaphores;  // initial values
  std::vector<std::vector<OneSidedStep>> blocks;

  friend bool operator==(const OneSidedRank&, const OneSidedRank&) = default;
};

struct OneSided {
  std::string name;
  // The collective that the plan declares: "allreduce", "test". Only allreduce, allgather,
  // reducescatter and alltoall specify a result; for any other word `collective` is custom, without
  // wants.
  std::string collective_word;
  Collective collective;
  Protocol protocol = Protocol::simple;
  bool in_place = false;
  bool reuse_resources = false, double_scratch = false;
  std::int32_t threads_per_block = 1024, alignment = 16;
  std::uint64_t min_bytes = 0, max_bytes = UINT64_MAX;
  std::vector<OneSidedRank> ranks;

  friend bool operator==(const OneSided&, const OneSided&) = default;
};

// Static checks: operands, ids, ranges and sizes. to_actions() requires them. Steps are numbered by
// position in the threadblock; the body of a pipeline follows the pipeline.
std::optional<Finding> check_form(const OneSided& plan);

// Limits of today's executor: 64 operations, 16 channels and 16 remote buffers per threadblock, 8
// channels per operation, 16 barriers and 16 semaphores per rank. The error names the limit
// exceeded.
Status check_limits(const OneSided& plan);

// The actions of the threadblocks. If groups share steps, every chunk is cut into a number of parts
// that all groups divide, and the collective of the result has that many times the chunks.
// REQUIRES: check_form(plan) found nothing.
// `turns`: iterations of every pipeline body, each on the whole chunks.
Actions to_actions(const OneSided& plan, Grain grain, std::int32_t turns = 1);

// Finds signals without waits, waits without signals, and pipelines of different lengths that wait
// for each other: faults that leave a counter at a value other than its initial one, so that the
// next run fails.
// REQUIRES: check_form(plan) found nothing.
std::optional<Finding> check_counters(const OneSided& plan);

Report check(const OneSided& plan, const CheckOptions& options = {});

}  // namespace weft::collective
