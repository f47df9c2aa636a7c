#include "weft/collectives/compile/assign.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>

#include "weft/collectives/compile/channels.h"
#include "weft/collectives/compile/fuse.h"

namespace weft::collective {
namespace {

struct PlannedConnection {
  std::int32_t from = 0, to = 0, channel = 0;
  std::int32_t messages = 0;
  std::int32_t after = -1;                  // the connection into `from` that shares its block there
  std::int32_t before = -1;                 // the connection out of `to` that shares its block there
  std::int32_t sender = -1, receiver = -1;  // blocks
};

struct Network {
  std::vector<PlannedConnection> connections;  // by sender, receiver and channel
  std::vector<std::int32_t> out;               // per instruction: the connection it sends on; -1: none

  std::int32_t in(const Instruction& it) const { return it.giver < 0 ? -1 : out[it.giver]; }

  // Lets one block receive on connection `in` and send on connection `out_of`.
  void join(std::int32_t in, std::int32_t out_of) {
    connections[in].before = out_of;
    connections[out_of].after = in;
  }
};

Network connect_blocks(const Instructions& instructions) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  const auto key = [&](const Instruction& it) {
    return Key{it.rank, instructions.list[it.taker].rank, it.channel};
  };
  std::vector<Key> keys;
  for (const Instruction& it : instructions.list)
    if (it.taker >= 0) keys.push_back(key(it));
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  Network network;
  for (const auto& [from, to, channel] : keys) network.connections.push_back({from, to, channel});
  network.out.assign(instructions.list.size(), -1);
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    const Instruction& it = instructions.list[i];
    if (it.taker < 0) continue;
    network.out[i] = static_cast<std::int32_t>(std::ranges::lower_bound(keys, key(it)) - keys.begin());
    ++network.connections[network.out[i]].messages;
  }
  for (std::int32_t i = 0; i < instructions.size(); ++i)
    if (fused(instructions.list[i].op)) network.join(network.in(instructions.list[i]), network.out[i]);
  return network;
}

// Joins a connection with the one whose messages it mostly forwards: the order within the block
// then replaces the waits.
void join_neighbours(const Instructions& instructions, Network& network) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;  // (in, out) for every send that waits
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    const std::int32_t out = network.out[i];
    if (out < 0 || network.connections[out].after >= 0) continue;
    if (instructions.dependences(i).empty()) continue;
    const std::int32_t in = network.in(instructions.list[instructions.dependences(i).back()]);
    if (in < 0 || network.connections[in].before >= 0) continue;
    if (network.connections[in].channel == network.connections[out].channel) pairs.emplace_back(in, out);
  }
  std::ranges::sort(pairs);
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> joins;  // most waits first
  for (std::size_t i = 0; i < pairs.size();) {
    std::size_t end = i;
    while (end < pairs.size() && pairs[end] == pairs[i]) ++end;
    const auto waits = static_cast<std::int32_t>(end - i);
    const auto [in, out] = pairs[i];
    if (2 * waits > network.connections[in].messages && 2 * waits > network.connections[out].messages)
      joins.emplace_back(-waits, in, out);
    i = end;
  }
  std::ranges::sort(joins);
  for (const auto& [waits, in, out] : joins)
    if (network.connections[in].before < 0 && network.connections[out].after < 0) network.join(in, out);
}

// Joins the two directions between a pair of ranks.
void join_opposites(Network& network) {
  const auto key = [](const PlannedConnection& c) { return std::tuple(c.from, c.to, c.channel); };
  for (std::size_t out = 0; out < network.connections.size(); ++out) {
    const PlannedConnection& it = network.connections[out];
    if (it.after >= 0) continue;
    const std::tuple back(it.to, it.from, it.channel);
    const auto found = std::ranges::lower_bound(network.connections, back, {}, key);
    if (found == network.connections.end() || key(*found) != back || found->before >= 0) continue;
    network.join(static_cast<std::int32_t>(found - network.connections.begin()),
                 static_cast<std::int32_t>(out));
  }
}

// One block per pair of joined connections and per unjoined one, rank by rank. Ranks that have work
// but neither send nor receive get one block.
std::vector<InstructionBlock> make_blocks(const Instructions& instructions, Network& network) {
  struct Seed {
    InstructionBlock block;
    std::int32_t in = -1, out = -1;
  };
  std::vector<Seed> seeds;
  std::vector<bool> has_block(static_cast<std::size_t>(instructions.collective.ranks), false);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(network.connections.size()); ++i) {
    const PlannedConnection& it = network.connections[i];
    const std::int32_t from = it.after < 0 ? -1 : network.connections[it.after].from;
    seeds.push_back({{it.from, it.to, from, it.channel}, it.after, i});
    if (it.before < 0) seeds.push_back({{it.to, -1, it.from, it.channel}, i, -1});
    has_block[it.from] = has_block[it.to] = true;
  }
  for (const Instruction& it : instructions.list) {
    if (has_block[it.rank]) continue;
    has_block[it.rank] = true;
    seeds.push_back({{it.rank, -1, -1, 0}});
  }
  std::ranges::sort(seeds, {}, [](const Seed& seed) {
    const InstructionBlock& block = seed.block;
    return std::tuple(block.rank, block.channel, block.send_to, block.receive_from);
  });
  std::vector<InstructionBlock> blocks;
  for (const Seed& seed : seeds) {
    const auto number = static_cast<std::int32_t>(blocks.size());
    if (seed.out >= 0) network.connections[seed.out].sender = number;
    if (seed.in >= 0) network.connections[seed.in].receiver = number;
    blocks.push_back(seed.block);
  }
  return blocks;
}

// The block of an instruction's last dependence. With `apart`, prefer the last one in a block that
// does not send: work after it in a sending block would delay that block's next send.
std::int32_t block_before(const Instructions& instructions, std::int32_t i, bool apart) {
  const auto block = [&](std::int32_t dependence) { return instructions.list[dependence].block; };
  const auto dependences = instructions.dependences(i);
  for (auto at = dependences.rbegin(); apart && at != dependences.rend(); ++at)
    if (block(*at) >= 0 && instructions.blocks[block(*at)].send_to < 0) return block(*at);
  return block(dependences.back());
}

// A local instruction goes to the block of its last dependence, or of its first dependent, or else
// to the least loaded block of its rank.
void place_local(Instructions& instructions, bool apart) {
  std::vector<std::int32_t> waiting(instructions.list.size(), -1);  // the block of the first dependent
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    Instruction& it = instructions.list[i];
    if (it.block < 0 && !instructions.dependences(i).empty()) it.block = block_before(instructions, i, apart);
  }
  for (std::int32_t i = instructions.size() - 1; i >= 0; --i) {
    Instruction& it = instructions.list[i];
    if (it.block < 0) it.block = waiting[i];
    for (const std::int32_t before : instructions.dependences(i)) waiting[before] = it.block;
  }
  std::vector<std::int64_t> load(instructions.blocks.size(), 0);  // in chunks
  bool all = true;
  for (const Instruction& it : instructions.list) {
    if (it.block >= 0) load[it.block] += it.count;
    all = all && it.block >= 0;
  }
  if (all) return;
  using Entry = std::pair<std::int64_t, std::int32_t>;
  std::vector<std::priority_queue<Entry, std::vector<Entry>, std::greater<>>> idle(
      static_cast<std::size_t>(instructions.collective.ranks));
  for (std::size_t block = 0; block < load.size(); ++block)
    idle[instructions.blocks[block].rank].emplace(load[block], static_cast<std::int32_t>(block));
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    Instruction& it = instructions.list[i];
    if (it.block < 0 && !instructions.dependences(i).empty())  // its last dependence was just placed
      it.block = instructions.list[instructions.dependences(i).back()].block;
    if (it.block >= 0) continue;
    const Entry least = idle[it.rank].top();
    idle[it.rank].pop();
    it.block = least.second;
    idle[it.rank].emplace(least.first + it.count, least.second);
  }
}

Status check_limit(const Instructions& instructions, std::int32_t most) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(instructions.collective.ranks), 0);
  for (const InstructionBlock& block : instructions.blocks) ++blocks[block.rank];
  const auto highest = std::ranges::max_element(blocks);
  if (most == 0 || *highest <= most) return {};
  return user_error(fmt::format("too many threadblocks are needed: rank {} needs {}, at most {}",
                                highest - blocks.begin(), *highest, most),
                    "use fewer peers or fewer channels");
}

}  // namespace

Result<Instructions> assign(const Instructions& instructions, const AssignLimits& limits) {
  WEFT_TRY(channels, choose_channels(instructions, limits.channels));
  Instructions result = unfuse_instructions(instructions, channels.apart);
  for (Instruction& it : result.list) {
    const std::int32_t move = it.sent >= 0 ? it.sent : it.done;
    it.channel = sends(it.op) || receives(it.op) ? channels.of_move[move] : -1;
  }
  Network network = connect_blocks(result);
  if (limits.join) {
    join_neighbours(result, network);
    join_opposites(network);
  }
  result.blocks = make_blocks(result, network);
  for (std::int32_t i = 0; i < result.size(); ++i) {
    Instruction& it = result.list[i];
    if (network.out[i] >= 0) it.block = network.connections[network.out[i]].sender;
    if (it.giver >= 0) it.block = network.connections[network.in(it)].receiver;
  }
  place_local(result, !limits.join);
  WEFT_TRY_STATUS(check_limit(result, limits.blocks));
  return result;
}

}  // namespace weft::collective
