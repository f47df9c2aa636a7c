// weft/program/tasks/program.h -- a plan compiled for one rank: buffers, units, tasks.
//
//   buffer  a range of the rank's memory, assigned before anything runs
//   unit    one kernel over whole values: a matrix product, a row loop, an operator's own kernel
//   task    a tile of a unit: the part of its range that one worker runs without interruption
//   stream  a queue of tasks: one computes, others move bytes concurrently (stream.h)
//
// A task waits for its dependencies, then is ready, runs, and is done. Dependencies follow from
// addresses alone, as in a processor's scoreboard: a task waits for earlier tasks that write what
// it reads or writes, or that read what it writes. So ready tasks may start in any order with
// bitwise identical results. The executor and the simulator use the same Program.
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

// Persistent buffers keep their contents from step to step and never share memory.
enum class BufferRole : std::uint8_t { input, parameter, state, result, temporary };

std::string_view name(BufferRole role);
constexpr bool is_persistent(BufferRole role) { return role < BufferRole::temporary; }

struct Buffer {
  BufferRole role = BufferRole::temporary;
  bool spilled = false;  // stored in a file (spill.h)
  std::string name;      // of a source or an output; otherwise empty
  plan::ValueId value;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;           // in the rank's memory
  std::uint32_t born = 0, dies = 0;  // units: first written by `born`, last read before `dies`
};

// A node with its own kernel: convolution, pooling, gather, optimizers, ...
struct OperatorCall {
  plan::NodeId node;
  std::vector<Place> operands, results;
};

// Optimizer updates of many tensors by one kernel (updates.h). A call may have one more result than
// its node: the parameter, rounded from the first result.
struct Updates {
  std::vector<OperatorCall> calls;
};

// Copies elements to another order, or next to each other.
struct Copy {
  Place from, to;
};

// Reduces the chunks' copies of an accumulator.
struct Combine {
  BufferId partials;
  Place result;
  std::int64_t chunks = 1, elements = 0;
  plan::Monoid monoid = plan::Monoid::sum;
  double divisor = 1;
};

// How a collective runs.
struct ChosenAlgorithm {
  // "direct", "all_reduce_ring(channels=2)": a name from algorithms/ or one of the communicator's
  // built-in algorithms (comm/candidates.h), " x3" for three concurrent instances. Empty: chosen by
  // the communicator.
  std::string name = {};
  std::optional<collective::Protocol> protocol = {};  // empty: chosen by the communicator
  collective::Priority priority = collective::Priority::normal;

  friend bool operator==(const ChosenAlgorithm&, const ChosenAlgorithm&) = default;
};

// "all_reduce_ring LL128", "direct, high priority", "the communicator's choice".
std::string print(const ChosenAlgorithm& algorithm);

// A collective among the ranks along one mesh axis. Both places are dense, and the index that the
// collective joins or splits runs slowest. Data moves in whole blocks per rank.
//
//   all-gather                                  counts[r] elements from rank r, end to end
//   reduce-scatter                              counts[r] to rank r
//   all-to-all                                  counts[r] to rank r, takes[r] from it
//   all-reduce, broadcast-from, permute-ranks   counts[0]
//   send, receive                               counts[0] to, or from, rank `shift` of the group
//
// The other indices run in the order of the plan's type, so that all ranks agree on the layout. A
// rank that sends nothing has an operand without a buffer, and one that receives nothing a result
// without one; it still takes part, and the counts reflect this. Operand and result of an
// all-reduce may be the same place; otherwise they do not overlap. The programs of a group's ranks
// have the same collectives in the same order, with the same algorithms. Sends and receives differ
// per rank; a send never waits.
struct Exchange {
  plan::NodeId node;  // the `exchange` of the local plan
  using Kind = plan::ExchangeKind;
  Kind kind = Kind::all_reduce;
  std::string axis;                         // of the mesh
  plan::Monoid monoid = plan::Monoid::sum;  // of reductions
  plan::DType dtype = plan::DType::f32;     // of the data, also where this rank has no shard
  std::int64_t shift = 0;                   // permute-ranks: distance; broadcast-from: root; messages: peer
  std::int64_t tag = 0;                     // of messages
  Place operand, result;
  std::vector<std::int64_t> counts, takes;  // elements, by rank of the group; takes: for all-to-all and halo
  ChosenAlgorithm algorithm = {};           // filled in by the cost model: cost/choose_algorithms.h
};

using Kernel = std::variant<MatrixProduct, RowLoop, OperatorCall, Updates, Copy, Combine, Exchange>;

// The dimension along which tasks split a unit.
enum class Cut : std::uint8_t {
  nothing,  // a single task
  items,    // of an operator's kernel: images, rows, elements; of a copy: its slowest index
  rows,     // of a row loop, in blocks; of a matrix product: m
  columns,  // of a matrix product: n
  outer,    // the points of a matrix product's outer loops
};

struct Unit {
  std::vector<plan::NodeId> nodes;  // nodes that it computes; empty for copies and combines
  Kernel kernel;
  std::int64_t items = 1;  // the range that tasks split: rows, images, columns, ...
  Cut cut = Cut::items;
  std::vector<Place> reads, writes;  // whole values
  std::uint32_t stream = 0;          // of the program
  std::uint32_t turn = 0;            // of the step: CompileOptions::turns
  // One of the places that it reads, a flag. If it is true, the unit's results are not read, and an
  // executor that can test it in time skips the unit (skip_flags.h).
  std::optional<Place> unless = {};
};

struct Task {
  std::uint32_t unit = 0;
  std::int64_t begin = 0, end = 0;  // of the unit's items
  std::uint32_t chunk = 0;          // number within its unit, or within its pass (waits.h)
  std::vector<Extent> reads = {}, writes = {};
  std::vector<std::uint32_t> waits = {};  // earlier tasks, ascending, without those that others imply
};

// A named value with a lifetime beyond the step: an input, kept value or output.
struct Port {
  std::string name;
  plan::ValueId value;
  Place place;  // plain
};

struct Program {
  std::shared_ptr<const plan::Graph> graph;
  std::vector<Buffer> buffers;
  std::vector<Unit> units;
  std::vector<Task> tasks;                         // in a valid execution order
  std::vector<std::string> streams = {"compute"};  // names; others are named after mesh axes
  std::vector<Port> inputs, parameters, states, outputs;

  std::int64_t persistent_bytes = 0;  // inputs, parameters, states, outputs
  std::int64_t work_bytes = 0;        // packed temporaries
  std::int64_t work_lower_bound = 0;  // lower bound for any packing: the most bytes alive at once

  // If the memory limit is exceeded: see spill.h.
  std::int64_t spilled_bytes = 0;       // persistent bytes in a file; they come first
  std::int64_t spilled_work_bytes = 0;  // temporary bytes in a file; they come last
  std::int64_t spill_window = 0;        // the most of both that is in memory at once

  std::int64_t bytes() const { return persistent_bytes + work_bytes + spilled_work_bytes; }
  std::int64_t resident_bytes() const { return persistent_bytes - spilled_bytes + work_bytes + spill_window; }
  const Buffer& buffer(BufferId id) const { return buffers[id.value]; }
};

struct CompileOptions {
  int workers = 1;  // tasks are split so that this many workers are busy
  // Flops that the rank can compute while it sends a byte. It decides how far after an exchange the
  // readers of its result are scheduled. Tens on CPUs, thousands on accelerators.
  double flops_per_exchanged_byte = 100;
  // Kernels read bf16 and f16 directly, as on accelerators. Otherwise operands of kernels without
  // support are converted to f32.
  bool any_float = false;
  // For accelerators: optimizers read narrow gradients without a cast and update many tensors per
  // launch, separated sums are joined, and rows of logits are padded to multiples of 16 bytes,
  // which makes products far faster.
  bool accelerated = false;
  // False: buffers do not share memory, and work_bytes is the lower bound. Faster; for cost
  // estimates only.
  bool pack = true;
  // False: one task per unit, for cost estimates and devices that split units themselves.
  bool tiles = true;
  // By node of the plan: its turn, if a step has several (pipeline/unroll.h). Turns run one after
  // the other, and nodes of different turns are not fused. Empty: a single turn.
  std::span<const std::uint32_t> turns = {};
  // Limit on bytes in memory at once: as much as necessary is spilled (spill.h). 0: no limit.
  std::int64_t resident_limit = 0;
};

// Compiles the nodes that the plan's outputs depend on. An output "next NAME" becomes the value of
// the source NAME at the end of the step and has no port.
Result<Program> compile(std::shared_ptr<const plan::Graph> graph, const CompileOptions& options = {});

// One line per buffer, unit and task.
std::string print(const Program& program);

// "add, relu": the nodes of a unit, for display.
std::string describe(const Program& program, const Unit& unit);

}  // namespace weft::program
