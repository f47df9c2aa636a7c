// weft/program/tasks/program.h -- a plan made ready to run on one rank: buffers, units, tasks.
//
//   buffer  a stretch of the rank's memory, given its address before anything runs
//   unit    one kernel over whole values: a matrix product, a loop over rows, an operator's own kernel
//   task    a tile of a unit: the part of its range that one worker does in one go
//   stream  a queue of tasks: one computes, others move bytes beside it (stream.h)
//
// The tasks are one state machine: a task waits for those it names, is ready, runs, is done. What
// waits for what follows from the addresses alone, as a processor's scoreboard finds it: a task
// waits for earlier ones that write what it reads or writes, or read what it writes. So any order
// in which ready tasks start gives the same bits. The executor and the simulator read this same value.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/priority.h"
#include "weft/collectives/chunks/program.h"
#include "weft/plan/graph/exchange_kind.h"
#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/matrix_product.h"
#include "weft/program/tasks/place.h"
#include "weft/program/tasks/row_loop.h"

namespace weft::program {

// Persistent buffers keep their contents from step to step and share memory with nobody.
enum class BufferRole : std::uint8_t { input, parameter, state, result, temporary };

std::string_view name(BufferRole role);
constexpr bool is_persistent(BufferRole role) { return role < BufferRole::temporary; }

struct Buffer {
  BufferRole role = BufferRole::temporary;
  bool spilled = false;  // it lies where a file does (spill.h)
  std::string name;      // of a source or an output; empty for the rest
  plan::ValueId value;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;           // in the rank's memory
  std::uint32_t born = 0, dies = 0;  // units: written first by `born`, read last before `dies`
};

// A node by a kernel of its own: convolution, pooling, gather, optimizers, ...
struct OperatorCall {
  plan::NodeId node;
  std::vector<Place> operands, results;
};

// What an optimizer does to many tensors alike, as one (updates.h). A call may have a result more than its node: the
// parameter, which is what the first one rounds to.
struct Updates {
  std::vector<OperatorCall> calls;
};

// Elements moved to another order, or next to each other.
struct Copy {
  Place from, to;
};

// The chunks' copies of an accumulator become one.
struct Combine {
  BufferId partials;
  Place result;
  std::int64_t chunks = 1, elements = 0;
  plan::Monoid monoid = plan::Monoid::sum;
  double divisor = 1;
};

// What runs a collective.
struct ChosenAlgorithm {
  // "direct", "all_reduce_ring(channels=2)": a name of algorithms/ or of the communicator's own paths
  // (comm/candidates.h), " x3" where three instances of it run side by side. Empty: the communicator chooses.
  std::string name = {};
  std::optional<collective::Protocol> protocol = {};  // none: whichever the communicator has
  collective::Priority priority = collective::Priority::normal;

  friend bool operator==(const ChosenAlgorithm&, const ChosenAlgorithm&) = default;
};

// "all_reduce_ring LL128", "direct, high priority", "the communicator's choice".
std::string print(const ChosenAlgorithm& algorithm);

// A collective among the ranks along one mesh axis. Both places are plain stretches without gaps, and what
// the collective joins or parts runs slowest in them; what it takes and keeps are blocks of whole ranks.
//
//   all-gather                                  counts[r] elements from rank r, end to end
//   reduce-scatter                              counts[r] to rank r
//   all-to-all                                  counts[r] to rank r, takes[r] from it
//   all-reduce, broadcast-from, permute-ranks   counts[0]
//   send, receive                               counts[0] to, or from, rank `shift` of the group
//
// The other indices run in the order of the plan's type, so that all ranks agree on what lies where. A rank
// with nothing to give has an operand without a buffer, one that gets nothing such a result: it takes part
// all the same, and the counts say so. Of an all-reduce the two may be one place; else they share nothing.
// The programs of a group's ranks have the same collectives in the same order, and name the same algorithms.
// Sends and receives are each rank's own; a send waits for nobody.
struct Exchange {
  plan::NodeId node;  // the `exchange` of the local plan
  using Kind = plan::ExchangeKind;
  Kind kind = Kind::all_reduce;
  std::string axis;                         // of the mesh
  plan::Monoid monoid = plan::Monoid::sum;  // of reductions
  plan::DType dtype = plan::DType::f32;     // of what moves, also where this rank has no share
  std::int64_t shift =
      0;                 // of permute-ranks: how many ranks up; of broadcast-from: the root; of messages: who
  std::int64_t tag = 0;  // of messages
  Place operand, result;
  std::vector<std::int64_t> counts, takes;  // elements, by rank of the group; takes of all-to-all and halo
  ChosenAlgorithm algorithm = {};           // filled in by who prices programs: cost/choose_algorithms.h
};

using Kernel = std::variant<MatrixProduct, RowLoop, OperatorCall, Updates, Copy, Combine, Exchange>;

// Along what tasks cut a unit.
enum class Cut : std::uint8_t {
  nothing,  // one task does it all
  items,    // of an operator's own kernel: images, rows, elements; of a copy: its slowest index
  rows,     // of a row loop, in blocks; of a matrix product: m
  columns,  // of a matrix product: n
  outer,    // the points of a matrix product's outer loops
};

struct Unit {
  std::vector<plan::NodeId> nodes;  // what it computes; empty for copies and combines
  Kernel kernel;
  std::int64_t items = 1;  // the range that tasks cut: rows, images, columns, ...
  Cut cut = Cut::items;
  std::vector<Place> reads, writes;  // whole values
  std::uint32_t stream = 0;          // of the program's
  std::uint32_t turn = 0;            // of the step: CompileOptions::turns
  // A flag, one of the places that it reads: where it holds nobody reads what the unit writes, and whoever can
  // look at it in time leaves the unit out (left_out.h).
  std::optional<Place> unless = {};
};

struct Task {
  std::uint32_t unit = 0;
  std::int64_t begin = 0, end = 0;  // of the unit's items
  std::uint32_t chunk = 0;  // which task of its unit it is, or of the pass that it belongs to (waits.h)
  std::vector<Extent> reads = {}, writes = {};
  std::vector<std::uint32_t> waits = {};  // earlier tasks, in order, without those that others imply
};

// A named value outside of a step: what is fed, kept or read out.
struct Port {
  std::string name;
  plan::ValueId value;
  Place place;  // plain
};

struct Program {
  std::shared_ptr<const plan::Graph> graph;
  std::vector<Buffer> buffers;
  std::vector<Unit> units;
  std::vector<Task> tasks;                         // in an order that runs
  std::vector<std::string> streams = {"compute"};  // by name: what moves is called as its mesh axis
  std::vector<Port> inputs, parameters, states, outputs;

  std::int64_t persistent_bytes = 0;  // inputs, parameters, states, outputs
  std::int64_t work_bytes = 0;        // the packed rest
  std::int64_t work_lower_bound = 0;  // what no packing can go below: the most that is alive at once

  // Where not all fits: see spill.h.
  std::int64_t spilled_bytes = 0;       // of what is kept, the first that are in a file
  std::int64_t spilled_work_bytes = 0;  // of the step, after all else
  std::int64_t spill_window = 0;        // the most of both that is in memory at once

  std::int64_t bytes() const { return persistent_bytes + work_bytes + spilled_work_bytes; }
  std::int64_t resident_bytes() const { return persistent_bytes - spilled_bytes + work_bytes + spill_window; }
  const Buffer& buffer(BufferId id) const { return buffers[id.value]; }
};

struct CompileOptions {
  int workers = 1;  // tasks are cut so that this many have enough to do
  // What the rank can compute while a byte goes to another rank: decides how long after an exchange that
  // which reads its result is to come. Some tens on processors, some thousands on accelerators.
  double flops_per_exchanged_byte = 100;
  // Kernels take bf16 and f16 as they are, as accelerators' do. Else those that do not get them as f32.
  bool any_float = false;
  // To run on an accelerator: optimizers read narrow gradients without a cast before them and renew many tensors at once,
  // sums that lie apart are joined, and rows of logits begin at multiples of 16 bytes, whatever the number of classes, where products are far faster.
  bool accelerated = false;
  // False: every buffer gets memory of its own, and work_bytes is the lower bound. Quicker; to price only.
  bool pack = true;
  // False: a unit is one task: to price, and for devices that cut units themselves.
  bool tiles = true;
  // By node of the plan: the turn in which it runs, where a step has several (pipeline/unroll.h). Turns are
  // done one after the other, and what belongs to different ones is not fused. Empty: there is one.
  std::span<const std::uint32_t> turns = {};
  // What may be in memory at once: as much as needs be is spilled (spill.h). 0: any number of bytes.
  std::int64_t resident_limit = 0;
};

// Compiles what the plan's outputs depend on. An output "next NAME" is what the source NAME holds
// when the step is over; it has no port of its own.
Result<Program> compile(std::shared_ptr<const plan::Graph> graph, const CompileOptions& options = {});

// One line a buffer, a unit, a task.
std::string print(const Program& program);

// "add, relu": what a unit computes, for people.
std::string describe(const Program& program, const Unit& unit);

}  // namespace weft::program
