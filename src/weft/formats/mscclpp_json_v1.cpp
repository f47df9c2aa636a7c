// The layout of MSCCL++ plans from 2024-04 to 2025-08:
//
//   {"name": "put", "srcs": [{"buff": "i", "off": 4}], "o_buff": {"src": "i", "dst": "s"},
//    "o_cids": [{"id": 0, "off": 2}], "ctype": "sm", "cnt": 1}
//
// A channel connects one local buffer to one remote buffer, so a channel and an offset name a
// remote operand: `o_cids` are written, `i_cids` are read. `deps` lists the dependencies seen in
// tracing. The runtime never read it, so its dependencies are ignored here too.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/formats/mscclpp_json_parts.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using namespace collective;

constexpr std::int32_t kMostV1Number = kMostPlanChunks;

// An operation of this layout. Its sources are the src fields if `first_source`, then the local
// operands in `srcs`, then the remote ones in `i_cids`. Targets likewise.
struct OldVerb {
  std::string_view word;
  Verb verb;
  bool first_source, first_target;  // uses the fields srcbuff, srcoff; dstbuff, dstoff
};

constexpr std::array<OldVerb, 21> kOldVerbs = {{
    {"nop", Verb::nop, false, false},
    {"barrier", Verb::barrier, false, false},
    {"signal", Verb::signal, false, false},
    {"wait", Verb::wait, false, false},
    {"flush", Verb::flush, false, false},
    {"put", Verb::put, false, false},
    {"pws", Verb::put_signal, false, false},
    {"pwsf", Verb::put_signal_flush, false, false},
    {"get", Verb::get, false, false},
    {"copy", Verb::copy, true, true},
    {"re", Verb::reduce, true, true},
    {"rs", Verb::reduce_send, true, true},
    {"rrc", Verb::read_reduce, true, true},
    {"rrcs", Verb::read_reduce_send, true, true},
    {"ppkt", Verb::put_packets, false, false},
    {"rppkt", Verb::read_put_packets, false, false},
    {"rpkt", Verb::reduce_packets, true, true},
    {"rspkt", Verb::reduce_send_packets, true, true},
    {"cpkt", Verb::unpack_packets, true, true},
    {"tpkt", Verb::copy_packets, true, true},
    {"glres", Verb::switch_reduce_store, false, false},
}};

Result<Path> read_old_path(const JsonNode& node, const char* key) {
  WEFT_TRY(word, node.text(key));
  if (word == "sm" || word == "memory") return Path::memory;
  if (word == "proxy" || word == "port") return Path::port;
  if (word == "nvls") return Path::switched;
  if (word == "none") return Path::none;
  WEFT_TRY(value, node.at(key));
  return value.error(fmt::format("expected sm, proxy, nvls or none, found '{}'", shown(word)));
}

// The path of a channel and the buffers it connects: channels are numbered per key.
using Key = std::tuple<Path, Buffer, Buffer>;

class OldRankReader {
 public:
  explicit OldRankReader(std::int32_t ranks) : ranks_(ranks) {}

  Result<OneSidedRank> read(const JsonNode& gpu) {
    WEFT_TRY(inputs, gpu.whole("inputChunks", 0, kMostV1Number));
    WEFT_TRY(outputs, gpu.whole("outputChunks", 0, kMostV1Number));
    WEFT_TRY(scratch, gpu.whole("scratchChunks", 0, kMostV1Number));
    own_.input_chunks = inputs;
    own_.output_chunks = outputs;
    own_.scratch_chunks = scratch;
    WEFT_TRY_STATUS(read_channels(gpu));
    WEFT_TRY(blocks, gpu.list("threadblocks"));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      WEFT_TRY_STATUS(expect_id(blocks[i], i));
      WEFT_TRY_STATUS(read_block(blocks[i]));
    }
    return std::move(own_);
  }

 private:
  struct Channel {
    std::int32_t peer = 0;
    std::int32_t index = 0;  // among the rank's channels of this path
  };

  Status read_channels(const JsonNode& gpu) {
    std::map<Key, std::vector<std::int32_t>> peers;
    WEFT_TRY(nodes, gpu.optional_list("channels"));
    for (const JsonNode& node : nodes) {
      WEFT_TRY(path, read_old_path(node, "type"));
      if (path == Path::switched) {
        WEFT_TRY(buffer, read_buffer(node, "buff"));
        WEFT_TRY(groups, node.list("rankGroups"));
        for (const JsonNode& group : groups) {
          WEFT_TRY(ranks, group.wholes("ranks", 0, ranks_ - 1));
          channels_[{path, buffer, buffer}].push_back({-1, static_cast<std::int32_t>(own_.switches.size())});
          own_.switches.push_back({buffer, std::move(ranks)});
        }
        continue;
      }
      WEFT_TRY(source, read_buffer(node, "srcbuff"));
      WEFT_TRY(target, read_buffer(node, "dstbuff"));
      WEFT_TRY(connected, node.wholes("connectedTo", 0, ranks_ - 1));
      std::vector<std::int32_t>& all = peers[{path, source, target}];
      all.insert(all.end(), connected.begin(), connected.end());
    }
    // In order of the buffers they connect, which is the same on every rank: so the k-th channel to
    // a peer is the other end of the peer's k-th to this rank.
    for (const auto& [key, connected] : peers) {
      std::vector<std::int32_t>& all =
          std::get<Path>(key) == Path::memory ? own_.memory_peers : own_.port_peers;
      for (const std::int32_t peer : connected) {
        channels_[key].push_back({peer, static_cast<std::int32_t>(all.size())});
        all.push_back(peer);
      }
    }
    return {};
  }

  Status read_block(const JsonNode& block) {
    numbers_.clear();
    WEFT_TRY(nodes, block.optional_list("channels"));
    for (const JsonNode& node : nodes) {
      WEFT_TRY(path, read_old_path(node, "ctype"));
      WEFT_TRY(source, read_buffer(node, "src"));
      WEFT_TRY(target, read_buffer(node, "dst"));
      const std::vector<Channel>& known = channels_[{path, source, target}];
      WEFT_TRY(ids, node.wholes("cids", 0, static_cast<std::int32_t>(known.size()) - 1));
      for (const std::int32_t id : ids) numbers_[{path, source, target}].push_back(known[id]);
    }
    own_.blocks.emplace_back();
    WEFT_TRY(ops, block.list("ops"));
    for (const JsonNode& op : ops) WEFT_TRY_STATUS(read_step(op));
    return {};
  }

  Status read_step(const JsonNode& op) {
    WEFT_TRY(word, op.text("name"));
    const auto old = std::ranges::find(kOldVerbs, word, &OldVerb::word);
    if (old == kOldVerbs.end()) {
      std::array<std::string_view, kOldVerbs.size()> words;
      std::ranges::transform(kOldVerbs, words.begin(), &OldVerb::word);
      WEFT_TRY(node, op.at("name"));
      return node.error(fmt::format("expected an operation of MSCCL++, found '{}'", shown(word)),
                        did_you_mean(word, words));
    }
    OneSidedStep step;
    step.verb = old->verb;
    if (op.has("ctype")) {
      WEFT_TRY(path, read_old_path(op, "ctype"));
      step.path = path;
    }
    if (op.has("cnt")) {
      WEFT_TRY(count, op.whole("cnt", 1, kMostV1Number));
      count_ = count;
    } else {
      count_ = 1;
    }
    if (step.verb == Verb::barrier) {
      WEFT_TRY(id, op.whole("barrier_id", 0, kMostV1Number));
      WEFT_TRY(members, op.whole("nthread_blocks", 1, kMostV1Number));
      step.barrier = id;
      step.members = members;
    }
    if (step.verb == Verb::switch_reduce_store) return read_switch_step(op, std::move(step));
    if (old->first_source) WEFT_TRY_STATUS(add_local(op, "srcbuff", "srcoff", step.sources));
    if (old->first_target) WEFT_TRY_STATUS(add_local(op, "dstbuff", "dstoff", step.targets));
    WEFT_TRY_STATUS(add_locals(op, "srcs", step.sources));
    WEFT_TRY_STATUS(add_locals(op, "dsts", step.targets));
    const bool moves = !shape(step.verb).sources.empty();
    WEFT_TRY_STATUS(add_remotes(op, "i_buff", "i_cids", moves ? &step.sources : nullptr, step));
    WEFT_TRY_STATUS(add_remotes(op, "o_buff", "o_cids", moves ? &step.targets : nullptr, step));
    add_step(std::move(step));
    return {};
  }

  // read_put_packets lists pairs here; a step of the current layout has one source and several
  // targets.
  void add_step(OneSidedStep step) {
    std::vector<OneSidedStep>& steps = own_.blocks.back();
    if (step.verb != Verb::read_put_packets || step.sources.size() != step.targets.size()) {
      steps.push_back(std::move(step));
      return;
    }
    for (std::size_t i = 0; i < step.sources.size(); ++i) {
      OneSidedStep one = step;
      one.sources = {step.sources[i]};
      one.targets = {step.targets[i]};
      if (step.channels.size() == step.sources.size()) one.channels = {step.channels[i]};
      steps.push_back(std::move(one));
    }
  }

  Status read_switch_step(const JsonNode& op, OneSidedStep step) {
    for (const bool source : {true, false}) {
      WEFT_TRY(buffer, read_buffer(op, source ? "srcbuff" : "dstbuff"));
      WEFT_TRY(index, op.whole(source ? "srcoff" : "dstoff", 0, kMostV1Number));
      WEFT_TRY(ids, op.list(source ? "i_cids" : "o_cids"));
      const std::vector<Channel>& known = numbers_[{Path::switched, buffer, buffer}];
      if (ids.empty()) return op.error("expected a switch channel, found none");
      WEFT_TRY(id, ids.front().whole("id", 0, static_cast<std::int32_t>(known.size()) - 1));
      (source ? step.sources : step.targets)
          .push_back({Operand::Where::switched, known[id].index, buffer, index, count_});
    }
    step.path = Path::switched;
    add_step(std::move(step));
    return {};
  }

  Status add_local(const JsonNode& op, const char* buffer_key, const char* index_key,
                   std::vector<Operand>& operands) const {
    WEFT_TRY(buffer, read_buffer(op, buffer_key));
    WEFT_TRY(index, op.whole(index_key, 0, kMostV1Number));
    operands.push_back({Operand::Where::local, 0, buffer, index, count_});
    return {};
  }

  Status add_locals(const JsonNode& op, const char* key, std::vector<Operand>& operands) const {
    WEFT_TRY(nodes, op.optional_list(key));
    for (const JsonNode& node : nodes) WEFT_TRY_STATUS(add_local(node, "buff", "off", operands));
    return {};
  }

  Status add_remotes(const JsonNode& op, const char* buffers_key, const char* ids_key,
                     std::vector<Operand>* operands, OneSidedStep& step) {
    if (!op.has(ids_key)) return {};
    WEFT_TRY(buffers, op.at(buffers_key));
    WEFT_TRY(source, read_buffer(buffers, "src"));
    WEFT_TRY(target, read_buffer(buffers, "dst"));
    const std::vector<Channel>& known = numbers_[{step.path, source, target}];
    WEFT_TRY(nodes, op.list(ids_key));
    for (const JsonNode& node : nodes) {
      WEFT_TRY(id, node.whole("id", 0, static_cast<std::int32_t>(known.size()) - 1));
      WEFT_TRY(index, node.whole("off", 0, kMostV1Number));
      if (operands != nullptr)
        operands->push_back({Operand::Where::remote, known[id].peer, target, index, count_});
      // Memory operands need only the buffer. Channels are for signals and for the port path.
      if (operands == nullptr || step.path == Path::port) step.channels.push_back(known[id].index);
    }
    return {};
  }

  std::int32_t ranks_;
  std::int32_t count_ = 1;  // of the current operation
  OneSidedRank own_;
  std::map<Key, std::vector<Channel>> channels_;
  std::map<Key, std::vector<Channel>> numbers_;  // of the current threadblock
};

}  // namespace

Result<OneSided> read_mscclpp_json_v1(const JsonNode& top) {
  WEFT_TRY(plan, read_plan_head(top));
  WEFT_TRY(gpus, top.list("gpus"));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    WEFT_TRY_STATUS(expect_id(gpus[i], i));
    OldRankReader reader(static_cast<std::int32_t>(gpus.size()));
    WEFT_TRY(rank, reader.read(gpus[i]));
    plan.ranks.push_back(std::move(rank));
  }
  WEFT_TRY_STATUS(settle_collective(top, plan));
  return plan;
}

}  // namespace weft::formats
