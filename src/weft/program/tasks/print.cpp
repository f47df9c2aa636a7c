// Prints programs as text, for users and tests.
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/program/tasks/program.h"

namespace weft::program {
namespace {

using Text = fmt::memory_buffer;

template <class... Args>
void add(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  const std::string more = fmt::format(format, std::forward<Args>(args)...);
  text.append(more);
}

std::string loops(std::span<const ProductLoop> loops, std::string_view word) {
  std::string text;
  for (const ProductLoop& loop : loops) text += fmt::format(" {} {}", word, loop.size);
  return text;
}

// "b12+64(b 384, s 1)": a place with its strides, in the order of its axes.
std::string steps(const Program& program, const Place& place) {
  std::string text = fmt::format("b{}", place.buffer.value);
  if (place.offset != 0) text += fmt::format("+{}", place.offset);
  if (is_plain(place)) return text;
  text += "(";
  for (std::size_t i = 0; i < place.axes.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ",
                        place.axes[i].index.valid() ? program.graph->text(place.axes[i].index) : "rank",
                        place.axes[i].stride);
  return text + ")";
}

void print_instruction(Text& text, const Program& program, const RowLoop& loop,
                       const RowInstruction& instruction) {
  const auto reg = [&](std::uint16_t r) { return fmt::format("{}{}", loop.is_run[r] ? 'v' : 's', r); };
  add(text, "    ");
  if (instruction.step == RowStep::store || instruction.step == RowStep::accumulate)
    add(text, "b{} = ", loop.operands[instruction.memory].place.buffer.value);
  else if (instruction.second != RowInstruction::kNone)
    add(text, "{}, {} = ", reg(instruction.result), reg(instruction.second));
  else
    add(text, "{} = ", reg(instruction.result));
  switch (instruction.step) {
    case RowStep::load: add(text, "{}", steps(program, loop.operands[instruction.memory].place)); break;
    case RowStep::number: add(text, "{}", instruction.number); break;
    case RowStep::position:
      add(text, "position along {}", program.graph->text(program.graph->view(instruction.node).symbol(0)));
      break;
    case RowStep::compute: add(text, "{}", instruction.op->name()); break;
    case RowStep::round: add(text, "round {}", plan::name(instruction.dtype)); break;
    case RowStep::store: break;
    case RowStep::reduce:
    case RowStep::accumulate:
      add(text, "{} {}", name(instruction.step), plan::name(instruction.monoid));
      break;
    default: add(text, "{}", name(instruction.step));
  }
  for (const std::uint16_t operand : instruction.operands)
    if (operand != RowInstruction::kNone)
      add(text, "{}{}", instruction.step == RowStep::store ? "" : " ", reg(operand));
  if (instruction.step == RowStep::reduce && instruction.number != 1) add(text, " / {}", instruction.number);
  add(text, "\n");
}

// "all-gather over gpu [3, 3, 2] using direct: b4 = b3"; a dash stands for an empty side. The
// stream is named if it is not that of the axis.
void print_exchange(Text& text, const Exchange& exchange, std::string_view stream) {
  const auto place = [](const Place& of) {
    if (!of.buffer.valid()) return std::string("-");
    return fmt::format("b{}{}", of.buffer.value, of.offset == 0 ? "" : fmt::format("+{}", of.offset));
  };
  add(text, "{}", name(exchange.kind));
  if (exchange.kind == Exchange::Kind::all_reduce || exchange.kind == Exchange::Kind::reduce_scatter)
    add(text, " {}", plan::name(exchange.monoid));
  add(text, " over {} [{}]", exchange.axis, fmt::join(exchange.counts, ", "));
  if (!exchange.takes.empty()) add(text, " taking [{}]", fmt::join(exchange.takes, ", "));
  if (exchange.kind == Exchange::Kind::broadcast_from) add(text, " from {}", exchange.shift);
  if (exchange.kind == Exchange::Kind::permute_ranks) add(text, " by {}", exchange.shift);
  if (exchange.kind == Exchange::Kind::send) add(text, " to {} tag {}", exchange.shift, exchange.tag);
  if (exchange.kind == Exchange::Kind::receive) add(text, " from {} tag {}", exchange.shift, exchange.tag);
  if (stream != exchange.axis) add(text, " on stream {}", stream);
  add(text, " using {}: {} = {}\n", print(exchange.algorithm), place(exchange.result),
      place(exchange.operand));
}

std::string left_out(const MatrixProduct& product) {
  if (!product.nothing) return "";
  const auto letter = [](Side side) { return side == Side::m ? 'm' : side == Side::n ? 'n' : 'k'; };
  const Band& band = *product.nothing;
  return fmt::format(" but {} > {}{:+}", letter(band.later), letter(band.earlier), band.offset);
}

void print_call(Text& text, const Program& program, const OperatorCall& call) {
  add(text, "call {}:", program.graph->node(call.node).op->name());
  for (const Place& place : call.results) add(text, " b{}", place.buffer.value);
  add(text, " =");
  for (const Place& place : call.operands) add(text, " b{}", place.buffer.value);
  add(text, "\n");
}

void print_kernel(Text& text, const Program& program, const Unit& unit) {
  if (const auto* product = std::get_if<MatrixProduct>(&unit.kernel)) {
    add(text, "product {} x {} x {}{}{}{}: b{} = b{}{} * b{}{}\n", product->m, product->n, product->k,
        loops(product->outer, "for"), loops(product->summed, "sum"), left_out(*product),
        product->c.buffer.value, product->a.buffer.value, product->a.transposed ? "'" : "",
        product->b.buffer.value, product->b.transposed ? "'" : "");
  } else if (const auto* loop = std::get_if<RowLoop>(&unit.kernel)) {
    add(text, "rows {} of {}", loop->rows(), loop->length);
    if (loop->block != loop->length) add(text, " by {}", loop->block);
    if (loop->end) add(text, ", up to the position of outer loop {}{:+}", loop->end->loop, loop->end->offset);
    add(text, "\n");
    for (const RowInstruction& instruction : loop->code) print_instruction(text, program, *loop, instruction);
  } else if (const auto* call = std::get_if<OperatorCall>(&unit.kernel)) {
    print_call(text, program, *call);
  } else if (const auto* updates = std::get_if<Updates>(&unit.kernel)) {
    add(text, "{} updates\n", updates->calls.size());
    for (const OperatorCall& update : updates->calls) {
      add(text, "      ");
      print_call(text, program, update);
    }
  } else if (const auto* exchange = std::get_if<Exchange>(&unit.kernel)) {
    print_exchange(text, *exchange, program.streams[unit.stream]);
  } else if (const auto* copy = std::get_if<Copy>(&unit.kernel)) {
    add(text, "copy {} = {}\n", steps(program, copy->to), steps(program, copy->from));
  } else if (const auto* combine = std::get_if<Combine>(&unit.kernel)) {
    add(text, "combine {} of {}: b{} = b{}", combine->chunks, combine->elements, combine->result.buffer.value,
        combine->partials.value);
    if (combine->divisor != 1) add(text, " / {}", combine->divisor);
    add(text, "\n");
  }
}

}  // namespace

std::string print(const ChosenAlgorithm& algorithm) {
  std::string text = algorithm.name.empty() ? "the communicator's choice" : algorithm.name;
  if (algorithm.protocol) text += fmt::format(" {}", collective::name(*algorithm.protocol));
  if (algorithm.priority != collective::Priority::normal)
    text += fmt::format(", {} priority", collective::name(algorithm.priority));
  return text;
}

std::string_view name(BufferRole role) {
  constexpr std::string_view kNames[] = {"input", "parameter", "state", "result", "temporary"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string describe(const Program& program, const Unit& unit) {
  if (std::holds_alternative<Copy>(unit.kernel)) return "copy";
  if (std::holds_alternative<Combine>(unit.kernel)) return "combine";
  if (const auto* exchange = std::get_if<Exchange>(&unit.kernel))
    return fmt::format("{} over {}", name(exchange->kind), exchange->axis);
  if (const auto* updates = std::get_if<Updates>(&unit.kernel))
    return fmt::format("{} of {} tensors", program.graph->node(updates->calls.front().node).op->name(),
                       updates->calls.size());
  std::string text;
  for (const plan::NodeId node : unit.nodes) {
    if (!text.empty()) text += ", ";
    text += program.graph->node(node).op->name();
  }
  return text;
}

std::string print(const Program& program) {
  Text text;
  const auto count = [](std::size_t number, std::string_view what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  add(text, "program {}: {}, {}\n", program.graph->name, count(program.units.size(), "unit"),
      count(program.tasks.size(), "task"));
  if (program.spilled_bytes + program.spilled_work_bytes > 0)
    add(text, "spilled: {} kept, {} packed; resident {}\n",
        print_bytes(static_cast<double>(program.spilled_bytes)),
        print_bytes(static_cast<double>(program.spilled_work_bytes)),
        print_bytes(static_cast<double>(program.resident_bytes())));
  add(text, "memory {}: {} kept, {} packed, at least {}\n", print_bytes(static_cast<double>(program.bytes())),
      print_bytes(static_cast<double>(program.persistent_bytes)),
      print_bytes(static_cast<double>(program.work_bytes)),
      print_bytes(static_cast<double>(program.work_lower_bound)));
  if (program.streams.size() > 1) add(text, "streams {}\n", fmt::join(program.streams, ", "));
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    add(text, "b{} {}{}{} {} at {}", b, name(buffer.role), buffer.name.empty() ? "" : " ", buffer.name,
        print_bytes(static_cast<double>(buffer.bytes)), buffer.offset);
    if (!is_persistent(buffer.role)) add(text, " units {}-{}", buffer.born, buffer.dies - 1);
    add(text, "\n");
  }
  std::size_t next = 0;
  for (std::size_t u = 0; u < program.units.size(); ++u) {
    const Unit& unit = program.units[u];
    add(text, "u{} ", u);
    print_kernel(text, program, unit);
    for (; next < program.tasks.size() && program.tasks[next].unit == u; ++next) {
      const Task& task = program.tasks[next];
      add(text, "  t{}", next);
      if (unit.items != task.end - task.begin) add(text, " {}-{}", task.begin, task.end - 1);
      if (!task.waits.empty()) add(text, " waits for");
      for (const std::uint32_t wait : task.waits) add(text, " t{}", wait);
      add(text, "\n");
    }
  }
  return fmt::to_string(text);
}

}  // namespace weft::program
