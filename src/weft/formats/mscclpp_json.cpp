#include "weft/formats/mscclpp_json.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/formats/json_node.h"
#include "weft/formats/mscclpp_json_parts.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using namespace collective;
using Nodes = std::vector<JsonNode>;

constexpr std::int32_t kMostPlanNumber = std::numeric_limits<std::int32_t>::max();
constexpr std::array<Path, 3> kPaths = {Path::memory, Path::port, Path::switched};

Result<Path> read_path(const JsonNode& node, const char* key) {
  WEFT_TRY(word, node.text(key));
  for (const Path path : kPaths)
    if (word == name(path)) return path;
  WEFT_TRY(value, node.at(key));
  return value.error(fmt::format("expected memory, port or switch, found '{}'", shown(word)));
}

struct RemoteBuffer {
  std::int32_t rank = 0;
  Buffer buffer = Buffer::input;
};

// Reads one gpu: its tables first, then the threadblocks that refer to them.
class RankReader {
 public:
  RankReader(std::int32_t rank, std::int32_t ranks) : rank_(rank), ranks_(ranks) {}

  Result<OneSidedRank> read(const JsonNode& gpu) {
    WEFT_TRY(inputs, gpu.whole("input_chunks", 0, kMostPlanChunks));
    WEFT_TRY(outputs, gpu.whole("output_chunks", 0, kMostPlanChunks));
    WEFT_TRY(scratch, gpu.whole("scratch_chunks", 0, kMostPlanChunks));
    own_.input_chunks = inputs;
    own_.output_chunks = outputs;
    own_.scratch_chunks = scratch;
    WEFT_TRY_STATUS(read_channels(gpu));
    WEFT_TRY_STATUS(read_remote_buffers(gpu));
    WEFT_TRY(semaphores, gpu.optional_list("semaphores"));
    for (const JsonNode& semaphore : semaphores) {
      WEFT_TRY(value, semaphore.whole("init_value", 0, kMostPlanNumber));
      own_.semaphores.push_back(value);
    }
    WEFT_TRY(blocks, gpu.list("threadblocks"));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      WEFT_TRY_STATUS(expect_id(blocks[i], i));
      WEFT_TRY(steps, read_block(blocks[i]));
      own_.blocks.push_back(std::move(steps));
    }
    return std::move(own_);
  }

 private:
  using Ids = std::array<std::vector<std::int32_t>, 4>;  // indexed by Path

  Status read_channels(const JsonNode& gpu) {
    WEFT_TRY(channels, gpu.optional_list("channels"));
    for (const JsonNode& channel : channels) {
      WEFT_TRY(path, read_path(channel, "channel_type"));
      if (path == Path::switched) {
        WEFT_TRY_STATUS(read_switch(channel));
        continue;
      }
      WEFT_TRY(peers, channel.wholes("connected_to", 0, ranks_ - 1));
      std::vector<std::int32_t>& all = path == Path::memory ? own_.memory_peers : own_.port_peers;
      all.insert(all.end(), peers.begin(), peers.end());
    }
    return {};
  }

  Status read_switch(const JsonNode& channel) {
    if (!channel.has("buffer_type"))
      return channel.error("expected buffer_type, found an older layout of switch channels, without it",
                           "regenerate it with MSCCL++ 0.8 or later");
    WEFT_TRY(buffer, read_buffer(channel, "buffer_type"));
    WEFT_TRY(groups, channel.list("rank_groups"));
    for (const JsonNode& group : groups) {
      WEFT_TRY(ranks, group.wholes("ranks", 0, ranks_ - 1));
      own_.switches.push_back({buffer, std::move(ranks)});
    }
    return {};
  }

  Status read_remote_buffers(const JsonNode& gpu) {
    WEFT_TRY(buffers, gpu.optional_list("remote_buffers"));
    for (const JsonNode& node : buffers) {
      WEFT_TRY(rank, node.whole("rank", 0, ranks_ - 1));
      WEFT_TRY(buffer, read_buffer(node, "type"));
      remote_.push_back({rank, buffer});
    }
    return {};
  }

  std::int32_t last_channel(Path path) const {
    const std::size_t known = path == Path::memory ? own_.memory_peers.size()
                              : path == Path::port ? own_.port_peers.size()
                                                   : own_.switches.size();
    return static_cast<std::int32_t>(known) - 1;
  }

  Result<std::vector<OneSidedStep>> read_block(const JsonNode& block) {
    channels_ = {};
    references_ = {};
    WEFT_TRY(channels, block.optional_list("channels"));
    for (const JsonNode& node : channels) {
      WEFT_TRY(path, read_path(node, "channel_type"));
      WEFT_TRY(ids, node.wholes("channel_ids", 0, last_channel(path)));
      std::vector<std::int32_t>& all = channels_[static_cast<std::size_t>(path)];
      all.insert(all.end(), ids.begin(), ids.end());
    }
    WEFT_TRY(references, block.optional_list("remote_buffer_refs"));
    for (const JsonNode& node : references) {
      WEFT_TRY(path, read_path(node, "access_channel_type"));
      WEFT_TRY(ids, node.wholes("remote_buffer_ids", 0, static_cast<std::int32_t>(remote_.size()) - 1));
      std::vector<std::int32_t>& all = references_[static_cast<std::size_t>(path)];
      all.insert(all.end(), ids.begin(), ids.end());
    }
    WEFT_TRY(ops, block.list("ops"));
    return read_steps(ops, false);
  }

  Result<std::vector<OneSidedStep>> read_steps(const Nodes& ops, bool in_pipeline) {
    std::vector<OneSidedStep> steps;
    steps.reserve(ops.size());
    for (const JsonNode& op : ops) {
      WEFT_TRY(step, read_step(op, in_pipeline));
      steps.push_back(std::move(step));
    }
    return steps;
  }

  Result<OneSidedStep> read_step(const JsonNode& op, bool in_pipeline) {
    OneSidedStep step;
    WEFT_TRY(verb, read_verb(op));
    step.verb = verb;
    if (op.has("channel_type")) {
      WEFT_TRY(path, read_path(op, "channel_type"));
      step.path = path;
    }
    WEFT_TRY(sources, read_operands(op, "src_buff", step.path));
    step.sources = std::move(sources);
    WEFT_TRY(targets, read_operands(op, "dst_buff", step.path));
    step.targets = std::move(targets);
    if (op.has("channel_ids")) {
      const std::vector<std::int32_t>& known = channels_[static_cast<std::size_t>(step.path)];
      WEFT_TRY(ids, op.wholes("channel_ids", 0, static_cast<std::int32_t>(known.size()) - 1));
      for (const std::int32_t id : ids) step.channels.push_back(known[id]);
      // For a switch the operands name the channel, and only that counts.
      if (step.path == Path::switched) step.channels.clear();
    }
    if (op.has("semaphore_ids")) {
      WEFT_TRY(ids, op.wholes("semaphore_ids", 0, static_cast<std::int32_t>(own_.semaphores.size()) - 1));
      step.semaphores = std::move(ids);
    }
    WEFT_TRY_STATUS(read_extras(op, step));
    if (verb != Verb::pipeline) return step;
    if (in_pipeline) return op.error("expected no pipeline inside a pipeline, found one");
    WEFT_TRY(context, op.at("iter_context"));
    WEFT_TRY(bytes, context.size("unit_size", 0));
    if (bytes > std::uint64_t{1} << 62) return context.error("expected a unit_size below 2^62, found more");
    step.unit_bytes = static_cast<std::int64_t>(bytes);
    WEFT_TRY(chunks, context.whole("num_chunks", 0, kMostPlanChunks));
    step.unit_chunks = chunks;
    WEFT_TRY(ops, op.list("ops"));
    WEFT_TRY(body, read_steps(ops, true));
    step.body = std::move(body);
    return step;
  }

  static Result<Verb> read_verb(const JsonNode& op) {
    WEFT_TRY(word, op.text("name"));
    if (const auto verb = find_verb(word)) return *verb;
    std::array<std::string_view, kVerbs> words;
    for (std::size_t i = 0; i < kVerbs; ++i) words[i] = collective::word(static_cast<Verb>(i));
    WEFT_TRY(node, op.at("name"));
    return node.error(fmt::format("expected an operation of MSCCL++, found '{}'", shown(word)),
                      did_you_mean(word, words));
  }

  static Status read_extras(const JsonNode& op, OneSidedStep& step) {
    if (step.verb == Verb::barrier) {
      WEFT_TRY(id, op.whole("barrier_id", 0, kMostPlanNumber - 1));
      WEFT_TRY(members, op.whole("num_threadblocks", 1, kMostPlanNumber));
      step.barrier = id;
      step.members = members;
    }
    if (op.has("tbg_info")) {
      WEFT_TRY(group, op.at("tbg_info"));
      WEFT_TRY(parts, group.whole("tbg_size", 1, kMostPlanNumber));
      WEFT_TRY(part, group.whole("tb_id", 0, parts - 1));
      step.parts = parts;
      step.part = part;
    }
    if (op.has("reduce_op")) {
      WEFT_TRY(reduction, op.text("reduce_op"));
      WEFT_TRY(node, op.at("reduce_op"));
      if (reduction != "sum")
        return node.error(fmt::format("expected sum, found '{}'", shown(reduction)), "MSCCL++ always sums");
    }
    return {};
  }

  Result<std::vector<Operand>> read_operands(const JsonNode& op, const char* key, Path path) {
    WEFT_TRY(nodes, op.optional_list(key));
    std::vector<Operand> operands;
    operands.reserve(nodes.size());
    for (const JsonNode& node : nodes) {
      WEFT_TRY(operand, read_operand(node, path));
      operands.push_back(operand);
    }
    return operands;
  }

  Result<Operand> read_operand(const JsonNode& node, Path path) {
    Operand operand;
    WEFT_TRY(index, node.whole("index", 0, kMostPlanChunks));
    WEFT_TRY(count, node.whole("size", 1, kMostPlanChunks));
    operand.index = index;
    operand.count = count;
    if (node.has("buffer_id")) {
      const std::vector<std::int32_t>& known = references_[static_cast<std::size_t>(path)];
      WEFT_TRY(id, node.whole("buffer_id", 0, static_cast<std::int32_t>(known.size()) - 1));
      operand.where = Operand::Where::remote;
      operand.peer = remote_[known[id]].rank;
      operand.buffer = remote_[known[id]].buffer;
    } else if (node.has("switch_channel_id")) {
      const std::vector<std::int32_t>& known = channels_[static_cast<std::size_t>(Path::switched)];
      WEFT_TRY(id, node.whole("switch_channel_id", 0, static_cast<std::int32_t>(known.size()) - 1));
      operand.where = Operand::Where::switched;
      operand.peer = known[id];
      operand.buffer = own_.switches[known[id]].buffer;
    } else {
      // Some generators write the rank of a local buffer, which must be this one.
      if (node.has("rank")) {
        WEFT_TRY(rank, node.whole("rank", rank_, rank_));
        static_cast<void>(rank);
      }
      WEFT_TRY(buffer, read_buffer(node, "type"));
      operand.buffer = buffer;
    }
    return operand;
  }

  std::int32_t rank_, ranks_;
  OneSidedRank own_;
  std::vector<RemoteBuffer> remote_;
  Ids channels_, references_;  // meaning of the current threadblock's numbers
};

}  // namespace

Result<OneSided> read_mscclpp_json(std::string_view text) {
  WEFT_TRY(root, parse_json(text));
  const JsonNode top(root);
  WEFT_TRY(gpus, top.list("gpus"));
  if (gpus.empty() || gpus.size() > static_cast<std::size_t>(kMostPlanRanks))
    return top.error(fmt::format("gpus: expected 1 to {}, found {}", kMostPlanRanks, gpus.size()));
  if (gpus.front().has("inputChunks")) return read_mscclpp_json_v1(top);
  WEFT_TRY(plan, read_plan_head(top));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    WEFT_TRY_STATUS(expect_id(gpus[i], i));
    RankReader reader(static_cast<std::int32_t>(i), static_cast<std::int32_t>(gpus.size()));
    WEFT_TRY(rank, reader.read(gpus[i]));
    plan.ranks.push_back(std::move(rank));
  }
  WEFT_TRY_STATUS(settle_collective(top, plan));
  return plan;
}

}  // namespace weft::formats
