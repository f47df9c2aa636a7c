// Small calls: the data of each rank is stored next to its announcement, so one read gets both.
#include <algorithm>
#include <array>
#include <cstring>

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

void copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (bytes != 0 && target != source) std::memcpy(target, source, bytes);
}

// In rank order, so that every rank gets bitwise equal results.
void combine_entries(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  std::array<const void*, transport::kMostLocalRanks> terms;
  const auto ranks = static_cast<std::size_t>(operation.side->ranks);
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    const std::byte* data = other == me ? operation.input() : operation.known(other).data;
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

// Bytes of the next entry to prefetch.
constexpr std::size_t kMostExpected = 4 << 10;

// Prefetches a line for writing: other cores have read it, and the store would wait for ownership.
void expect_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" ::"r"(line));  // by default the builtin emits a plain prefetch
#else
  __builtin_prefetch(line, 1);
#endif
}

// The next call is likely to have the same size. (Calls of 256 B among 2 to 8 ranks: 1.1 to 1.3
// times as fast.)
void expect_next_entry(const DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  std::byte* const part = operation.peer(side.rank).part;
  CallHeader& header = side.layout.header(part, operation.sequence + 1);
  expect_to_write(&header);
  const std::size_t bytes = operation.blocks.given(side.rank);
  if (bytes <= kInlineBytes) return;
  const MailboxRing& mailbox = operation.stream->mailbox;
  const std::uint64_t start = mailbox.offset_of(mailbox.room(operation.sequence + 1, bytes));
  const std::byte* const entry = side.layout.entry(part, header, bytes, start);
  for (std::size_t at = 0; at < std::min(bytes, kMostExpected); at += kCacheLine) expect_to_write(entry + at);
}

}  // namespace

Progress MailboxStage::step(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const Blocks& blocks = operation.blocks;
  const Kind kind = operation.call.kind;
  const bool reduces = collective::reduces(kind);
  Progress answer = Progress::done;
  if (!operation.posted) {
    if (!operation.post(answer)) return answer;
    if (!reduces && has_output(operation.call, me)) take_own(operation);
  }
  if (operation.plan.takes) {
    const std::int32_t begin = next;
    for (; next < ranks; ++next) {
      // Ranks start at different peers, to avoid contention on rank 0.
      std::int32_t other = me + 1 + next;
      if (other >= ranks) other -= ranks;
      if (other == me || !blocks.gives(other)) continue;
      const DirectSource* const source = operation.source(other, answer);
      // Report progress if there was any: an operation that blocks repeatedly is expensive for its
      // driver.
      if (source == nullptr)
        return answer == Progress::blocked && next > begin + 1 ? Progress::moved : answer;
      reads_buffers |= is_own(source->offer);
      if (!reduces)
        copy(operation.output() + blocks.landed_at(other, me), source->data + blocks.sent_at(other, me),
             blocks.bytes(other, me));
    }
    if (reduces && kind != Kind::barrier) combine_entries(operation);
    if (operation.plan.gives) expect_next_entry(operation);
  }
  // A rank waits for this one to finish if it offered a buffer, or if it sends without receiving.
  operation.finish_reading(reads_buffers || has_root(kind));
  return operation.plan.offer == Offer::buffer ? operation.go_on_with(CloseStage{}) : operation.done();
}

Progress SingleRankStage::step(DirectOperation& operation) {
  const Call& call = operation.call;
  if (has_input(call, 0) && has_output(call, 0)) take_own(operation);
  return operation.done();
}

}  // namespace weft::comm
