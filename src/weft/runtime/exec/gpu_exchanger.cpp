#include "weft/runtime/exec/gpu_exchanger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/runtime/exec/exchange_call.h"

namespace weft::exec {

using program::Exchange;

Result<std::shared_ptr<GpuRendezvous>> GpuRendezvous::make(const std::shared_ptr<device::Device>& device) {
  auto gpu = std::dynamic_pointer_cast<device::cuda::Gpu>(device);
  if (gpu == nullptr) return user_error(fmt::format("{} is not a GPU", device->name()));
  return std::make_shared<GpuRendezvous>(std::move(gpu));
}

GpuExchanger::GpuExchanger(std::shared_ptr<GpuRendezvous> meeting, CommExchanger& inner, plan::Mesh mesh,
                           std::int32_t rank)
    : meeting_(std::move(meeting)), inner_(inner), mesh_(std::move(mesh)), rank_(rank) {}

GpuExchanger::~GpuExchanger() { leave(environment_error(fmt::format("rank {} has left the job", rank_))); }

bool GpuExchanger::is_on_device(const Exchange& exchange) const { return !is_message(exchange.kind); }

Status GpuExchanger::prepare(std::span<const Exchange* const> exchanges) {
  WEFT_TRY_STATUS(inner_.prepare(exchanges));
  std::map<std::string, std::uint32_t> met;  // number of exchanges per axis so far
  bool has_messages = false;
  for (const Exchange* const exchange : exchanges) {
    if (is_message(exchange->kind)) {
      has_messages = true;
      continue;
    }
    const auto axis = static_cast<std::size_t>(mesh_.find(exchange->axis));
    const std::vector<std::int32_t> group = mesh_.group(rank_, axis);
    WEFT_TRY(given, meeting_->gpu_->make_event());
    mine_[exchange] = {.key = {exchange->axis, group.front(), met[exchange->axis]++},
                       .place = static_cast<std::size_t>(mesh_.coordinate(rank_, axis)),
                       .ranks = group.size(),
                       .given = std::move(given)};
  }
  const std::lock_guard lock(meeting_->mutex_);
  ++meeting_->prepared_;
  meeting_->has_messages_ = meeting_->has_messages_ || has_messages;
  meeting_->changed_.notify_all();
  return {};
}

Status GpuExchanger::move(GpuRendezvous::Place& place, device::Stream& stream) {
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
  // A program uses the same addresses in every step, so this binds once.
  if (place.ready == nullptr || memory != place.bound) {
    WEFT_TRY(ready, comm::gpu::GpuDirect::bind(meeting_->gpu_, place.calls));
    WEFT_TRY(done, meeting_->gpu_->make_event());
    place.ready = std::move(ready);
    place.bound = std::move(memory);
    place.done = std::move(done);
  }
  for (const device::Event* const given : place.given) stream.wait(*given);
  place.ready->start(stream);
  stream.record(*place.done);
  return {};
}

Status GpuExchanger::enqueue(const Exchange& exchange, const std::byte* operand, std::byte* result,
                             device::Stream& stream) {
  const auto found = mine_.find(&exchange);
  WEFT_CHECK(found != mine_.end(), "an exchange that was not prepared");
  const Mine& mine = found->second;
  stream.record(*mine.given);
  std::unique_lock lock(meeting_->mutex_);
  GpuRendezvous::Place& place = meeting_->places_[mine.key];
  place.calls.resize(mine.ranks);
  place.exchanges.resize(mine.ranks);
  place.given.resize(mine.ranks);
  comm::Call call = call_of(exchange);
  call.input = operand;
  call.output = result;
  place.calls[mine.place] = call;
  place.exchanges[mine.place] = &exchange;
  place.given[mine.place] = mine.given.get();
  WEFT_TRY_STATUS(meeting_->gather(lock, place.gathering, mine.ranks, [&] { return move(place, stream); }));
  // `done` is recorded again only after this rank has arrived again.
  stream.wait(*place.done);
  return {};
}

bool GpuExchanger::records() {
  std::unique_lock lock(meeting_->mutex_);
  meeting_->changed_.wait(lock, [&] { return meeting_->prepared_ >= all() || meeting_->stopped_; });
  return !meeting_->has_messages_ && !meeting_->stopped_;
}

Status GpuExchanger::start_recording(std::span<device::Stream* const> streams) {
  std::unique_lock lock(meeting_->mutex_);
  GpuRendezvous::Recorded& recorded = meeting_->recorded_;
  WEFT_TRY_STATUS(meeting_->gather(lock, meeting_->all_, all(), [&]() -> Status {
    WEFT_TRY(stream, meeting_->gpu_->make_stream({.computes = false}));
    WEFT_TRY(begun, meeting_->gpu_->make_event());
    WEFT_TRY(done, meeting_->gpu_->make_event());
    recorded = {.stream = std::move(stream), .begun = std::move(begun), .done = std::move(done)};
    device::as_recording(*recorded.stream)->start_recording();
    recorded.stream->record(*recorded.begun);
    return {};
  }));
  // Streams that wait on a recorded event join the recording.
  for (device::Stream* const stream : streams) stream->wait(*recorded.begun);
  return {};
}

Status GpuExchanger::end_recording(std::span<device::Stream* const> streams) {
  std::unique_lock lock(meeting_->mutex_);
  GpuRendezvous::Recorded& recorded = meeting_->recorded_;
  for (device::Stream* const stream : streams) {
    WEFT_TRY(ended, meeting_->gpu_->make_event());
    stream->record(*ended);
    recorded.ended.push_back(std::move(ended));
  }
  return meeting_->gather(lock, meeting_->all_, all(), [&]() -> Status {
    for (const auto& ended : recorded.ended) recorded.stream->wait(*ended);
    WEFT_TRY(recording, device::as_recording(*recorded.stream)->end_recording());
    recorded.recording = std::move(recording);
    return {};
  });
}

Result<device::Event*> GpuExchanger::run_recorded() {
  std::unique_lock lock(meeting_->mutex_);
  GpuRendezvous::Recorded& recorded = meeting_->recorded_;
  WEFT_TRY_STATUS(meeting_->gather(lock, meeting_->all_, all(), [&]() -> Status {
    device::as_recording(*recorded.stream)->launch(*recorded.recording);
    recorded.stream->record(*recorded.done);
    return {};
  }));
  return recorded.done.get();
}

Status GpuExchanger::run(const Exchange& exchange, const std::byte* operand, std::byte* result) {
  WEFT_CHECK(is_message(exchange.kind), "an exchange of the device's is enqueued");
  return inner_.run(exchange, operand, result);
}

Result<Exchanger::Handle> GpuExchanger::start(const Exchange& exchange, const std::byte* operand,
                                              std::byte* result) {
  WEFT_CHECK(is_message(exchange.kind), "an exchange of the device's is enqueued");
  return inner_.start(exchange, operand, result);
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
