#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/collectives/chunks/collective_text.h"
#include "weft/collectives/chunks/lexicon.h"
#include "weft/collectives/chunks/program_text.h"

namespace weft::collective {
namespace {

void print_step(std::string& out, std::size_t number, const Step& step) {
  out += fmt::format("    {}  {}", number, name(step.op));
  const bool source = reads_source(step.op), target = writes_target(step.op);
  if (source || target) {
    out += ' ';
    out += print_slots(source ? step.source : step.target, step.count);
    if (source && target && step.source != step.target) {
      out += " -> ";
      out += print_slots(step.target, step.count);
    }
  } else if (step.count != 1) {
    out += fmt::format(" count {}", step.count);
  }
  if (step.wait_block != -1 || step.wait_step != -1)
    out += fmt::format(" after {}.{}", step.wait_block, step.wait_step);
  if (step.publishes) out += " publish";
  out += '\n';
}

void print_block(std::string& out, std::size_t number, const Threadblock& block) {
  out += fmt::format("  block {}: ", number);
  if (block.send_to != -1)
    out += fmt::format("send to {}{}{}, ", block.send_to, block.links.empty() ? "" : " over ",
                       fmt::join(block.links, " "));
  if (block.receive_from != -1) out += fmt::format("receive from {}, ", block.receive_from);
  out += fmt::format("channel {}\n", block.channel);
  for (std::size_t i = 0; i < block.steps.size(); ++i) print_step(out, i, block.steps[i]);
}

}  // namespace

std::string print(const Program& program) {
  std::string out = fmt::format("program {}\n", print_name(program.name));
  out += print_collective(program.collective, program.placement);
  out += fmt::format("protocol {}, {}", name(program.protocol), print_amount(program.channels, "channel"));
  if (program.min_bytes != 0) out += fmt::format(", at least {}", print_amount(program.min_bytes, "byte"));
  if (program.max_bytes != 0) out += fmt::format(", at most {}", print_amount(program.max_bytes, "byte"));
  out += '\n';
  for (std::size_t i = 0; i < program.ranks.size(); ++i) {
    const RankProgram& rank = program.ranks[i];
    out += fmt::format("\nrank {}: input {}, output {}, scratch {}\n", i, rank.input_chunks,
                       rank.output_chunks, rank.scratch_chunks);
    for (std::size_t k = 0; k < rank.blocks.size(); ++k) print_block(out, k, rank.blocks[k]);
  }
  return out;
}

}  // namespace weft::collective
