#include "weft/collectives/compile/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace weft::collective {
namespace {

Collective replicated(const Collective& collective, std::int32_t instances) {
  Collective result = collective;
  result.chunks *= instances;
  for (std::int32_t& count : result.counts) count *= instances;
  result.wants.clear();
  for (const CustomWant& want : collective.wants)
    for (std::int32_t i = 0; i < instances; ++i) {
      CustomWant& part = result.wants.emplace_back(want);
      part.index = want.index * instances + i;
      for (Contribution& contribution : part.contributions)
        contribution.index = contribution.index * instances + i;
    }
  return result;
}

Threadblock replicated(const Threadblock& block, const std::vector<std::vector<std::int32_t>>& last,
                       std::int32_t instances, std::int32_t instance) {
  Threadblock result{block.send_to, block.receive_from, block.channel * instances + instance, {}};
  for (const Step& step : block.steps) {
    // The first of the new steps waits and the last one publishes.
    for (std::int32_t i = 0; i < step.count; ++i) {
      Step& part = result.steps.emplace_back(step);
      part.count = 1;
      part.source.index = (step.source.index + i) * instances + instance;
      part.target.index = (step.target.index + i) * instances + instance;
      part.publishes = step.publishes && i + 1 == step.count;
      part.wait_block = part.wait_step = -1;
      if (step.wait_block < 0 || i > 0) continue;
      part.wait_block = step.wait_block * instances + instance;
      part.wait_step = last[step.wait_block][step.wait_step];
    }
  }
  return result;
}

// Per block and step: the index of the last of its new steps.
std::vector<std::vector<std::int32_t>> last_parts(const RankProgram& rank) {
  std::vector<std::vector<std::int32_t>> result;
  for (const Threadblock& block : rank.blocks) {
    std::vector<std::int32_t>& last = result.emplace_back();
    std::int32_t steps = 0;
    for (const Step& step : block.steps) last.push_back((steps += step.count) - 1);
  }
  return result;
}

// The largest number that the instances multiply.
std::int64_t largest(const Program& program) {
  std::int64_t most = program.channels;
  for (std::int32_t rank = 0; rank < program.collective.ranks; ++rank) {
    const RankProgram& declared = program.ranks[rank];
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
      most = std::max<std::int64_t>(most, memory_chunks(program, program.placement, rank, buffer));
    most = std::max<std::int64_t>(most, static_cast<std::int64_t>(declared.blocks.size()));
  }
  return most;
}

}  // namespace

Result<Program> replicate(const Program& program, std::int32_t instances) {
  if (instances < 1) return user_error(fmt::format("expected at least 1 instance, found {}", instances));
  if (instances == 1) return program;
  if (program.collective.kind == Kind::barrier)
    return user_error(fmt::format("a barrier has one chunk that cannot be divided: {} instances", instances));
  if (largest(program) > std::numeric_limits<std::int32_t>::max() / instances)
    return user_error(fmt::format("too many chunks: {} instances", instances), "use fewer instances");
  Program result = program;
  result.collective = replicated(program.collective, instances);
  result.channels = program.channels * instances;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& before = program.ranks[rank];
    RankProgram& after = result.ranks[rank];
    after = {before.input_chunks * instances,
             before.output_chunks * instances,
             before.scratch_chunks * instances,
             {}};
    const std::vector<std::vector<std::int32_t>> last = last_parts(before);
    for (const Threadblock& block : before.blocks)
      for (std::int32_t i = 0; i < instances; ++i)
        after.blocks.push_back(replicated(block, last, instances, i));
  }
  return result;
}

}  // namespace weft::collective
