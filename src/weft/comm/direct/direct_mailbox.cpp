// Small calls: every rank's data lies behind its announcement, so one look finds both.
#include <algorithm>
#include <array>
#include <cstring>

#include "weft/comm/direct/direct_operation.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (bytes != 0 && target != source) std::memcpy(target, source, bytes);
}

// In the order of ranks, so that every rank gets the same bits.
void combine_entries(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  std::array<const void*, transport::kMostLocalRanks> terms;
  const auto ranks = static_cast<std::size_t>(operation.side->ranks);
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    const std::byte* data =
        other == me ? operation.input() : operation.sources[static_cast<std::size_t>(other)].data;
    terms[static_cast<std::size_t>(other)] = data + operation.blocks.sent_at(other, me);
  }
  const Call& call = operation.call;
  const std::size_t elements = operation.blocks.bytes(me, me) / device::size_of(call.type);
  if (elements == 0) return;
  device::cpu::reduce(call.type, call.op, call.output, std::span(terms).first(ranks), elements);
  if (call.op == ReduceOp::avg)
    device::cpu::finish_average(call.type, call.output, elements, operation.side->ranks);
}

void take_own(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  if (operation.output() == nullptr || !has_input(operation.call, me)) return;
  copy(operation.output() + operation.blocks.landed_at(me, me),
       operation.input() + operation.blocks.sent_at(me, me), operation.blocks.bytes(me, me));
}

// Of an entry that may follow, so much.
constexpr std::size_t kMostExpected = 4 << 10;

// Makes a line this core's own again before it is written: others have read it, and a store would wait.
void expect_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" ::"r"(line));  // the builtin means a plain one unless told of the processor
#else
  __builtin_prefetch(line, 1);
#endif
}

// The next call is likely to be as long as this one.
void expect_next_entry(const DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  std::byte* const part = operation.peer(side.rank).part;
  CallHeader& header = side.layout.header(part, operation.sequence + 1);
  expect_to_write(&header);
  const std::size_t bytes = operation.blocks.given(side.rank);
  if (bytes <= kInlineBytes) return;
  const std::size_t ring = side.layout.mailbox_bytes();
  const std::uint64_t start = operation.stream->mailbox_end % ring;
  const std::byte* const entry = side.layout.entry(part, header, bytes, start + bytes <= ring ? start : 0);
  for (std::size_t at = 0; at < std::min(bytes, kMostExpected); at += kCacheLine) expect_to_write(entry + at);
}

// Of those that are missing, whoever needs this core to go on is waited for first.
Progress await_core_first(DirectOperation& operation, Progress& answer) {
  DirectSide& side = *operation.side;
  for (std::int32_t other = 0; other < side.ranks; ++other) {
    if (other == side.rank || !operation.blocks.gives(other) || !side.shares_core(other)) continue;
    if (operation.source(other, answer) == nullptr) return answer;
  }
  side.core_is_idle.store(true, std::memory_order_relaxed);
  return Progress::blocked;
}

}  // namespace

Progress step_mailbox(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  const Kind kind = operation.call.kind;
  const bool reduces = collective::reduces(kind);
  Progress answer = Progress::done;
  if (!operation.posted) {
    if (!operation.post(answer)) return answer;
    if (!reduces && has_output(operation.call, me)) take_own(operation);
  }
  if (operation.takes) {
    const std::int32_t begin = operation.next;
    for (; operation.next < operation.side->ranks; ++operation.next) {
      // Not all look at rank 0 at first.
      std::int32_t other = me + 1 + operation.next;
      if (other >= operation.side->ranks) other -= operation.side->ranks;
      if (other == me || !blocks.gives(other)) continue;
      const DirectSource* const source = operation.source(other, answer);
      if (source == nullptr) {
        if (answer != Progress::blocked) return answer;
        // Whoever drives this may take much trouble over what is blocked again and again.
        if (operation.next > begin + 1) return Progress::moved;
        return operation.side->oversubscribed ? await_core_first(operation, answer) : answer;
      }
      if (!reduces)
        copy(operation.output() + blocks.landed_at(other, me), source->data + blocks.sent_at(other, me),
             blocks.bytes(other, me));
    }
    if (reduces && kind != Kind::barrier) combine_entries(operation);
    if (operation.gives) expect_next_entry(operation);
  }
  // Whoever needs this rank to have finished either offered a buffer or gave without taking.
  operation.finish_reading(operation.reads_buffers || has_root(kind));
  if (operation.offer != Offer::buffer) return operation.done();
  operation.next = 0;
  operation.stage = step_close;
  return step_close(operation);
}

Progress step_alone(DirectOperation& operation) {
  const Call& call = operation.call;
  if (has_input(call, 0) && has_output(call, 0)) take_own(operation);
  return operation.done();
}

}  // namespace weft::comm
