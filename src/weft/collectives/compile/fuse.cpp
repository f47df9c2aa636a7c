#include "weft/collectives/compile/fuse.h"

#include <algorithm>
#include <vector>

#include "weft/collectives/chunks/cells.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kNobody = -1, kMany = -2;

// The longest path from each instruction to the end, counting messages and waits alike.
std::vector<std::int32_t> ways_ahead(const Instructions& instructions) {
  std::vector<std::int32_t> way(static_cast<std::size_t>(instructions.size()), 0);
  for (std::int32_t i = instructions.size() - 1; i >= 0; --i) {
    const auto raise = [&](std::int32_t before) { way[before] = std::max(way[before], way[i] + 1); };
    for (const std::int32_t before : instructions.dependences(i)) raise(before);
    if (instructions.list[i].giver >= 0) raise(instructions.list[i].giver);
  }
  return way;
}

// Whether `send` can be fused into the receive that it waits for.
bool can_fuse(const Instructions& instructions, std::int32_t send) {
  const Instruction& it = instructions.list[send];
  if (it.op != Op::send || instructions.dependences(send).size() != 1) return false;
  const Instruction& writer = instructions.list[instructions.dependences(send).front()];
  return receives(writer.op) && !sends(writer.op) && writer.target == it.source && writer.count == it.count;
}

// Per receive: the send to fuse into it; -1: none.
std::vector<std::int32_t> choose_sends(const Instructions& instructions) {
  const std::vector<std::int32_t> way = ways_ahead(instructions);
  const std::size_t size = static_cast<std::size_t>(instructions.size());
  std::vector<std::int32_t> candidates(size, -1), next(size, -1);  // linked lists: sends per receive
  for (std::int32_t i = instructions.size() - 1; i >= 0; --i) {
    if (!can_fuse(instructions, i)) continue;
    const std::int32_t receive = instructions.dependences(i).front();
    next[i] = candidates[receive];
    candidates[receive] = i;
  }
  // Fused messages form chains with one channel: the first that a move of the chain requests.
  std::vector<std::int32_t> chain(size, -1), chosen(size, -1), channel(size, -1);
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    const Instruction& it = instructions.list[i];
    if (it.op == Op::send && chain[i] < 0) {
      chain[i] = i;
      channel[i] = it.channel;
    }
    if (candidates[i] < 0) continue;
    const std::int32_t own = chain[it.giver];
    std::int32_t& best = chosen[i];
    for (std::int32_t send = candidates[i]; send >= 0; send = next[send]) {
      const std::int32_t asked = instructions.list[send].channel;
      if (asked >= 0 && channel[own] >= 0 && asked != channel[own]) continue;
      if (best < 0 || way[send] > way[best]) best = send;
    }
    if (best < 0) continue;
    chain[best] = own;
    if (channel[own] < 0) channel[own] = instructions.list[best].channel;
  }
  return chosen;
}

// Marks the cells whose final content is required output.
std::vector<bool> wanted_cells(const Instructions& instructions, const Cells& cells) {
  const Collective& collective = instructions.collective;
  std::vector<bool> wanted(static_cast<std::size_t>(cells.size()), false);
  for (const CustomWant& want : collective.wants)
    wanted[cells.at(want.rank, {Buffer::output, want.index})] = true;
  const bool custom = collective.kind == Kind::custom;
  if (custom && !collective.wants.empty()) return wanted;
  // The collective specifies all of a rank's output or none of it. For a custom collective without
  // WANTs, all output counts.
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank)
    if (instructions.output[rank] > 0 && (custom || want(collective, rank, 0).what != Want::What::anything))
      for (std::int32_t i = 0; i < instructions.output[rank]; ++i)
        wanted[cells.at(rank, {Buffer::output, i})] = true;
  return wanted;
}

// Per instruction: the only reader of its result, kNobody or kMany. Required output counts as many.
std::vector<std::int32_t> find_readers(const Instructions& instructions) {
  const Cells cells(instructions.collective, instructions.placement, instructions.scratch, instructions.input,
                    instructions.output);
  std::vector<std::int32_t> reader(static_cast<std::size_t>(instructions.size()), kNobody);
  std::vector<std::int32_t> writer(static_cast<std::size_t>(cells.size()), -1);
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    const Instruction& it = instructions.list[i];
    const auto read = [&](Slot slot) {
      const std::int32_t first = cells.at(it.rank, slot);
      for (std::int32_t cell = first; cell < first + it.count; ++cell) {
        if (writer[cell] < 0) continue;
        std::int32_t& known = reader[writer[cell]];
        known = known == kNobody || known == i ? i : kMany;
      }
    };
    if (reads_source(it.op)) read(it.source);
    if (reads_target(it.op)) read(it.target);
    if (!writes_target(it.op)) continue;
    const std::int32_t first = cells.at(it.rank, it.target);
    std::fill_n(writer.begin() + first, it.count, i);
  }
  const std::vector<bool> wanted = wanted_cells(instructions, cells);
  for (std::size_t cell = 0; cell < wanted.size(); ++cell)
    if (wanted[cell] && writer[cell] >= 0) reader[writer[cell]] = kMany;
  return reader;
}

// Whether `a` overwrites the result of `b`. A sum that is not stored counts: later writers of that
// chunk wait for it and rely on its dependences.
bool writes_over(const Instruction& a, const Instruction& b) {
  const bool writes = writes_target(a.op) || a.op == Op::receive_reduce_send;
  return writes && a.target.buffer == b.target.buffer && a.target.index < b.target.index + b.count &&
         b.target.index < a.target.index + a.count;
}

Instructions without_list(const Instructions& instructions) {
  Instructions result;
  result.name = instructions.name;
  result.collective = instructions.collective;
  result.placement = instructions.placement;
  result.input = instructions.input;
  result.output = instructions.output;
  result.scratch = instructions.scratch;
  result.blocks = instructions.blocks;
  return result;
}

}  // namespace

Instructions fuse(const Instructions& instructions) {
  const std::vector<std::int32_t> send_of = choose_sends(instructions);
  const std::vector<std::int32_t> reader = find_readers(instructions);
  const std::size_t size = static_cast<std::size_t>(instructions.size());

  // The new position of each instruction. A fused send has the position of its receive.
  std::vector<std::int32_t> now(size, -1);
  std::int32_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (now[i] < 0) now[i] = count++;
    if (send_of[i] >= 0) now[send_of[i]] = now[i];
  }

  Instructions result = without_list(instructions);
  result.list.reserve(static_cast<std::size_t>(count));
  result.first.push_back(0);
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    if (now[i] != result.size()) continue;
    Instruction it = instructions.list[i];
    if (const std::int32_t send = send_of[i]; send >= 0) {
      const bool copies = it.op == Op::receive;
      it.op = copies              ? Op::receive_copy_send
              : reader[i] == send ? Op::receive_reduce_send
                                  : Op::receive_reduce_copy_send;
      it.taker = instructions.list[send].taker;
      it.sent = instructions.list[send].sent;
      it.channel = std::max(it.channel, instructions.list[send].channel);
    }
    if (it.giver >= 0) it.giver = now[it.giver];
    if (it.taker >= 0) it.taker = now[it.taker];
    const auto start = result.after.size();
    for (const std::int32_t before : instructions.dependences(i)) result.after.push_back(now[before]);
    std::sort(result.after.begin() + static_cast<std::ptrdiff_t>(start), result.after.end());
    result.after.erase(
        std::unique(result.after.begin() + static_cast<std::ptrdiff_t>(start), result.after.end()),
        result.after.end());
    result.first.push_back(static_cast<std::int64_t>(result.after.size()));
    result.list.push_back(it);
  }
  return result;
}

Instructions unfuse_instructions(const Instructions& instructions, std::span<const std::int32_t> which) {
  std::vector<std::int32_t> now(static_cast<std::size_t>(instructions.size()));
  std::vector<bool> apart(now.size(), false);
  std::int32_t shift = 0;
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    now[i] = i + shift;
    if (static_cast<std::size_t>(shift) < which.size() && which[shift] == i) {
      apart[i] = true;
      ++shift;
    }
  }
  Instructions result = without_list(instructions);
  result.list.reserve(now.size() + which.size());
  result.first.push_back(0);
  for (std::int32_t i = 0; i < instructions.size(); ++i) {
    Instruction it = instructions.list[i];
    for (const std::int32_t before : instructions.dependences(i)) {
      result.after.push_back(now[before]);
      if (apart[before] && writes_over(it, instructions.list[before]))
        result.after.push_back(now[before] + 1);
    }
    result.first.push_back(static_cast<std::int64_t>(result.after.size()));
    if (it.giver >= 0) it.giver = now[it.giver] + (apart[it.giver] ? 1 : 0);
    if (it.taker >= 0) it.taker = now[it.taker];
    if (!apart[i]) {
      result.list.push_back(it);
      continue;
    }
    Instruction send = it;
    send.op = Op::send;
    send.source = it.target;
    send.giver = -1;
    send.done = -1;
    it.op = it.op == Op::receive_copy_send ? Op::receive : Op::receive_reduce_copy;
    it.taker = -1;
    it.sent = -1;
    result.list.push_back(it);
    result.list.push_back(send);
    result.after.push_back(now[i]);
    result.first.push_back(static_cast<std::int64_t>(result.after.size()));
  }
  return result;
}

}  // namespace weft::collective
