#include "weft/formats/msccl_rules.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace weft::formats {
namespace {

using namespace collective;

std::int32_t declared_chunks(const RankProgram& rank, Buffer buffer) {
  if (buffer == Buffer::input) return rank.input_chunks;
  return buffer == Buffer::output ? rank.output_chunks : rank.scratch_chunks;
}

// Checks one rank in one pass; `found_` is set at the first broken rule.
class RankRules {
 public:
  RankRules(const Program& program, std::int32_t rank)
      : program_(program), rank_(program.ranks[rank]), where_{rank, -1, -1} {}

  std::optional<BrokenRule> check() {
    buffers();
    for (std::size_t b = 0; b < rank_.blocks.size() && !found_; ++b) {
      where_.block = static_cast<std::int32_t>(b);
      where_.step = -1;
      block(rank_.blocks[b]);
    }
    if (!found_) connections();
    return std::move(found_);
  }

 private:
  void blame(std::string_view attribute, std::string text) {
    if (!found_) found_ = BrokenRule{where_, std::move(text), std::string(attribute)};
  }

  // A file may omit a buffer that it does not use; a declared buffer must have the collective's
  // size.
  void buffers() {
    if (program_.collective.kind == Kind::custom) return;
    const auto agree = [&](Buffer buffer, std::string_view attribute) {
      const std::int32_t has = declared_chunks(rank_, buffer);
      const std::int32_t wants = extent(program_.collective, buffer, where_.rank);
      if (has > 0 && has != wants)
        blame(attribute, fmt::format("{} of {} over {} ranks is {} by nchunksperloop, not {}", attribute,
                                     name(program_.collective.kind), program_.collective.ranks, wants, has));
    };
    agree(Buffer::input, "i_chunks");
    agree(Buffer::output, "o_chunks");
  }

  void peer(std::int32_t other, std::string_view attribute) {
    if (other == where_.rank)
      blame(attribute, fmt::format("its {} peer is its own gpu: {}", attribute, other));
    if (other < -1 || other >= program_.collective.ranks)
      blame(attribute, fmt::format("its {} peer is not one of the {} gpus: {}", attribute,
                                   program_.collective.ranks, other));
  }

  void block(const Threadblock& block) {
    peer(block.send_to, "send");
    peer(block.receive_from, "recv");
    if (block.channel < 0 || block.channel >= program_.channels)
      blame("chan", fmt::format("its channel is not one of the {} of nchannels: {}", program_.channels,
                                block.channel));
    for (std::size_t s = 0; s < block.steps.size() && !found_; ++s) {
      where_.step = static_cast<std::int32_t>(s);
      step(block, block.steps[s]);
    }
  }

  void step(const Threadblock& block, const Step& step) {
    if (step.count < 1) blame("cnt", fmt::format("cnt must be at least 1, found {}", step.count));
    if (sends(step.op) && block.send_to < 0) blame("type", "it sends, but its tb has no send peer");
    if (receives(step.op) && block.receive_from < 0)
      blame("type", "it receives, but its tb has no recv peer");
    if (reads_source(step.op)) slot(step.source, step.count, "srcoff");
    if (writes_target(step.op)) slot(step.target, step.count, "dstoff");
    wait(step);
  }

  void slot(Slot slot, std::int32_t count, std::string_view attribute) {
    if (declared(rank_, slot, count)) return;
    const std::int32_t size = declared_chunks(rank_, slot.buffer);
    blame(attribute, fmt::format("{} {} with cnt {} is outside the {} buffer of {} chunks", attribute,
                                 slot.index, count, name(slot.buffer), size));
  }

  void wait(const Step& step) {
    if (step.wait_block == -1) return;
    if (step.wait_block < 0 || step.wait_block >= static_cast<std::int32_t>(rank_.blocks.size()))
      return blame("depid", fmt::format("it waits for a tb that gpu {} does not have: depid {}", where_.rank,
                                        step.wait_block));
    const std::size_t steps = rank_.blocks[step.wait_block].steps.size();
    if (step.wait_step < 0 || step.wait_step >= static_cast<std::int32_t>(steps))
      blame("deps", fmt::format("it waits for a step that tb {} of {} steps does not have: deps {}",
                                step.wait_block, steps, step.wait_step));
  }

  void connections() {
    shared(sends, &Threadblock::send_to, "send");
    shared(receives, &Threadblock::receive_from, "recv");
  }

  // A threadblock that names a peer but never uses it does not count.
  void shared(bool (*uses)(Op), std::int32_t Threadblock::*peer, std::string_view attribute) {
    std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> ends;  // peer, channel, block
    for (std::size_t b = 0; b < rank_.blocks.size(); ++b) {
      const Threadblock& block = rank_.blocks[b];
      if (std::ranges::any_of(block.steps, [&](const Step& step) { return uses(step.op); }))
        ends.emplace_back(block.*peer, block.channel, static_cast<std::int32_t>(b));
    }
    std::ranges::sort(ends);
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const auto& [other, channel, first] = ends[i - 1];
      if (std::get<0>(ends[i]) != other || std::get<1>(ends[i]) != channel) continue;
      where_.block = std::get<2>(ends[i]);
      where_.step = -1;
      return blame(attribute, fmt::format("it shares its {} peer {} and channel {} with tb {}", attribute,
                                          other, channel, first));
    }
  }

  const Program& program_;
  const RankProgram& rank_;
  Where where_;
  std::optional<BrokenRule> found_;
};

}  // namespace

bool declared(const RankProgram& rank, Slot slot, std::int32_t count) {
  return slot.index >= 0 && std::int64_t{slot.index} + count <= declared_chunks(rank, slot.buffer);
}

std::optional<BrokenRule> broken_rule(const Program& program) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    if (auto found = RankRules(program, static_cast<std::int32_t>(rank)).check()) return found;
  return std::nullopt;
}

}  // namespace weft::formats
