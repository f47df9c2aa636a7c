#include "weft/formats/msccl_target.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "weft/formats/msccl_keywords.h"

namespace weft::formats {
namespace {

using namespace collective;

constexpr std::array<std::string_view, 3> kTargetNames = {"msccl", "azure", "rccl"};

// Limits compiled into the runtimes: MSCCL_MAX_NUM_STEPS, MSCCL_MAX_NUM_THREAD_BLOCKS. A slot of LL
// or LL128 is the lines or elements per thread times the threads, where the 8 steps of a connection
// cancel out.
struct Limits {
  std::int32_t steps, blocks;
  std::int64_t ll_slot, ll128_slot;  // bytes of data
};
constexpr std::int64_t kLine = 8;  // bytes of data in a line of 16; the others are flags
constexpr std::array<Limits, 3> kLimits = {{
    {256, 216, 8 * 512 * kLine, 120 * 640 * 8 * 15 / 16},
    {64, 1024, 8 * 512 * kLine, 120 * 640 * 8 * 15 / 16},
    {64, 64, 8 * 256 * kLine, 28 * 256 * 8 * 7 / 8},
}};
constexpr std::int64_t kSimpleSlot =
    (std::int64_t{4} << 20) / 8 * 4;    // NCCL_BUFFSIZE / steps * steps per chunk
constexpr std::int32_t kChannels = 32;  // MAXCHANNELS of these runtimes
constexpr std::int32_t kPeersOfChannel = 32;
constexpr std::int32_t kMostCount = 71;
constexpr std::int32_t kMostWaitBlock = std::numeric_limits<std::int8_t>::max();
constexpr std::int32_t kOffset = std::numeric_limits<std::int16_t>::max();
constexpr std::int64_t kNodes = 4096;  // XML nodes that a rank stores: <algo>, its own <gpu>, tbs and steps
constexpr std::int64_t kChildren = 1024;

const Limits& limits(Target target) { return kLimits[static_cast<std::size_t>(target)]; }

// Collects the first finding of each kind.
class Findings {
 public:
  Findings(const Program& program, Target target) : program_(program), target_(target) {}

  std::vector<TargetFinding> find() {
    whole();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) rank(static_cast<std::int32_t>(r));
    if (const auto chain = broken_nop_chain(program_))
      add("nops", *chain, "a nop must be followed by a step that waits itself");
    return std::move(findings_);
  }

 private:
  void add(std::string_view kind, Where where, std::string text) {
    if (std::ranges::find(kinds_, kind) != kinds_.end()) return;
    kinds_.push_back(kind);
    findings_.push_back({where, std::move(text)});
  }

  void at_most(std::string_view kind, Where where, std::int64_t has, std::int64_t most,
               std::string_view what) {
    if (has > most) add(kind, where, fmt::format("{} {}, but {} allows {}", has, what, name(target_), most));
  }

  void whole() {
    const Where all;
    const bool azure = target_ != Target::msccl;
    if (word(program_.collective.kind, azure).empty())
      add("collective", all,
          fmt::format("{} does not support the collective {}", name(target_),
                      name(program_.collective.kind)));
    if (!program_.collective.counts.empty())
      add("counts", all, "blocks of different sizes are not supported");
    if (program_.placement == Placement::either && !azure)
      add("placement", all, "msccl takes a program either in place or out of place, not both");
    at_most("channels", all, program_.channels, kChannels, "channels");
  }

  void rank(std::int32_t r) {
    const RankProgram& rank = program_.ranks[r];
    const auto blocks = static_cast<std::int64_t>(rank.blocks.size());
    at_most("blocks", {r, -1, -1}, blocks, limits(target_).blocks, "tbs");
    at_most("children", {r, -1, -1}, blocks, kChildren, "elements in a gpu");
    std::map<std::int32_t, std::int32_t> senders, receivers;  // per channel
    std::int64_t nodes = 2 + blocks;
    for (std::size_t b = 0; b < rank.blocks.size(); ++b) {
      const Threadblock& block = rank.blocks[b];
      const Where where{r, static_cast<std::int32_t>(b), -1};
      nodes += static_cast<std::int64_t>(block.steps.size());
      at_most("steps", where, static_cast<std::int64_t>(block.steps.size()), limits(target_).steps, "steps");
      if (block.send_to >= 0)
        at_most("peers", where, ++senders[block.channel], kPeersOfChannel, "send peers of a channel");
      if (block.receive_from >= 0)
        at_most("peers", where, ++receivers[block.channel], kPeersOfChannel, "recv peers of a channel");
      for (std::size_t s = 0; s < block.steps.size(); ++s)
        step({where.rank, where.block, static_cast<std::int32_t>(s)}, block.steps[s]);
    }
    at_most("nodes", {r, -1, -1}, nodes, kNodes, "XML nodes");
  }

  void step(const Where& where, const Step& step) {
    at_most("depid", where, step.wait_block, kMostWaitBlock, "as depid");
    if (step.op == Op::nop) return;
    at_most("cnt", where, step.count, kMostCount, "chunks in a transfer");
    at_most("offset", where, std::max(step.source.index, step.target.index), kOffset, "as offset");
  }

  const Program& program_;
  Target target_;
  std::vector<std::string_view> kinds_;
  std::vector<TargetFinding> findings_;
};

}  // namespace

std::string_view name(Target target) { return kTargetNames[static_cast<std::size_t>(target)]; }

std::optional<Target> find_target(std::string_view name) {
  const auto at = std::ranges::find(kTargetNames, name);
  if (at == kTargetNames.end()) return std::nullopt;
  return static_cast<Target>(at - kTargetNames.begin());
}

std::string print(const TargetFinding& finding) {
  const std::string place = print(finding.where);
  return place.empty() ? finding.text : fmt::format("{}: {}", place, finding.text);
}

std::optional<Where> broken_nop_chain(const Program& program) {
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Threadblock>& blocks = program.ranks[r].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      bool waiting = false;  // a nop's wait must be attached to the next step
      for (std::size_t s = 0; s < blocks[b].steps.size(); ++s) {
        const Step& step = blocks[b].steps[s];
        if (step.op != Op::nop && waiting && step.wait_block < 0)
          return Where{static_cast<std::int32_t>(r), static_cast<std::int32_t>(b),
                       static_cast<std::int32_t>(s)};
        waiting = step.op == Op::nop && (waiting || step.wait_block >= 0);
      }
    }
  }
  return std::nullopt;
}

std::vector<TargetFinding> check_target(const Program& program, Target target) {
  return Findings(program, target).find();
}

std::vector<TargetFinding> check_target(const XmlProgram& file, Target target) {
  std::vector<TargetFinding> findings = check_target(file.program, target);
  const std::string_view known = word(file.program.collective.kind, target != Target::msccl);
  if (!known.empty() && !file.coll.empty() && file.coll != known && file.coll != "recv")
    findings.push_back(
        {{}, fmt::format("{} spells the collective {}, not {}", name(target), known, file.coll)});
  if (target != Target::msccl && !file.azure)
    findings.push_back(
        {{}, fmt::format("{} needs the attributes outofplace, minBytes and maxBytes", name(target))});
  if (target == Target::msccl && file.azure && file.program.max_bytes == 0)
    findings.push_back({{}, "msccl reads maxBytes=\"0\" as an empty size range"});
  return findings;
}

std::int32_t fifo_slots(Protocol protocol, Target) { return collective::fifo_slots(protocol); }

std::int64_t slot_bytes(Protocol protocol, Target target) {
  if (protocol == Protocol::simple) return kSimpleSlot;
  return protocol == Protocol::ll ? limits(target).ll_slot : limits(target).ll128_slot;
}

std::optional<std::int64_t> hang_size(const Program& program, std::int32_t slots, std::int32_t slots_small,
                                      Target target) {
  const std::int32_t has = fifo_slots(program.protocol, target);
  if (slots_small > has) return 0;
  if (slots <= has) return std::nullopt;
  // Two chunks share a slot if they fit into it together.
  const std::int64_t smallest_chunk = slot_bytes(program.protocol, target) / 2 + 1;
  return smallest_chunk * chunks_per_loop(program.collective);
}

}  // namespace weft::formats
