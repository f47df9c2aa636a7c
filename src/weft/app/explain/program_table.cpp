#include "weft/app/explain/program_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using collective::Op;
using collective::Program;
using collective::Slot;
using collective::Step;
using collective::Threadblock;

std::string print_slot(Slot slot, std::int32_t count) {
  return count == 1
             ? fmt::format("{}[{}]", name(slot.buffer), slot.index)
             : fmt::format("{}[{}..{}]", name(slot.buffer), slot.index, std::int64_t{slot.index} + count - 1);
}

std::string print_peer(std::int32_t rank) { return rank < 0 ? std::string() : fmt::format("{}", rank); }

// Prints rank, block and channel only at their first step, so that changes stand out.
std::vector<std::string> row(std::size_t rank, std::size_t block, std::size_t position,
                             const Threadblock& in) {
  const Step& step = in.steps[position];
  const bool reads = reads_source(step.op), writes = writes_target(step.op);
  const bool begins = position == 0;
  return {begins && block == 0 ? fmt::format("{}", rank) : "",
          begins ? fmt::format("{}", block) : "",
          fmt::format("{}", position),
          std::string(name(step.op)),
          reads ? print_slot(step.source, step.count) : "",
          writes ? print_slot(step.target, step.count) : "",
          sends(step.op) ? print_peer(in.send_to) : "",
          receives(step.op) ? print_peer(in.receive_from) : "",
          begins ? fmt::format("{}", in.channel) : "",
          step.wait_block >= 0 ? fmt::format("{}.{}", step.wait_block, step.wait_step) : "",
          step.publishes ? "publish" : ""};
}

}  // namespace

std::string program_table(const Program& program, const ProgramTableOptions& options) {
  Table table({{"rank", Align::right},
               {"block", Align::right},
               {"step", Align::right},
               {"op"},
               {"source", Align::left, Fit::cut},
               {"target", Align::left, Fit::cut},
               {"to", Align::right},
               {"from", Align::right},
               {"channel", Align::right, Fit::whole, 1},
               {"after"},
               {""}});
  std::int64_t rows = 0;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    if (options.rank >= 0 && rank != static_cast<std::size_t>(options.rank)) continue;
    const auto& blocks = program.ranks[rank].blocks;
    for (std::size_t block = 0; block < blocks.size(); ++block)
      for (std::size_t step = 0; step < blocks[block].steps.size(); ++step)
        if (rows++ < options.most_rows) table.add(row(rank, block, step, blocks[block]));
  }
  std::string out = table.print(options.width);
  if (rows > options.most_rows)
    out += fmt::format("{} more steps\n", print_exact(rows - std::max<std::int64_t>(options.most_rows, 0)));
  return out;
}

std::string program_summary(const Program& program) {
  const collective::Count count = collective::count(program);
  std::int64_t most_sent = 0;
  for (const auto& rank : program.ranks) {
    std::int64_t sent = 0;
    for (const Threadblock& block : rank.blocks)
      for (const Step& step : block.steps)
        if (sends(step.op)) sent += step.count;
    most_sent = std::max(most_sent, sent);
  }
  const auto plural = [](std::int64_t n, std::string_view word) {
    return fmt::format("{} {}{}", print_exact(n), word, n == 1 ? "" : "s");
  };
  const std::int64_t chunks = collective::loop_chunks(program.collective);
  std::string out = fmt::format("{}\n", program.name.empty() ? "unnamed program" : program.name);
  out += fmt::format("  {}, {}, {}, {}, {}\n", name(program.collective.kind),
                     plural(static_cast<std::int64_t>(program.ranks.size()), "rank"), name(program.placement),
                     name(program.protocol), plural(program.channels, "channel"));
  out += fmt::format("  {}, at most {} per rank; {}, at most {} per block\n",
                     plural(count.blocks, "threadblock"), count.most_blocks, plural(count.steps, "step"),
                     count.most_steps);
  out += fmt::format("  {} of {}; the busiest rank sends {}", plural(count.messages, "message"),
                     plural(count.chunks_sent, "chunk"), plural(most_sent, "chunk"));
  if (chunks > 0)
    out += fmt::format(", {:.3g}x of the {} that a call has",
                       static_cast<double>(most_sent) / static_cast<double>(chunks), print_exact(chunks));
  return out + "\n";
}

}  // namespace weft::explain
