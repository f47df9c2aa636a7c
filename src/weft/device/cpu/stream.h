// weft/device/cpu/stream.h -- streams and events of the processor.
//
//   record(e)   the event's ticket goes up, and the stream, when it comes so far, says that ticket is done
//   wait(e)     the stream stops until the ticket that the event had at the call is done
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weft/device/device.h"

namespace weft::device::cpu {

// Shared with the streams that it was recorded on or that wait for it: an event may go before they come so
// far.
class EventState {
 public:
  std::uint64_t new_ticket();  // recorded once more
  std::uint64_t last_ticket() const;
  void finish(std::uint64_t ticket, const Status& status);
  bool is_done() const;
  Status wait_for(std::uint64_t ticket) const;
  std::chrono::steady_clock::time_point when() const;  // the last recorded was done

 private:
  mutable std::mutex lock_;
  mutable std::condition_variable news_;
  std::uint64_t recorded_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point when_;
  Status status_;  // of the stream, when the last of those done was
};

class CpuEvent final : public Event {
 public:
  bool is_done() const override { return state_->is_done(); }
  Status wait() override { return state_->wait_for(state_->last_ticket()); }
  double seconds_since(const Event& earlier) const override;
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  const std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

// Does the work in the call.
Result<std::unique_ptr<Stream>> make_caller_stream(std::int64_t scratch_bytes);
// A thread of its own does it.
Result<std::unique_ptr<Stream>> make_thread_stream(std::int64_t scratch_bytes);

}  // namespace weft::device::cpu
