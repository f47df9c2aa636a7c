#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "weft/formats/mscclpp_json.h"

namespace weft::formats {
namespace {

using namespace collective;
using Ordered = nlohmann::ordered_json;

std::string_view letter_of(Buffer buffer) {
  constexpr std::array<std::string_view, 3> kLetters = {"i", "o", "s"};
  return kLetters[static_cast<std::size_t>(buffer)];
}

// Numbers things in the order of first use.
template <class T>
class Numbering {
 public:
  std::int32_t operator()(const T& thing) {
    const auto [at, fresh] = numbers_.try_emplace(thing, static_cast<std::int32_t>(things_.size()));
    if (fresh) things_.push_back(thing);
    return at->second;
  }
  const std::vector<T>& things() const { return things_; }

 private:
  std::vector<T> things_;
  std::map<T, std::int32_t> numbers_;
};

struct WrittenRemoteBuffer {
  std::int32_t rank = 0;
  Buffer buffer = Buffer::input;

  friend auto operator<=>(const WrittenRemoteBuffer&, const WrittenRemoteBuffer&) = default;
};

class RankPlanWriter {
 public:
  explicit RankPlanWriter(const OneSidedRank& rank) : rank_(rank) {}

  Ordered write(std::size_t id) {
    Ordered gpu;
    gpu["id"] = id;
    gpu["input_chunks"] = rank_.input_chunks;
    gpu["output_chunks"] = rank_.output_chunks;
    gpu["scratch_chunks"] = rank_.scratch_chunks;
    Ordered& blocks = gpu["threadblocks"] = Ordered::array();
    for (std::size_t i = 0; i < rank_.blocks.size(); ++i) blocks.push_back(write_block(i));
    gpu["channels"] = write_channels();
    Ordered& buffers = gpu["remote_buffers"] = Ordered::array();
    for (std::size_t i = 0; i < remote_.things().size(); ++i) {
      const WrittenRemoteBuffer& remote = remote_.things()[i];
      Ordered paths = Ordered::array();
      for (const Path path : reached_by_[i].things()) paths.push_back(name(path));
      buffers.push_back(
          {{"rank", remote.rank}, {"type", letter_of(remote.buffer)}, {"access_channel_types", paths}});
    }
    Ordered& semaphores = gpu["semaphores"] = Ordered::array();
    for (const std::int32_t value : rank_.semaphores) semaphores.push_back({{"init_value", value}});
    return gpu;
  }

 private:
  Ordered write_channels() const {
    Ordered channels = Ordered::array();
    const auto add = [&](Path path, const std::vector<std::int32_t>& peers) {
      if (!peers.empty()) channels.push_back({{"channel_type", name(path)}, {"connected_to", peers}});
    };
    add(Path::memory, rank_.memory_peers);
    add(Path::port, rank_.port_peers);
    for (const Switch& group : rank_.switches) {
      Ordered groups = Ordered::array();
      groups.push_back({{"size", group.ranks.size()}, {"ranks", group.ranks}});
      channels.push_back({{"channel_type", name(Path::switched)},
                          {"buffer_type", letter_of(group.buffer)},
                          {"rank_groups", std::move(groups)}});
    }
    return channels;
  }

  Ordered write_block(std::size_t id) {
    channels_ = {};
    references_ = {};
    Ordered block;
    block["id"] = id;
    block["ops"] = write_steps(rank_.blocks[id]);
    Ordered& channels = block["channels"] = Ordered::array();
    Ordered& references = block["remote_buffer_refs"] = Ordered::array();
    for (const Path path : {Path::memory, Path::port, Path::switched}) {
      const auto& ids = channels_[static_cast<std::size_t>(path)].things();
      if (!ids.empty()) channels.push_back({{"channel_type", name(path)}, {"channel_ids", ids}});
      const auto& buffers = references_[static_cast<std::size_t>(path)].things();
      if (!buffers.empty())
        references.push_back({{"access_channel_type", name(path)}, {"remote_buffer_ids", buffers}});
    }
    return block;
  }

  Ordered write_steps(const std::vector<OneSidedStep>& steps) {
    Ordered ops = Ordered::array();
    for (const OneSidedStep& step : steps) ops.push_back(write_step(step));
    return ops;
  }

  Ordered write_step(const OneSidedStep& step) {
    Ordered op;
    op["name"] = word(step.verb);
    if (step.verb == Verb::barrier) {
      op["barrier_id"] = step.barrier;
      op["num_threadblocks"] = step.members;
    }
    if (step.verb == Verb::acquire || step.verb == Verb::release) op["semaphore_ids"] = step.semaphores;
    if (step.verb == Verb::pipeline) {
      op["iter_context"] = {{"unit_size", step.unit_bytes}, {"num_chunks", step.unit_chunks}};
      op["ops"] = write_steps(step.body);
    }
    if (!shape(step.verb).sources.empty()) {
      op["src_buff"] = write_operands(step, step.sources);
      op["dst_buff"] = write_operands(step, step.targets);
    }
    if (!step.channels.empty()) {
      Ordered& ids = op["channel_ids"] = Ordered::array();
      for (const std::int32_t channel : step.channels)
        ids.push_back(channels_[static_cast<std::size_t>(step.path)](channel));
    }
    if (step.path != Path::none) op["channel_type"] = name(step.path);
    if (sums(step.verb)) op["reduce_op"] = "sum";
    if (step.parts > 1) op["tbg_info"] = {{"tb_id", step.part}, {"tbg_size", step.parts}};
    return op;
  }

  Ordered write_operands(const OneSidedStep& step, const std::vector<Operand>& operands) {
    Ordered list = Ordered::array();
    for (const Operand& operand : operands) {
      Ordered node;
      switch (operand.where) {
        case Operand::Where::local: node["type"] = letter_of(operand.buffer); break;
        case Operand::Where::remote: node["buffer_id"] = reference(step.path, operand); break;
        case Operand::Where::switched:
          node["switch_channel_id"] = channels_[static_cast<std::size_t>(Path::switched)](operand.peer);
          break;
      }
      node["index"] = operand.index;
      node["size"] = operand.count;
      list.push_back(std::move(node));
    }
    return list;
  }

  std::int32_t reference(Path path, const Operand& operand) {
    const std::int32_t id = remote_({operand.peer, operand.buffer});
    reached_by_.resize(remote_.things().size());
    reached_by_[id](path);
    return references_[static_cast<std::size_t>(path)](id);
  }

  const OneSidedRank& rank_;
  Numbering<WrittenRemoteBuffer> remote_;
  std::vector<Numbering<Path>> reached_by_;                       // per remote buffer
  std::array<Numbering<std::int32_t>, 4> channels_, references_;  // of the current threadblock, per Path
};

}  // namespace

Result<std::string> write_mscclpp_json(const OneSided& plan) {
  Ordered top;
  top["name"] = plan.name;
  top["collective"] = plan.collective_word;
  top["protocol"] = plan.protocol == Protocol::simple ? "Simple" : "LL";
  top["inplace"] = plan.in_place;
  top["reuse_resources"] = plan.reuse_resources;
  Ordered& gpus = top["gpus"] = Ordered::array();
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) gpus.push_back(RankPlanWriter(plan.ranks[i]).write(i));
  top["num_threads_per_block"] = plan.threads_per_block;
  top["use_double_scratch_buffer"] = plan.double_scratch;
  top["buffer_alignment"] = plan.alignment;
  top["min_message_size"] = plan.min_bytes;
  top["max_message_size"] = plan.max_bytes;
  // A name that did not come from JSON may contain invalid UTF-8.
  return top.dump(2, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace weft::formats
