#include "weft/program/tasks/cut.h"

#include <algorithm>
#include <numeric>

#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/items.h"
#include "weft/program/tasks/loss_tiles.h"

namespace weft::program {
namespace {

constexpr std::int64_t kMostChunks = 16;

struct Interval {
  std::int64_t low = 0, high = 0;  // of elements, inclusive
};

Extent extent_of(BufferId buffer, plan::DType dtype, Interval elements) {
  const std::int64_t width = plan::size_in_bytes(dtype);
  return {buffer, elements.low * width, (elements.high + 1) * width};
}

// -- row loops ------------------------------------------------------------------------------------

// The offset of a row of an operand.
std::int64_t row_offset(const RowLoop& loop, const RowOperand& operand, std::int64_t row) {
  std::int64_t offset = operand.place.offset;
  for (std::size_t i = loop.outer.size(); i-- > 0;) {
    offset += row % loop.outer[i] * operand.outer[i];
    row /= loop.outer[i];
  }
  return offset;
}

// Whether rows begin at non-decreasing offsets.
bool is_monotone(const RowLoop& loop, const RowOperand& operand) {
  std::int64_t inner = 0;  // extent of the faster loops
  for (std::size_t i = loop.outer.size(); i-- > 0;) {
    if (loop.outer[i] == 1) continue;
    if (operand.outer[i] < inner) return false;
    inner += (loop.outer[i] - 1) * operand.outer[i];
  }
  return true;
}

Extent rows_extent(const RowLoop& loop, const RowOperand& operand, std::int64_t begin, std::int64_t end) {
  if (!is_monotone(loop, operand)) return extent(operand.place);
  const std::int64_t blocks = loop.blocks();
  Interval interval{row_offset(loop, operand, begin / blocks), 0};
  interval.high = row_offset(loop, operand, (end - 1) / blocks) + (loop.length - 1) * operand.along;
  if (loop.rows() == 1) {
    interval.high = interval.low + (std::min(end * loop.block, loop.length) - 1) * operand.along;
    interval.low += begin * loop.block * operand.along;
  }
  return extent_of(operand.place.buffer, operand.place.dtype, interval);
}

void cut_rows(Program& program, std::uint32_t u, const RowLoop& loop) {
  const Unit& unit = program.units[u];
  const std::int64_t chunks = row_loop_chunks(loop);
  const std::vector<bool> writes = written_operands(loop);
  // Whole rows if there are enough, so that neighbouring tasks do not share one.
  const std::int64_t grain = loop.rows() >= chunks ? loop.blocks() : 1;
  for (std::int64_t c = 0; c < chunks; ++c) {
    Task task{.unit = u, .chunk = static_cast<std::uint32_t>(c)};
    task.begin = unit.items / grain * c / chunks * grain;
    task.end = unit.items / grain * (c + 1) / chunks * grain;
    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
      const RowOperand& operand = loop.operands[i];
      if (operand.partial) continue;
      (writes[i] ? task.writes : task.reads).push_back(rows_extent(loop, operand, task.begin, task.end));
    }
    for (const Accumulator& accumulator : loop.accumulators) {
      if (!accumulator.partials.valid()) continue;
      const std::int64_t bytes = accumulator.elements * plan::size_in_bytes(plan::DType::f32);
      task.writes.push_back({accumulator.partials, c * bytes, (c + 1) * bytes});
    }
    program.tasks.push_back(std::move(task));
  }
}

// -- matrix products ------------------------------------------------------------------------------

using Step = std::int64_t ProductLoop::*;

Interval reach(std::span<const ProductLoop> loops, Step step) {
  Interval interval;
  for (const ProductLoop& loop : loops) interval.high += (loop.size - 1) * loop.*step;
  return interval;
}

// The elements reached by points [begin, end) of the outer loops.
Interval reach_of_points(const MatrixProduct& product, Step step, std::int64_t begin, std::int64_t end) {
  Interval interval{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::int64_t point = begin; point < end; ++point) {
    std::int64_t rest = point, offset = 0;
    for (std::size_t i = product.outer.size(); i-- > 0;) {
      offset += rest % product.outer[i].size * (product.outer[i].*step);
      rest /= product.outer[i].size;
    }
    interval.low = std::min(interval.low, offset);
    interval.high = std::max(interval.high, offset);
  }
  return interval;
}

// The elements of rows [r0, r1) and columns [c0, c1) of a stored matrix.
Interval reach_of_matrix(const Operand& operand, std::int64_t r0, std::int64_t r1, std::int64_t c0,
                         std::int64_t c1) {
  if (operand.transposed) {
    std::swap(r0, c0);
    std::swap(r1, c1);
  }
  return {r0 * operand.row_stride + c0, (r1 - 1) * operand.row_stride + c1 - 1};
}

void cut_product(Program& program, std::uint32_t u, const MatrixProduct& product, int workers) {
  Unit& unit = program.units[u];
  constexpr double kWorthwhile = 4e6;  // flops per task: some 100 us
  std::int64_t points = 1;
  for (const ProductLoop& loop : product.outer) points *= loop.size;
  std::int64_t parts = std::int64_t{1};
  if (workers > 1)
    parts = std::clamp(static_cast<std::int64_t>(product.flops() / kWorthwhile), std::int64_t{1},
                       std::int64_t{2} * workers);
  if (parts == 1)
    unit.cut = Cut::nothing, unit.items = 1;
  else if (points >= parts)
    unit.cut = Cut::outer, unit.items = points;
  else if (product.m >= product.n)
    unit.cut = Cut::rows, unit.items = product.m;
  else
    unit.cut = Cut::columns, unit.items = product.n;
  // Whole tiles of the inner kernel.
  const std::int64_t grain = unit.cut == Cut::rows || unit.cut == Cut::columns ? 16 : 1;
  const std::int64_t grains = (unit.items + grain - 1) / grain;
  parts = std::min(parts, grains);
  for (std::int64_t p = 0; p < parts; ++p) {
    Task task{.unit = u, .chunk = static_cast<std::uint32_t>(p)};
    task.begin = grains * p / parts * grain;
    task.end = std::min(grains * (p + 1) / parts * grain, unit.items);
    std::int64_t m0 = 0, m1 = product.m, n0 = 0, n1 = product.n;
    if (unit.cut == Cut::rows) m0 = task.begin, m1 = task.end;
    if (unit.cut == Cut::columns) n0 = task.begin, n1 = task.end;
    const auto add = [&](std::vector<Extent>& extents, const Place& place, const Operand& operand, Step step,
                         Interval matrix) {
      const Interval outer = unit.cut == Cut::outer ? reach_of_points(product, step, task.begin, task.end)
                                                    : reach(product.outer, step);
      const Interval summed = reach(product.summed, step);
      extents.push_back(extent_of(operand.buffer, place.dtype,
                                  {operand.offset + outer.low + summed.low + matrix.low,
                                   operand.offset + outer.high + summed.high + matrix.high}));
    };
    add(task.reads, unit.reads[0], product.a, &ProductLoop::a,
        reach_of_matrix(product.a, m0, m1, 0, product.k));
    add(task.reads, unit.reads[1], product.b, &ProductLoop::b,
        reach_of_matrix(product.b, 0, product.k, n0, n1));
    add(task.writes, unit.writes[0], product.c, &ProductLoop::c, reach_of_matrix(product.c, m0, m1, n0, n1));
    program.tasks.push_back(std::move(task));
  }
}

// -- the rest -------------------------------------------------------------------------------------

Extent share_of(const Place& place, std::int64_t begin, std::int64_t end, std::int64_t items) {
  const Extent whole = extent(place);
  const std::int64_t bytes = (whole.end - whole.begin) / items;
  return {place.buffer, whole.begin + begin * bytes, whole.begin + end * bytes};
}

void cut_call(Program& program, std::uint32_t u, const OperatorCall& call) {
  const plan::NodeView node = program.graph->view(call.node);
  const Unit& unit = program.units[u];
  constexpr double kWorthwhile = 1e5;  // flops or bytes per task
  const plan::Work work = node.op().work(node);
  const std::int64_t chunks = std::clamp(static_cast<std::int64_t>((work.flops + work.bytes()) / kWorthwhile),
                                         std::int64_t{1}, std::min(kMostChunks, unit.items));
  for (std::int64_t c = 0; c < chunks; ++c) {
    Task task{.unit = u, .chunk = static_cast<std::uint32_t>(c)};
    task.begin = unit.items * c / chunks;
    task.end = unit.items * (c + 1) / chunks;
    for (std::size_t i = 0; i < call.operands.size(); ++i)
      task.reads.push_back(chunks > 1 && operand_has_items(node, i)
                               ? share_of(call.operands[i], task.begin, task.end, unit.items)
                               : extent(call.operands[i]));
    for (const Place& place : call.results)
      task.writes.push_back(chunks > 1 && results_have_items(node)
                                ? share_of(place, task.begin, task.end, unit.items)
                                : extent(place));
    program.tasks.push_back(std::move(task));
  }
}

// Adds what a part of a pass reads and writes; the scratch buffer is the last result.
void add_extents(const OperatorCall& call, const LossTiles& tiles, const LossTiles::Item& item, Task& task) {
  using enum LossTiles::Pass;
  constexpr std::size_t kHidden = 0, kWords = 1, kLabel = 2, kBias = 3;
  constexpr std::size_t kLoss = 0, kHiddenSlopes = 1, kWordSlopes = 2, kBiasSlopes = 3;
  const bool biased = call.operands.size() > kBias;
  const auto part_of = [](const Place& place, std::int64_t step, Range range) {
    return extent_of(place.buffer, place.dtype,
                     {place.offset + range.begin * step, place.offset + range.end * step - 1});
  };
  const Place& room = call.results.back();
  const std::int64_t held = item.rows.end - item.rows.begin;  // rows of the tile
  const auto add_stretches = [&](std::vector<Extent>& extents, Range rows) {
    for (std::int64_t part = 0; part < tiles.parts; ++part) {
      const Range classes = tiles.stretch(part);
      const std::int64_t n = classes.end - classes.begin, first = tiles.tile * classes.begin;
      extents.push_back(part_of(room, 1, {first + rows.begin * n, first + rows.end * n}));
    }
  };
  const auto add_stretch = [&](std::vector<Extent>& extents, Range classes) {
    const std::int64_t first = tiles.tile * classes.begin;
    extents.push_back(part_of(room, 1, {first, first + held * (classes.end - classes.begin)}));
  };
  const Range in_tile = {item.share.begin - item.rows.begin, item.share.end - item.rows.begin};
  const Extent of_tile = part_of(call.operands[kHidden], tiles.width, item.rows);
  const Range losses = {tiles.loss_at(item.share.begin), tiles.loss_at(item.share.end)};
  switch (item.pass) {
    case logits:
      task.reads = {of_tile, tiles.by_class ? part_of(call.operands[kWords], tiles.width, item.share)
                                            : extent(call.operands[kWords])};
      if (biased) task.reads.push_back(part_of(call.operands[kBias], 1, item.share));
      add_stretch(task.writes, item.share);
      break;
    case slopes:
      task.reads = {part_of(call.operands[kLabel], 1, item.share)};
      add_stretches(task.reads, in_tile);
      add_stretches(task.writes, in_tile);
      task.writes.push_back(part_of(room, 1, losses));
      break;
    case hidden:
      task.reads = {extent(call.operands[kWords])};
      add_stretches(task.reads, in_tile);
      task.writes = {part_of(call.results[kHiddenSlopes], tiles.width, item.share)};
      break;
    case words:
      task.reads = {of_tile};
      if (tiles.by_class)
        add_stretch(task.reads, item.share);
      else
        add_stretches(task.reads, {0, held});
      task.writes = {
          part_of(call.results[kWordSlopes], tiles.by_class ? tiles.width : tiles.classes, item.share)};
      if (biased && tiles.by_class)
        task.writes.push_back(part_of(call.results[kBiasSlopes], 1, item.share));
      else if (biased && item.share.begin == 0)
        task.writes.push_back(extent(call.results[kBiasSlopes]));
      break;
    case sum:
      if (tiles.rows > 0) task.reads = {part_of(room, 1, {tiles.loss_at(0), tiles.loss_at(tiles.rows)})};
      task.writes = {extent(call.results[kLoss])};
      if (tiles.rows == 0 && tiles.passes > 2) {
        task.writes.push_back(extent(call.results[kWordSlopes]));
        if (biased) task.writes.push_back(extent(call.results[kBiasSlopes]));
      }
      break;
  }
}

// Chunks are numbered separately in each pass, so that the next pass waits for it (waits.cpp).
void cut_loss(Program& program, std::uint32_t u, const OperatorCall& call, int workers) {
  Unit& unit = program.units[u];
  const LossTiles tiles = loss_tiles(program.graph->view(call.node), workers);
  unit.items = tiles.items();
  for (std::int64_t i = 0; i < unit.items; ++i) {
    const LossTiles::Item item = tiles.item(i);
    if (item.share.empty() && item.pass != LossTiles::Pass::sum) continue;
    Task task{.unit = u, .begin = i, .end = i + 1, .chunk = static_cast<std::uint32_t>(i % tiles.parts)};
    add_extents(call, tiles, item, task);
    program.tasks.push_back(std::move(task));
  }
}

void cut_whole(Program& program, std::uint32_t u) {
  Unit& unit = program.units[u];
  unit.cut = Cut::nothing;
  unit.items = 1;
  Task task{.unit = u, .end = 1};
  for (const Place& place : unit.reads) task.reads.push_back(extent(place));
  for (const Place& place : unit.writes) task.writes.push_back(extent(place));
  program.tasks.push_back(std::move(task));
}

}  // namespace

std::vector<bool> written_operands(const RowLoop& loop) {
  std::vector<bool> writes(loop.operands.size());
  for (const RowInstruction& instruction : loop.code)
    if (instruction.step == RowStep::store || instruction.step == RowStep::accumulate)
      writes[instruction.memory] = true;
  return writes;
}

std::int64_t row_loop_chunks(const RowLoop& loop) {
  constexpr std::int64_t kWorthwhile = 1 << 17;  // operations per task: some 50 us
  const std::int64_t elements = loop.rows() * loop.length;
  std::int64_t operations = elements * static_cast<std::int64_t>(loop.code.size());
  std::int64_t most = std::min(kMostChunks, loop.rows() * loop.blocks());
  // Copies of accumulators must be small compared with the summed data.
  for (const Accumulator& accumulator : loop.accumulators)
    most = std::min(most, elements / (4 * accumulator.elements));
  return std::clamp<std::int64_t>(operations / kWorthwhile, 1, std::max<std::int64_t>(most, 1));
}

void split_into_tasks(Program& program, int workers) {
  for (std::uint32_t u = 0; u < program.units.size(); ++u) {
    Unit& unit = program.units[u];
    const std::size_t first = program.tasks.size();
    if (const auto* loop = std::get_if<RowLoop>(&unit.kernel)) {
      unit.cut = Cut::rows;
      cut_rows(program, u, *loop);
    } else if (const auto* product = std::get_if<MatrixProduct>(&unit.kernel)) {
      cut_product(program, u, *product, workers);
    } else if (const auto* call = std::get_if<OperatorCall>(&unit.kernel)) {
      unit.cut = unit.items > 1 ? Cut::items : Cut::nothing;
      const plan::NodeView node = program.graph->view(call->node);
      if (&node.op() == &ops::linear_cross_entropy() && why_reference_op(node).empty())
        cut_loss(program, u, *call, workers);
      else
        cut_call(program, u, *call);
    } else {
      cut_whole(program, u);
    }
    if (!unit.unless) continue;
    for (Task& task : std::span(program.tasks).subspan(first)) task.reads.push_back(extent(*unit.unless));
  }
}

void make_whole_tasks(Program& program) {
  for (std::uint32_t u = 0; u < program.units.size(); ++u) cut_whole(program, u);
}

}  // namespace weft::program
