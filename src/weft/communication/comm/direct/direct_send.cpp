// Sends between two ranks: they have a ring of slots that involves no other rank.
#include <algorithm>
#include <cstring>

#include "weft/communication/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

// Upper bound per step.
constexpr std::size_t kSendStepBytes = 128 << 10;

PairCounters& counters(std::byte* pair) { return *reinterpret_cast<PairCounters*>(pair); }
std::byte* payload(PairHeader& slot) { return reinterpret_cast<std::byte*>(&slot + 1); }

std::size_t bytes_of_piece(const DirectOperation& operation) {
  const std::size_t all = operation.blocks.largest(), unit = operation.cut.unit;
  return std::min(unit, all - std::min<std::size_t>(operation.cut.taken * unit, all));
}

Progress finish(DirectOperation& operation, DirectWire& wire) {
  wire.pieces += operation.cut.count;
  return operation.done();
}

}  // namespace

Progress SendStage::step(DirectOperation& operation) {
  DirectSide& side = *operation.side;
  const Call& call = operation.call;
  DirectWire& wire =
      side.streams[static_cast<std::size_t>(call.priority)].to[static_cast<std::size_t>(call.peer)];
  std::byte* const pair =
      side.layout.pair(side.segment.data(), static_cast<std::size_t>(call.priority), side.rank, call.peer);
  std::size_t moved = 0;
  while (operation.cut.taken < operation.cut.count) {
    const std::uint64_t piece = wire.pieces + operation.cut.taken;
    SharedWord& received = counters(pair).received;
    if (piece >= kPairSlots && !reached(received, seen, piece - kPairSlots + 1)) {
      if (moved != 0) return Progress::moved;
      return operation.blocked(call.peer, received, piece - kPairSlots + 1);
    }
    PairHeader& slot = side.layout.pair_slot(pair, piece);
    slot.what.store(pack_what(call, false, false), std::memory_order_relaxed);
    slot.count.store(static_cast<std::uint64_t>(call.count), std::memory_order_relaxed);
    const std::size_t bytes = bytes_of_piece(operation);
    if (bytes != 0)
      std::memcpy(payload(slot), operation.input() + operation.cut.taken * operation.cut.unit, bytes);
    counters(pair).sent.store(piece + 1, std::memory_order_release);
    side.bells().ring(call.peer);
    ++operation.cut.taken;
    if ((moved += bytes) >= kSendStepBytes) return Progress::moved;
  }
  return finish(operation, wire);
}

Progress ReceiveStage::step(DirectOperation& operation) {
  DirectSide& side = *operation.side;
  const Call& call = operation.call;
  DirectWire& wire =
      side.streams[static_cast<std::size_t>(call.priority)].from[static_cast<std::size_t>(call.root)];
  std::byte* const pair =
      side.layout.pair(side.segment.data(), static_cast<std::size_t>(call.priority), call.root, side.rank);
  std::size_t moved = 0;
  while (operation.cut.taken < operation.cut.count) {
    const std::uint64_t piece = wire.pieces + operation.cut.taken;
    SharedWord& sent = counters(pair).sent;
    if (!reached(sent, seen, piece + 1)) {
      if (moved != 0) return Progress::moved;
      return operation.blocked(call.root, sent, piece + 1);
    }
    PairHeader& slot = side.layout.pair_slot(pair, piece);
    const std::uint64_t what = slot.what.load(std::memory_order_relaxed);
    const std::uint64_t count = slot.count.load(std::memory_order_relaxed);
    if (what != pack_what(call, false, false) || count != static_cast<std::uint64_t>(call.count))
      return fail_mismatch(operation, call.root, what, count);
    const std::size_t bytes = bytes_of_piece(operation);
    if (bytes != 0)
      std::memcpy(operation.output() + operation.cut.taken * operation.cut.unit, payload(slot), bytes);
    counters(pair).received.store(piece + 1, std::memory_order_release);
    side.bells().ring(call.root);
    ++operation.cut.taken;
    if ((moved += bytes) >= kSendStepBytes) return Progress::moved;
  }
  return finish(operation, wire);
}

void DirectOperation::start_send() {
  stream = nullptr;
  plan.way = DirectAlgorithm::one_shot;
  plan.takes = true;
  cut.unit = side->layout.pair_bytes();
  // At least one fragment: the receiver of an empty message still waits for the sender.
  cut.count = std::max<std::uint64_t>((blocks.largest() + cut.unit - 1) / cut.unit, 1);
  if (side->rank == call.root) {
    stage = SendStage{};
  } else if (side->rank == call.peer) {
    stage = ReceiveStage{};
  } else {
    stage = Over{};
  }
}

}  // namespace weft::comm
