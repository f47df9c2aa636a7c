// weft/device/cpu/stream.h -- streams and events of the processor.
//
//   record(e)   takes the event's next ticket; the stream marks it done when it reaches this point
//   wait(e)     the stream blocks until the event's latest ticket at the time of the call is done
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weft/device/device.h"

namespace weft::device::cpu {

// Shared with the streams that recorded the event or wait for it: the event may be destroyed before
// they reach that point.
class EventState {
 public:
  std::uint64_t new_ticket();  // for a new recording
  std::uint64_t last_ticket() const;
  void finish(std::uint64_t ticket, const Status& status);
  bool is_done() const;
  Status wait_for(std::uint64_t ticket) const;
  std::chrono::steady_clock::time_point when() const;  // time at which the latest recording was done

 private:
  mutable std::mutex lock_;
  mutable std::condition_variable news_;
  std::uint64_t recorded_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point when_;
  Status status_;  // of the stream, at the latest recording done
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

// Each call does its work on the calling thread.
Result<std::unique_ptr<Stream>> make_caller_stream(std::int64_t scratch_bytes);
// A separate thread does the work.
Result<std::unique_ptr<Stream>> make_thread_stream(std::int64_t scratch_bytes);

}  // namespace weft::device::cpu
