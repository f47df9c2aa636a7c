#include "weft/collectives/chunks/program.h"

#include <algorithm>

namespace weft::collective {
namespace {

struct OpTraits {
  std::string_view name;
  bool sends, receives, reads_source, reads_target, writes_target;
};

constexpr std::array<OpTraits, kOps> kOpTraits = {{
    {"nop", false, false, false, false, false},
    {"copy", false, false, true, false, true},
    {"reduce", false, false, true, true, true},
    {"send", true, false, true, false, false},
    {"receive", false, true, false, false, true},
    {"receive_copy_send", true, true, false, false, true},
    {"receive_reduce_copy", false, true, true, false, true},
    {"receive_reduce_send", true, true, true, false, false},
    {"receive_reduce_copy_send", true, true, true, false, true},
}};

const OpTraits& traits(Op op) { return kOpTraits[static_cast<std::size_t>(op)]; }

}  // namespace

std::string_view name(Op op) { return traits(op).name; }
bool sends(Op op) { return traits(op).sends; }
bool receives(Op op) { return traits(op).receives; }
bool reads_source(Op op) { return traits(op).reads_source; }
bool reads_target(Op op) { return traits(op).reads_target; }
bool writes_target(Op op) { return traits(op).writes_target; }

std::string_view name(Protocol protocol) {
  constexpr std::array<std::string_view, 3> kNames = {"Simple", "LL", "LL128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

std::string_view name(Placement placement) {
  constexpr std::array<std::string_view, 3> kNames = {"out of place", "in place", "either"};
  return kNames[static_cast<std::size_t>(placement)];
}

Slot resolve(const Collective& collective, Placement placement, std::int32_t rank, Slot slot) {
  if (placement != Placement::in_place || slot.buffer == Buffer::scratch) return slot;
  const Buffer shared = shared_buffer(collective.kind);
  if (slot.buffer == shared) return slot;
  if (has_one_block(collective.kind)) slot.index += first_of_block(collective, rank);
  slot.buffer = shared;
  return slot;
}

std::int32_t memory_chunks(const Program& program, Placement placement, std::int32_t rank, Buffer buffer) {
  const RankProgram& declared = program.ranks[rank];
  if (buffer == Buffer::scratch) return declared.scratch_chunks;
  const auto own = [&](Buffer which) {
    return std::max(which == Buffer::input ? declared.input_chunks : declared.output_chunks,
                    extent(program.collective, which, rank));
  };
  if (placement != Placement::in_place) return own(buffer);
  if (buffer != shared_buffer(program.collective.kind)) return 0;
  return has_one_block(program.collective.kind) ? own(buffer)
                                                : std::max(own(Buffer::input), own(Buffer::output));
}

Count count(const Program& program) {
  Count total;
  for (const RankProgram& rank : program.ranks) {
    total.blocks += static_cast<std::int64_t>(rank.blocks.size());
    total.most_blocks = std::max(total.most_blocks, static_cast<std::int32_t>(rank.blocks.size()));
    for (const Threadblock& block : rank.blocks) {
      total.steps += static_cast<std::int64_t>(block.steps.size());
      total.most_steps = std::max(total.most_steps, static_cast<std::int32_t>(block.steps.size()));
      for (const Step& step : block.steps) {
        if (!sends(step.op)) continue;
        ++total.messages;
        total.chunks_sent += step.count;
      }
    }
  }
  return total;
}

}  // namespace weft::collective
