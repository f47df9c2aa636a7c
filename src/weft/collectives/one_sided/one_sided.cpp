#include "weft/collectives/one_sided/one_sided.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace weft::collective {
namespace {

struct VerbTraits {
  std::string_view name, word;
  Shape shape;
};

constexpr std::array<VerbTraits, kVerbs> kVerbTraits = {{
    {"nop", "nop", {}},
    {"barrier", "barrier", {}},
    {"signal", "signal", {}},
    {"relaxed_signal", "rlxsignal", {}},
    {"wait", "wait", {}},
    {"relaxed_wait", "rlxwait", {}},
    {"flush", "flush", {}},
    {"acquire", "sem_acquire", {}},
    {"release", "sem_release", {}},
    {"copy", "copy", {"l", "l"}},
    {"put", "put", {"ll*", "rr*", true}},
    {"put_signal", "pws", {"ll*", "rr*", true}},
    {"put_signal_flush", "pwsf", {"ll*", "rr*", true}},
    {"get", "get", {"rr*", "ll*", true}},
    {"reduce", "re", {"ll*", "l"}},
    {"reduce_send", "res", {"ll*", "lr*"}},
    {"read_reduce", "rre", {"lr*", "l"}},
    {"read_reduce_send", "rres", {"lr*", "lr*"}},
    {"put_packets", "ppkt", {"ll*", "qq*", true}},
    {"read_put_packets", "rppkt", {"p", "qq*"}},
    {"copy_packets", "cpkt", {"l", "p"}},
    {"unpack_packets", "upkt", {"p", "l"}},
    {"reduce_packets", "repkt", {"lp*", "l"}},
    {"reduce_send_packets", "respkt", {"lp*", "lq*"}},
    {"reduce_copy_packets", "recpkt", {"lp*", "lp"}},
    {"reduce_copy_send_packets", "recspkt", {"lp*", "lpq*"}},
    {"switch_reduce_store", "glres", {"s", "s"}},
    {"switch_store", "gstore", {"l", "s"}},
    {"switch_store_packets", "gstorepkt", {"p", "t"}},
    {"pipeline", "pipeline", {}},
}};

const VerbTraits& traits(Verb verb) { return kVerbTraits[static_cast<std::size_t>(verb)]; }

// Limits of the executor: src/core/include/execution_common.hpp of MSCCL++ 0.9.
constexpr std::size_t kMostOperations = 64;     // per threadblock, pipelines and their bodies included
constexpr std::size_t kMostBlockChannels = 16;  // per threadblock and path
constexpr std::size_t kMostRemoteBuffers = 16;  // per threadblock and path
constexpr std::size_t kMostStepChannels = 8;    // per operation
constexpr std::size_t kMostStepOperands = 10;   // per side of an operation
constexpr std::size_t kMostSemaphores = 16;     // per rank
constexpr std::int32_t kMostBarriers = 16;      // per rank

// The executor resources that a threadblock uses.
struct Room {
  std::size_t operations = 0, step_channels = 0, step_operands = 0;
  std::int32_t barriers = 0;
  std::set<std::pair<Path, std::int32_t>> channels;
  std::set<std::tuple<Path, std::int32_t, Buffer>> remote_buffers;

  void add(const std::vector<OneSidedStep>& steps) {
    operations += steps.size();
    for (const OneSidedStep& step : steps) {
      step_channels = std::max(step_channels, step.channels.size());
      step_operands = std::max({step_operands, step.sources.size(), step.targets.size()});
      barriers = std::max(barriers, step.barrier + 1);
      for (const std::int32_t channel : step.channels) channels.insert({step.path, channel});
      for (const auto* operands : {&step.sources, &step.targets})
        for (const Operand& operand : *operands) {
          if (operand.where == Operand::Where::remote)
            remote_buffers.insert({step.path, operand.peer, operand.buffer});
          if (operand.where == Operand::Where::switched) channels.insert({step.path, operand.peer});
        }
      add(step.body);
    }
  }

  std::size_t most_channels() const {
    std::array<std::size_t, 4> of_path = {};
    for (const auto& [path, channel] : channels) ++of_path[static_cast<std::size_t>(path)];
    return *std::ranges::max_element(of_path);
  }
  std::size_t most_remote_buffers() const {
    std::array<std::size_t, 4> of_path = {};
    for (const auto& [path, peer, buffer] : remote_buffers) ++of_path[static_cast<std::size_t>(path)];
    return *std::ranges::max_element(of_path);
  }
};

}  // namespace

std::string_view name(Verb verb) { return traits(verb).name; }
std::string_view word(Verb verb) { return traits(verb).word; }
Shape shape(Verb verb) { return traits(verb).shape; }

std::optional<Verb> find_verb(std::string_view word) {
  const auto at = std::ranges::find(kVerbTraits, word, &VerbTraits::word);
  if (at == kVerbTraits.end()) return std::nullopt;
  return static_cast<Verb>(at - kVerbTraits.begin());
}

bool sums(Verb verb) {
  const Shape operands = shape(verb);
  return verb == Verb::switch_reduce_store || (!operands.in_pairs && operands.sources.size() > 1);
}

char letter(std::string_view operands, std::size_t position) {
  if (operands.ends_with('*')) operands.remove_suffix(1);
  return operands[std::min(position, operands.size() - 1)];
}

std::string_view name(Path path) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "memory", "port", "switch"};
  return kNames[static_cast<std::size_t>(path)];
}

Status check_limits(const OneSided& plan) {
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const auto expect = [rank](std::size_t block, std::string_view what, std::size_t most,
                               std::size_t found) -> Status {
      if (found <= most) return {};
      return user_error(
          fmt::format("gpu {} tb {}: expected at most {} {}, found {}", rank, block, most, what, found),
          "MSCCL++ has no room for more; use fewer chunks or more channels");
    };
    const OneSidedRank& own = plan.ranks[rank];
    if (own.semaphores.size() > kMostSemaphores)
      return user_error(fmt::format("gpu {}: expected at most {} semaphores, found {}", rank, kMostSemaphores,
                                    own.semaphores.size()),
                        "let fewer threadblocks of a rank wait for each other");
    for (std::size_t block = 0; block < own.blocks.size(); ++block) {
      Room room;
      room.add(own.blocks[block]);
      WEFT_TRY_STATUS(expect(block, "operations", kMostOperations, room.operations));
      WEFT_TRY_STATUS(expect(block, "channels of one type", kMostBlockChannels, room.most_channels()));
      WEFT_TRY_STATUS(expect(block, "remote buffers", kMostRemoteBuffers, room.most_remote_buffers()));
      WEFT_TRY_STATUS(expect(block, "channels in an operation", kMostStepChannels, room.step_channels));
      WEFT_TRY_STATUS(expect(block, "operands in an operation", kMostStepOperands, room.step_operands));
      WEFT_TRY_STATUS(expect(block, "barriers", kMostBarriers, static_cast<std::size_t>(room.barriers)));
    }
  }
  return {};
}

}  // namespace weft::collective
