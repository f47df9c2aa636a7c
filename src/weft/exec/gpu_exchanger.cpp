#include "weft/exec/gpu_exchanger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/exec/exchange_call.h"

namespace weft::exec {

using program::Exchange;

Result<std::shared_ptr<GpuMeeting>> GpuMeeting::make(const std::shared_ptr<device::Device>& device) {
  auto gpu = std::dynamic_pointer_cast<device::cuda::Gpu>(device);
  if (gpu == nullptr) return user_error(fmt::format("{} is no GPU", device->name()));
  return std::make_shared<GpuMeeting>(std::move(gpu));
}

GpuExchanger::GpuExchanger(std::shared_ptr<GpuMeeting> meeting, CommExchanger& inner, plan::Mesh mesh,
                           std::int32_t rank)
    : meeting_(std::move(meeting)), inner_(inner), mesh_(std::move(mesh)), rank_(rank) {}

GpuExchanger::~GpuExchanger() { leave(world_error(fmt::format("rank {} has left", rank_))); }

bool GpuExchanger::is_on_device(const Exchange& exchange) const { return !is_message(exchange.kind); }

Status GpuExchanger::prepare(std::span<const Exchange* const> exchanges) {
  WEFT_TRY_STATUS(inner_.prepare(exchanges));
  std::map<std::string, std::uint32_t> met;  // exchanges along each axis
  for (const Exchange* const exchange : exchanges) {
    const auto number = static_cast<std::uint32_t>(by_number_.size());
    by_number_.push_back(exchange);
    if (is_message(exchange->kind)) continue;
    const auto axis = static_cast<std::size_t>(mesh_.find(exchange->axis));
    const std::vector<std::int32_t> group = mesh_.group(rank_, axis);
    mine_[exchange] = {.key = {exchange->axis, group.front(), met[exchange->axis]++},
                       .place = static_cast<std::size_t>(mesh_.coordinate(rank_, axis)),
                       .ranks = group.size(),
                       .number = number};
  }
  return {};
}

Result<device::Stream*> GpuExchanger::stream() {
  const std::lock_guard lock(mutex_);
  auto& mine = streams_[std::this_thread::get_id()];
  if (mine == nullptr) {
    WEFT_TRY(made, meeting_->gpu_->make_stream({.computes = false}));
    mine = std::move(made);
  }
  return mine.get();
}

Status GpuExchanger::move(GpuMeeting::Place& place) {
  const Exchange& any = *place.exchanges.front();
  const auto ranks = static_cast<std::int64_t>(place.calls.size());
  if (any.kind == Exchange::Kind::permute_ranks) {
    place.counts = shifted_counts(ranks, any.shift, any.counts.at(0));
  } else if (any.kind == Exchange::Kind::all_to_all || any.kind == Exchange::Kind::halo) {
    place.counts.clear();
    for (const Exchange* const one : place.exchanges)
      place.counts.insert(place.counts.end(), one->counts.begin(), one->counts.end());
  } else if (any.kind == Exchange::Kind::all_gather || any.kind == Exchange::Kind::reduce_scatter) {
    place.counts = any.counts;
  }
  std::vector<std::pair<const void*, void*>> memory;
  for (comm::Call& call : place.calls) {
    call.count = any.counts.at(0);
    call.counts = place.counts;
    memory.emplace_back(call.input, call.output);
  }
  // A program's places are the same in every step.
  if (place.ready == nullptr || memory != place.bound) {
    WEFT_TRY(ready, comm::gpu::GpuDirect::bind(meeting_->gpu_, place.calls));
    place.ready = std::move(ready);
    place.bound = std::move(memory);
  }
  WEFT_TRY(on, stream());
  place.ready->start(*on);
  return on->synchronize();
}

Status GpuExchanger::run(const Exchange& exchange, const std::byte* operand, std::byte* result) {
  if (is_message(exchange.kind)) return inner_.run(exchange, operand, result);
  const auto found = mine_.find(&exchange);
  WEFT_CHECK(found != mine_.end(), "an exchange that was not prepared");
  const Mine& mine = found->second;
  std::unique_lock lock(meeting_->mutex_);
  if (meeting_->stopped_) return *meeting_->stopped_;
  GpuMeeting::Place& place = meeting_->places_[mine.key];
  place.calls.resize(mine.ranks);
  place.exchanges.resize(mine.ranks);
  comm::Call call = call_of(exchange);
  call.input = operand;
  call.output = result;
  place.calls[mine.place] = call;
  place.exchanges[mine.place] = &exchange;
  const std::uint64_t before = place.times;
  if (++place.come < mine.ranks) {
    // Whoever left while its memory is still read and written would take that away.
    meeting_->changed_.wait(lock,
                            [&] { return place.times != before || (meeting_->stopped_ && !place.moves); });
    return place.times != before ? place.status : Status(*meeting_->stopped_);
  }
  place.come = 0;
  place.moves = true;
  lock.unlock();
  Status status = move(place);  // all of its ranks wait here: nobody else touches the place
  lock.lock();
  place.moves = false;
  place.status = status;
  ++place.times;
  meeting_->changed_.notify_all();
  return status;
}

Result<Exchanger::Handle> GpuExchanger::start(const Exchange& exchange, const std::byte* operand,
                                              std::byte* result) {
  if (is_message(exchange.kind)) return inner_.start(exchange, operand, result);
  WEFT_TRY_STATUS(run(exchange, operand, result));  // done, then: there is nothing left to wait for
  return Handle{mine_.at(&exchange).number};
}

bool GpuExchanger::test(Handle handle) {
  return is_message(by_number_[handle.number]->kind) ? inner_.test(handle) : true;
}

Status GpuExchanger::wait(Handle handle) {
  return is_message(by_number_[handle.number]->kind) ? inner_.wait(handle) : Status();
}

void GpuExchanger::leave(const Error& why) {
  {
    const std::lock_guard lock(meeting_->mutex_);
    if (!meeting_->stopped_) meeting_->stopped_ = why;
  }
  meeting_->changed_.notify_all();
}

void GpuExchanger::stop(const Error& why) {
  leave(why);
  inner_.stop(why);
}

}  // namespace weft::exec
