#include "weft/communication/comm/chunk/chunk_cursor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "weft/device/cpu/reduction.h"

namespace weft::comm {

using collective::Op;
using collective::Step;

namespace {

constexpr std::int64_t kPieces = 8;  // fragments of a chunk that would fit a slot

}  // namespace

std::int64_t MessageLimits::longest(std::int64_t chunk_bytes) const {
  if (least_bytes == 0) return slot_bytes;
  return std::min(std::max(chunk_bytes / kPieces, least_bytes), slot_bytes);
}

ChunkPass::ChunkPass(const ChunkMemory& memory, const ChunkShape& shape, ElementType type, ReduceOp op,
                     const MessageLimits& pieces)
    : memory_(memory),
      shape_(shape),
      type_(type),
      op_(op),
      element_(static_cast<std::int64_t>(device::size_of(type))) {
  const std::int64_t room = pieces.slot_bytes / element_;
  const std::int64_t longest = std::max<std::int64_t>(pieces.longest(shape.longest * element_) / element_, 1);
  slices_ = std::max<std::int64_t>(1, (shape.longest + longest - 1) / longest);
  const std::int64_t slice = std::max<std::int64_t>(1, (shape.longest + slices_ - 1) / slices_);
  slice_bytes_ = slice * element_;
  chunks_per_message_ = static_cast<std::int32_t>(
      std::min<std::int64_t>(room / slice, std::numeric_limits<std::int32_t>::max()));
}

collective::Extent ChunkPass::slice(std::int64_t slice, std::int64_t number) const {
  std::int64_t elements = shape_.longest;
  if (shape_.form == ChunkShape::Form::classed)
    elements = shape_.sizes[static_cast<std::size_t>((*shape_.steps)[static_cast<std::size_t>(number)])];
  const collective::Extent part = collective::chunk_extent(elements, slices_, slice);
  return {part.first * element_, part.size * element_};
}

ChunkCursor::ChunkCursor(const collective::Threadblock& block, transport::Outgoing* out,
                         transport::Incoming* in, std::int64_t first_chunk)
    : block_(&block), out_(out), in_(in), first_chunk_(first_chunk) {}

void ChunkCursor::begin(std::uint64_t label, const ChunkPass& pass) {
  if (out_ != nullptr) out_->set_label(label);
  if (in_ != nullptr) in_->set_label(label);
  slices_ = pass.slices();
  slice_ = block_->steps.empty() ? slices_ : 0;
  step_ = chunk_ = 0;
  begun_ = received_ = false;
  wait_ = Wait::nothing;
  step_chunk_ = first_chunk_;
  published_ = 0;
}

std::int64_t ChunkCursor::pieces() const {
  std::int64_t all = 0;
  if (__builtin_mul_overflow(slices_, static_cast<std::int64_t>(block_->steps.size()), &all))
    return std::numeric_limits<std::int64_t>::max();
  return all;
}

std::int32_t ChunkCursor::waiting_for() const {
  if (finished()) return -1;
  return wait_ == Wait::incoming ? block_->receive_from : wait_ == Wait::outgoing ? block_->send_to : -1;
}

bool ChunkCursor::may_begin(std::span<const ChunkCursor> blocks) {
  const Step& now = step();
  if (now.wait_block < 0) return true;
  const ChunkCursor& other = blocks[static_cast<std::size_t>(now.wait_block)];
  const auto steps = static_cast<std::int64_t>(other.block_->steps.size());
  return other.published_ >= slice_ * steps + now.wait_step + 1;
}

bool ChunkCursor::advance(const ChunkPass& pass, std::span<const ChunkCursor> blocks) {
  if (!begun_) {
    if (chunk_ == 0 && !may_begin(blocks)) {
      wait_ = Wait::block;
      return false;
    }
    find_runs(pass);
    begun_ = true;
  }
  if (message_bytes_ > 0 && !move(pass)) return false;
  moved_bytes_ = message_bytes_;
  end_message(pass);
  return true;
}

void ChunkCursor::find_runs(const ChunkPass& pass) {
  const Step& now = step();
  runs_.clear();
  message_bytes_ = 0;
  if (now.op == Op::nop) return;
  const ChunkMemory& memory = pass.memory();
  const ChunkArea& targets = memory.area(now.target.buffer);
  const bool reads = collective::reads_source(now.op), writes = collective::writes_target(now.op);
  const bool adds = collective::reads_target(now.op);
  const std::int32_t end = chunk_ + std::min(pass.chunks_per_message(), now.count - chunk_);
  for (std::int32_t chunk = chunk_; chunk < end; ++chunk) {
    const collective::Extent part = pass.slice(slice_, step_chunk_ + chunk);
    if (part.size == 0) continue;
    const std::int64_t number = step_chunk_ + chunk;
    const std::int64_t from = std::int64_t{now.source.index} + chunk;
    const std::int64_t to = std::int64_t{now.target.index} + chunk;
    Run run{.message = message_bytes_, .bytes = part.size};
    if (reads) run.source = memory.source(now.source.buffer, number).at(from) + part.first;
    if (writes) run.target = targets.at(to) + part.first;
    if (adds) run.addend = memory.addend(now.target.buffer, number).at(to) + part.first;
    message_bytes_ += run.bytes;
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if ((!reads || last.source + last.bytes == run.source) &&
          (!writes || last.target + last.bytes == run.target) &&
          (!adds || last.addend + last.bytes == run.addend)) {
        last.bytes += run.bytes;
        continue;
      }
    }
    runs_.push_back(run);
  }
}

bool ChunkCursor::move(const ChunkPass& pass) {
  const Op op = step().op;
  const auto elements = [&](const Run& run) {
    return static_cast<std::size_t>(run.bytes) / device::size_of(pass.type());
  };
  switch (op) {
    case Op::nop: return true;
    case Op::copy:
      for (const Run& run : runs_)
        if (run.target != run.source)
          std::memmove(run.target, run.source, static_cast<std::size_t>(run.bytes));
      return true;
    case Op::reduce:
      for (const Run& run : runs_)
        device::cpu::reduce_pair(pass.type(), pass.op(), run.target, run.addend, run.source, elements(run));
      return true;
    case Op::send: return send(false);
    case Op::receive:
    case Op::receive_reduce_copy: return receive(pass);
    case Op::receive_copy_send:
    case Op::receive_reduce_copy_send:
      // Free the incoming slot before asking for an outgoing one.
      received_ = received_ || receive(pass);
      return received_ && send(true);
    case Op::receive_reduce_send: return reduce_through(pass);
  }
  return true;
}

bool ChunkCursor::receive(const ChunkPass& pass) {
  wait_ = Wait::incoming;
  const auto bytes = static_cast<std::size_t>(message_bytes_);
  const bool reduces = collective::reads_source(step().op);
  if (!reduces && runs_.size() == 1) return in_->receive_into({runs_.front().target, bytes});
  const std::byte* const message = in_->front(bytes);
  if (message == nullptr) return false;
  for (const Run& run : runs_) {
    if (reduces)
      device::cpu::reduce_pair(pass.type(), pass.op(), run.target, run.source, message + run.message,
                               static_cast<std::size_t>(run.bytes) / device::size_of(pass.type()));
    else
      std::memcpy(run.target, message + run.message, static_cast<std::size_t>(run.bytes));
  }
  in_->pop();
  return true;
}

bool ChunkCursor::send(bool from_target) {
  wait_ = Wait::outgoing;
  const auto bytes = static_cast<std::size_t>(message_bytes_);
  const auto place = [&](const Run& run) { return from_target ? run.target : run.source; };
  if (runs_.size() == 1) return out_->send_from({place(runs_.front()), bytes});
  std::byte* const room = out_->room(bytes);
  if (room == nullptr) return false;
  for (const Run& run : runs_)
    std::memcpy(room + run.message, place(run), static_cast<std::size_t>(run.bytes));
  out_->send();
  return true;
}

bool ChunkCursor::reduce_through(const ChunkPass& pass) {
  const auto bytes = static_cast<std::size_t>(message_bytes_);
  wait_ = Wait::incoming;
  const std::byte* const message = in_->front(bytes);
  if (message == nullptr) return false;
  wait_ = Wait::outgoing;
  std::byte* const room = out_->room(bytes);
  if (room == nullptr) return false;
  for (const Run& run : runs_)
    device::cpu::reduce_pair(pass.type(), pass.op(), room + run.message, run.source, message + run.message,
                             static_cast<std::size_t>(run.bytes) / device::size_of(pass.type()));
  in_->pop();
  out_->send();
  return true;
}

void ChunkCursor::end_message(const ChunkPass& pass) {
  wait_ = Wait::nothing;
  begun_ = received_ = false;
  const Step& now = step();
  const std::int32_t count = now.op == Op::nop ? 1 : now.count;
  if (count - chunk_ > pass.chunks_per_message()) {
    chunk_ += pass.chunks_per_message();
    return;
  }
  chunk_ = 0;
  if (now.publishes) published_ = position() + 1;
  step_chunk_ += count;
  if (++step_ < static_cast<std::int32_t>(block_->steps.size())) return;
  step_ = 0;
  step_chunk_ = first_chunk_;
  ++slice_;
}

}  // namespace weft::comm
