// weft/collectives/one_sided/one_sided.h -- an execution plan of one-sided operations, as MSCCL++ runs them.
//
//   rank 0  block 0                                      rank 1  block 0
//     0  put     input[0..2) to scratch[4..6) of 1         0  wait  memory channel 0
//     1  nop                                               1  nop
//     2  signal  memory channel 0                          2  copy  scratch[4..6) to output[0..2)
//
// A threadblock writes to (put) and reads from (get) the memory of other ranks itself; nobody there takes
// part. What keeps them apart is counted: `signal` raises a counter at the other end of a channel, `wait`
// takes one from the counter at this end; `release` and `acquire` do the same with a semaphore of the own
// rank. The k-th channel of rank a to b ends in the k-th channel of b to a, of the same path. A packet
// carries its own flag, so whoever reads one waits until it was written. A switch reaches the memory of
// all its ranks at once: a load sums, a store goes to all.
//
// `part` of `parts`: the step is shared by a group of threadblocks, each of which does a part of every
// chunk. A pipeline runs its body again and again over slices of its chunks; slices share no bytes, so
// once over whole chunks means the same, if nobody is overtaken: what orders the steps is in memory_order.h.
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
  nop,  // the threads of the block wait for each other
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
  switch_reduce_store,       // the sum over a switch to all of a switch
  switch_store,              // local to all of a switch
  switch_store_packets,      // local packets to packets of all of a switch
  pipeline
};
inline constexpr std::size_t kVerbs = 30;

std::string_view name(Verb verb);  // "read_reduce_send"
std::string_view word(Verb verb);  // as MSCCL++ writes it: "rres"
std::optional<Verb> find_verb(std::string_view word);
bool sums(Verb verb);

// The operands of a verb, a letter each: l local, p local packets, r remote, q remote packets, s all of a
// switch, t packets of all of a switch; a final * repeats the letter before it, or drops it. In pairs, each
// source has its own target; otherwise the sum of all sources goes to every target.
struct Shape {
  std::string_view sources, targets;
  bool in_pairs = false;
};
Shape shape(Verb verb);
char letter(std::string_view operands, std::size_t position);  // of the operand at `position`

// How a step reaches other ranks: through their memory, through a network port, through a switch.
enum class Path : std::uint8_t { none, memory, port, switched };

std::string_view name(Path path);  // "memory", as MSCCL++ writes it; "switch" for switched

struct Operand {
  enum class Where : std::uint8_t { local, remote, switched };
  Where where = Where::local;
  std::int32_t peer = 0;          // remote: the rank; switched: which of the own rank's switches; local: 0
  Buffer buffer = Buffer::input;  // switched: that of the switch
  std::int32_t index = 0, count = 1;

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct OneSidedStep {
  Verb verb = Verb::nop;
  Path path = Path::none;
  std::vector<Operand> sources = {}, targets = {};
  std::vector<std::int32_t> channels = {};    // of the own rank's, of this path
  std::vector<std::int32_t> semaphores = {};  // of the own rank's
  std::int32_t barrier = -1, members = 0;
  std::int32_t part = 0, parts = 1;
  std::int64_t unit_bytes = 0;  // pipeline: of a slice
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
  std::vector<std::int32_t> memory_peers, port_peers;  // channels: the rank at the other end
  std::vector<Switch> switches;
  std::vector<std::int32_t> semaphores;  // what each holds at first
  std::vector<std::vector<OneSidedStep>> blocks;

  friend bool operator==(const OneSidedRank&, const OneSidedRank&) = default;
};

struct OneSided {
  std::string name;
  // What the plan says of itself: "allreduce", "test". Only allreduce, allgather, reducescatter and
  // alltoall promise a result; for any other word `collective` is custom, without wants.
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

// Operands, ids, ranges and sizes: whatever can be seen without running. to_actions() needs it. A step
// counts as its position in the threadblock, the body of a pipeline following the pipeline.
std::optional<Finding> check_form(const OneSided& plan);

// What today's executor has room for: 64 operations, 16 channels and 16 remote buffers a threadblock, 8
// channels an operation, 16 barriers and 16 semaphores a rank. The error names what does not fit.
Status check_limits(const OneSided& plan);

// What the threadblocks do. Where steps are shared by groups, every chunk is cut into as many parts as all
// groups divide, and the collective of the answer has that many times the chunks.
// REQUIRES: check_form(plan) has found nothing.
// `turns`: how often the body of a pipeline is run, each time on the whole chunks.
Actions to_actions(const OneSided& plan, Grain grain, std::int32_t turns = 1);

// Signals without their waits, waits without their signals, and pipelines of different lengths that wait for
// each other: whatever would leave a counter elsewhere than it began, so that the next run goes wrong.
// REQUIRES: check_form(plan) has found nothing.
std::optional<Finding> check_counters(const OneSided& plan);

Report check(const OneSided& plan, const CheckOptions& options = {});

}  // namespace weft::collective
