// Compiles a plan to the program of one rank: group, write loops, order, assign memory, split into
// tasks.
#include <algorithm>

#include "weft/base/check.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/memory/pack.h"
#include "weft/program/tasks/cut.h"
#include "weft/program/tasks/exchange.h"
#include "weft/program/tasks/fetch.h"
#include "weft/program/tasks/grouping.h"
#include "weft/program/tasks/items.h"
#include "weft/program/tasks/masked_regions.h"
#include "weft/program/tasks/next_values.h"
#include "weft/program/tasks/partition_exchanges.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/row_code.h"
#include "weft/program/tasks/schedule.h"
#include "weft/program/tasks/share.h"
#include "weft/program/tasks/skip_flags.h"
#include "weft/program/tasks/spill.h"
#include "weft/program/tasks/stream.h"
#include "weft/program/tasks/updates.h"
#include "weft/program/tasks/waits.h"

namespace weft::program {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::int64_t kAlignment = 64;  // a cache line

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The nodes that the outputs depend on, every source, which a user may feed or save, and every
// exchange, which other ranks wait for.
std::vector<bool> needed_nodes(const plan::Graph& graph) {
  std::vector<bool> needed(graph.node_count());
  for (const plan::Output& output : graph.outputs()) needed[graph.value(output.value).producer.value] = true;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const plan::Node& node = graph.node(NodeId(n));
    if (node.inputs.empty() && !node.attributes.empty() && node.op->attributes()[0].name == "name")
      needed[n] = true;
    if (node.op == &ops::local_exchange()) needed[n] = true;
    if (!needed[n]) continue;
    for (const ValueId input : node.inputs) needed[graph.value(input).producer.value] = true;
  }
  return needed;
}

class Compiler {
 public:
  Compiler(std::shared_ptr<const plan::Graph> graph, const CompileOptions& options)
      : graph_(*graph),
        options_(options),
        readers_(graph_),
        needed_(needed_nodes(graph_)),
        masked_(find_masked_regions(graph_, needed_)),
        grouping_(
            group_nodes(graph_, readers_, needed_, options.any_float, options.turns, options.accelerated)) {
    program_.graph = std::move(graph);
  }

  Result<Program> run() {
    make_buffers();
    make_units();
    keep_next_values();
    add_ports();
    take_turns();
    leave_out();
    WEFT_TRY_STATUS(order_units(program_, options_.flops_per_exchanged_byte));
    if (options_.accelerated) join_updates(program_);
    write_next_values(program_);
    assign_streams(program_);
    share_buffers(program_);
    if (partition_exchanges(program_)) find_lifetimes(program_);
    drop_unused_buffers();
    if (options_.tiles)
      split_into_tasks(program_, options_.workers);
    else
      make_whole_tasks(program_);
    WEFT_TRY_STATUS(place_buffers());
    for (std::int64_t over = over_limit(); over > 0 && spill_more(program_, over); over = over_limit()) {
      if (options_.accelerated) fetch_spilled(program_);
      WEFT_TRY_STATUS(place_buffers());
    }
    find_waits(program_.tasks, program_.buffers);
    return std::move(program_);
  }

 private:
  void make_buffers() {
    for (std::size_t v = 0; v < graph_.value_count(); ++v) {
      Buffer buffer;
      buffer.value = ValueId(v);
      buffer.bytes = graph_.type(ValueId(v)).bytes();
      const NodeView node = graph_.view(graph_.value(ValueId(v)).producer);
      if (&node.op() == &ops::input())
        buffer.role = BufferRole::input;
      else if (&node.op() == &ops::parameter())
        buffer.role = BufferRole::parameter;
      else if (&node.op() == &ops::state())
        buffer.role = BufferRole::state;
      if (is_persistent(buffer.role)) buffer.name = node.word(0);
      program_.buffers.push_back(std::move(buffer));
    }
    // Copies made while grouping.
    program_.buffers.resize(grouping_.buffer_count);
    for (const Group& group : grouping_.groups) {
      for (const Place& place : group.results)
        if (group.kind == GroupKind::copy || options_.accelerated ||
            place.buffer.value >= graph_.value_count())
          size_buffer(place);
      if (group.kind != GroupKind::exchange || group.operands.size() < 2) continue;
      for (const std::vector<Place>* bucket : {&group.operands, &group.results})
        for (const Place& place : *bucket) size_buffer(place);
    }
  }

  // Several copies may fill one buffer, and several values the buffer of a bucket.
  void size_buffer(const Place& place) {
    std::int64_t& bytes = program_.buffers[place.buffer.value].bytes;
    bytes = std::max(bytes, extent(place).end);
  }

  BufferId new_buffer(std::int64_t bytes, BufferRole role = BufferRole::temporary) {
    Buffer buffer;
    buffer.role = role;
    buffer.bytes = bytes;
    program_.buffers.push_back(std::move(buffer));
    return BufferId(program_.buffers.size() - 1);
  }

  // -- units --------------------------------------------------------------------------------------

  void make_units() {
    for (std::size_t g = 0; g < grouping_.groups.size(); ++g) {
      const Group& group = grouping_.groups[g];
      switch (group.kind) {
        case GroupKind::rows: make_rows(group, static_cast<std::uint32_t>(g)); break;
        case GroupKind::product: make_product(group); break;
        case GroupKind::call: make_call(group); break;
        case GroupKind::exchange: make_exchange(group); break;
        case GroupKind::copy: add_copy(group.operands[0], group.results[0]); break;
      }
    }
  }

  void add_copy(const Place& from, const Place& to) {
    Unit unit;
    unit.kernel = Copy{from, to};
    unit.reads = {from};
    unit.writes = {to};
    program_.units.push_back(std::move(unit));
  }

  // A place with the axes of another, in that order, repeated along axes that it lacks.
  static Place seen_as(const Place& place, const Place& like) {
    Place seen{place.buffer, place.offset, place.dtype, {}};
    for (const Axis& axis : like.axes) seen.axes.push_back({axis.index, axis.size, place.stride(axis.index)});
    return seen;
  }

  void make_product(const Group& group) {
    Unit unit;
    unit.nodes = group.nodes;
    const auto product = as_matrix_product(group.operands[0], group.operands[1], group.results[0],
                                           masked_.of_product(graph_.view(group.nodes[0])));
    WEFT_CHECK(product.has_value());
    unit.kernel = *product;
    unit.reads = group.operands;
    unit.writes = group.results;
    program_.units.push_back(std::move(unit));
  }

  void make_call(const Group& group) {
    Unit unit;
    unit.nodes = group.nodes;
    unit.kernel = OperatorCall{group.nodes[0], group.operands, group.results};
    unit.items = item_count(graph_.view(group.nodes[0]));
    unit.reads = group.operands;
    unit.writes = group.results;
    program_.units.push_back(std::move(unit));
  }

  void make_exchange(const Group& group) {
    const NodeView node = graph_.view(group.nodes[0]);
    const ops::LocalExchange what = ops::read_local_exchange(node);
    Unit unit;
    unit.nodes = group.nodes;
    unit.reads = group.operands;
    if (what.takes) unit.writes = group.results;
    unit.kernel = as_exchange(node, unit.reads, unit.writes);
    program_.units.push_back(std::move(unit));
  }

  void make_rows(const Group& group, std::uint32_t id) {
    const RowCodeInputs inputs{.graph = graph_,
                               .grouping = grouping_,
                               .masked = masked_,
                               .is_stored = [&](ValueId value) { return is_read_outside(value, id); },
                               .copied =
                                   [&](ValueId value, Place to) {
                                     to.buffer = new_buffer(to.elements() * plan::size_in_bytes(to.dtype));
                                     add_copy(seen_as(grouping_.places[value.value], to), to);
                                     return to;
                                   }};
    RowLoop loop = make_row_loop(group, inputs);
    Unit unit;
    unit.nodes = group.nodes;
    unit.items = loop.rows() * loop.blocks();
    // An accelerator splits rows itself and makes one final sum.
    WEFT_CHECK(!options_.accelerated || !options_.tiles, "tasks of rows have a sum each");
    const std::int64_t chunks = options_.accelerated ? 1 : row_loop_chunks(loop);
    std::vector<Unit> combines;
    for (Accumulator& accumulator : loop.accumulators) {
      // Sums of narrow types accumulate in f32; accelerators keep them in registers.
      const bool adds_there = options_.any_float || accumulator.result.dtype == plan::DType::f32;
      if (chunks == 1 && accumulator.divisor == 1 && adds_there) continue;
      accumulator.partials = new_buffer(chunks * accumulator.elements * 4);
      RowOperand& operand = loop.operands[accumulator.memory];
      operand.partial = true;
      operand.place.buffer = accumulator.partials;
      operand.place.offset = 0;  // the sum itself may be inside a bucket
      operand.place.dtype = plan::DType::f32;
      Unit combine;
      combine.kernel = Combine{accumulator.partials, accumulator.result, chunks,
                               accumulator.elements, accumulator.monoid, accumulator.divisor};
      combine.reads = {partials_place(accumulator, chunks)};
      combine.writes = {accumulator.result};
      combines.push_back(std::move(combine));
    }
    const std::vector<bool> writes = written_operands(loop);
    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
      if (loop.operands[i].partial) continue;
      (writes[i] ? unit.writes : unit.reads).push_back(loop.operands[i].place);
    }
    for (const Accumulator& accumulator : loop.accumulators)
      if (accumulator.partials.valid()) unit.writes.push_back(partials_place(accumulator, chunks));
    unit.kernel = std::move(loop);
    program_.units.push_back(std::move(unit));
    for (Unit& combine : combines) program_.units.push_back(std::move(combine));
  }

  // Units without nodes: a copy that prepares operands belongs to the turn of the next unit, a
  // combine to that of the previous one, and copies of next values to the last turn.
  void take_turns() {
    if (options_.turns.empty()) return;
    std::uint32_t turn = std::ranges::max(options_.turns);
    for (std::size_t u = program_.units.size(); u-- > 0;) {
      Unit& unit = program_.units[u];
      if (!unit.nodes.empty()) turn = options_.turns[unit.nodes.front().value];
      unit.turn = turn;
    }
    for (std::size_t u = 1; u < program_.units.size(); ++u)
      if (std::holds_alternative<Combine>(program_.units[u].kernel))
        program_.units[u].turn = program_.units[u - 1].turn;
  }

  // A unit waits for the flag that skips it, so its group must come after the flag's in any case.
  void leave_out() {
    const std::vector<ValueId> flags = skip_flags(graph_, readers_, needed_);
    for (Unit& unit : program_.units) {
      if (unit.nodes.empty() || unit.writes.empty()) continue;
      const ValueId flag = flags[unit.nodes.front().value];
      if (!flag.valid() ||
          std::ranges::any_of(unit.nodes, [&](NodeId node) { return flags[node.value] != flag; }))
        continue;
      const std::uint32_t maker = grouping_.group[flag.value],
                          own = grouping_.group[graph_.result(unit.nodes.front()).value];
      if (maker == kNoGroup || own == kNoGroup || !is_read_outside(flag, maker) ||
          grouping_.groups[maker].depth >= grouping_.groups[own].depth)
        continue;
      if (!options_.turns.empty() && options_.turns[graph_.value(flag).producer.value] > unit.turn) continue;
      unit.unless = grouping_.places[flag.value];
      unit.reads.push_back(*unit.unless);
    }
  }

  static Place partials_place(const Accumulator& accumulator, std::int64_t chunks) {
    Place place{accumulator.partials, 0, plan::DType::f32, {}};
    place.axes.push_back({Symbol(), chunks * accumulator.elements, 1});
    return place;
  }

  bool is_read_outside(ValueId value, std::uint32_t group) const {
    for (const NodeId reader : readers_.of(value)) {
      if (!needed_[reader.value]) continue;
      const NodeView node = graph_.view(reader);
      if (node.result_count() == 0) return true;
      // Views and parts of a concat must be in memory for any reader.
      if (is_placed_view(node.op()) || &node.op() == &ops::concat() ||
          grouping_.group[node.result(0).value] != group)
        return true;
    }
    return std::ranges::any_of(graph_.outputs(), [&](const plan::Output& o) { return o.value == value; });
  }

  // -- kept values, inputs and outputs ------------------------------------------------------------

  // Copies the next value of a source if its producer has not written it in place.
  void keep_next_values() {
    const std::vector<ValueId> next = next_values(graph_);
    for (std::size_t v = 0; v < next.size(); ++v) {
      if (!next[v].valid()) continue;
      const Place from = grouping_.places[next[v].value], to = grouping_.places[v];
      if (from.buffer != to.buffer || from.offset != to.offset) add_copy(from, to);
    }
  }

  void add_ports() {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      auto* ports = &node.op() == &ops::input()       ? &program_.inputs
                    : &node.op() == &ops::parameter() ? &program_.parameters
                    : &node.op() == &ops::state()     ? &program_.states
                                                      : nullptr;
      if (ports == nullptr) continue;
      ports->push_back({std::string(node.word(0)), node.result(0), grouping_.places[node.result(0).value]});
    }
    for (const plan::Output& output : graph_.outputs()) {
      if (output.updates.valid()) continue;
      const std::string name(graph_.text(output.name));
      Place place = grouping_.places[output.value.value];
      Buffer& buffer = program_.buffers[place.buffer.value];
      const bool own = is_plain(place) && place.offset == 0 && buffer.value == output.value &&
                       buffer.role == BufferRole::temporary;
      if (own) {
        buffer.role = BufferRole::result;
        buffer.name = name;
      } else {
        const Place from = place;
        place = plain_place(new_buffer(graph_.type(output.value).bytes(), BufferRole::result),
                            graph_.type(output.value));
        program_.buffers.back().name = name;
        add_copy(from, place);
      }
      program_.outputs.push_back({name, output.value, place});
    }
  }

  // -- memory -------------------------------------------------------------------------------------

  void drop_unused_buffers() {
    std::vector<bool> used(program_.buffers.size());
    for (std::size_t b = 0; b < used.size(); ++b)
      used[b] = is_persistent(program_.buffers[b].role) && !program_.buffers[b].name.empty();
    const auto mark = [&](BufferId& id) { used[id.value] = true; };
    for_each_buffer_id(program_, mark);
    std::vector<BufferId> renumbered(used.size());
    std::vector<Buffer> kept;
    for (std::size_t b = 0; b < used.size(); ++b) {
      if (!used[b]) continue;
      renumbered[b] = BufferId(kept.size());
      kept.push_back(std::move(program_.buffers[b]));
    }
    program_.buffers = std::move(kept);
    for_each_buffer_id(program_, [&](BufferId& id) { id = renumbered[id.value]; });
  }

  std::int64_t over_limit() {
    if (options_.resident_limit <= 0) return 0;
    // An accelerator accesses host memory in place; a page that is partly spilled counts as
    // resident.
    program_.spill_window = options_.accelerated ? kHostPages : spill_window(program_, options_.workers);
    return program_.resident_bytes() - options_.resident_limit;
  }

  // Spilled buffers come first, padded to whole pages.
  void place_persistent(bool spilled) {
    for (Buffer& buffer : program_.buffers) {
      if (!is_persistent(buffer.role) || buffer.spilled != spilled) continue;
      buffer.born = 0, buffer.dies = static_cast<std::uint32_t>(program_.units.size());
      buffer.offset = program_.persistent_bytes;
      program_.persistent_bytes += spilled ? whole_pages(buffer.bytes) : aligned(buffer.bytes);
    }
  }

  static std::int64_t whole_pages(std::int64_t bytes) {
    return (bytes + kSpillPage - 1) / kSpillPage * kSpillPage;
  }

  Status place_spilled_work() {
    std::vector<memory::Buffer> lives;
    std::vector<std::size_t> spilled;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (is_persistent(buffer.role) || !buffer.spilled) continue;
      spilled.push_back(b);
      lives.push_back({buffer.born, buffer.dies, buffer.bytes});
    }
    if (spilled.empty()) return {};
    const std::int64_t end = whole_pages(program_.persistent_bytes + program_.work_bytes);
    program_.work_bytes = end - program_.persistent_bytes;
    WEFT_TRY(packing, memory::pack(lives, {.alignment = kSpillPage, .effort = 0}));
    for (std::size_t i = 0; i < spilled.size(); ++i)
      program_.buffers[spilled[i]].offset = end + packing.offsets[i];
    program_.spilled_work_bytes = whole_pages(packing.peak);
    return {};
  }

  Status place_buffers() {
    std::vector<memory::Buffer> lives;
    std::vector<std::size_t> temporaries;
    program_.persistent_bytes = 0;
    place_persistent(true);
    program_.spilled_bytes = program_.persistent_bytes;
    place_persistent(false);
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (is_persistent(buffer.role) || buffer.spilled) continue;
      temporaries.push_back(b);
      lives.push_back({buffer.born, buffer.dies, buffer.bytes});
    }
    program_.work_lower_bound = memory::lower_bound(lives, kAlignment);
    if (!options_.pack) return place_unshared(temporaries);
    // Enough for small programs, where it pays; large ones pack well without a search.
    constexpr std::int64_t kEffort = 5'000;
    WEFT_TRY(packing, memory::pack(lives, {.alignment = kAlignment, .effort = kEffort}));
    for (std::size_t i = 0; i < temporaries.size(); ++i)
      program_.buffers[temporaries[i]].offset = program_.persistent_bytes + packing.offsets[i];
    program_.work_bytes = packing.peak;
    return place_spilled_work();
  }

  Status place_unshared(std::span<const std::size_t> temporaries) {
    constexpr std::int64_t kMost = std::int64_t{1} << 62;
    std::int64_t next = program_.persistent_bytes;
    for (const std::size_t b : temporaries) {
      Buffer& buffer = program_.buffers[b];
      if (next < 0 || buffer.bytes > kMost - next) return user_error("the plan's values exceed 2^62 bytes");
      buffer.offset = next;
      next += aligned(buffer.bytes);
    }
    program_.work_bytes = program_.work_lower_bound;
    return {};
  }

  const plan::Graph& graph_;
  const CompileOptions options_;
  const Readers readers_;
  const std::vector<bool> needed_;
  const MaskedRegions masked_;
  Grouping grouping_;
  Program program_;
};

}  // namespace

Result<Program> compile(std::shared_ptr<const plan::Graph> graph, const CompileOptions& options) {
  return Compiler(std::move(graph), options).run();
}

}  // namespace weft::program
