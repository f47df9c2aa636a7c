// weft/communication/transport/tcp/lines.h -- all open connections of an endpoint: one lock, one
// place to wait.
//
//   calls on a connection ──▶ lock, then Sender or Receiver    a blocked call arms its connection
//   wait()                ──▶ poll() on armed connections      a ready one is disarmed: signal changes
//                             and on those with unread data    drained, so that their senders can progress
//
// A message written to room() that the kernel accepted only in part is sent on by any thread in
// wait() or progress(). If there is none, a thread does it that is started the first time this
// happens.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/tcp/connection.h"

namespace weft::transport::tcp {

class Lines : public std::enable_shared_from_this<Lines> {
 public:
  // `bell`: an event descriptor that ends wait() when rung by others; empty: creates one.
  static Result<std::shared_ptr<Lines>> create(const Patience& patience, Socket bell = Socket());
  ~Lines();  // leftovers have a second to be sent

  // The returned ends keep this object alive.
  std::unique_ptr<Outgoing> add(std::unique_ptr<Sender> sender);
  std::unique_ptr<Incoming> add(std::unique_ptr<Receiver> receiver);

  // As in Endpoint.
  bool progress();
  std::uint32_t signal() const { return signal_.load(std::memory_order_seq_cst); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience);
  void wake();
  std::optional<WireFault> fault();

 private:
  class Out;
  class In;
  struct Watch;
  enum class Scope : std::uint8_t {
    look,      // connections with a pending request
    look_all,  // also those that may have unrequested data
    armed,     // as `look`, and the bell
    all        // as `look_all`, and the bell
  };

  Lines(const Patience& patience, Socket bell) : patience_(patience), bell_(std::move(bell)) {}

  Watch watch(Scope scope);
  // Polls `watch`, at most `limit`; returns whether signal() differs from `seen` afterwards.
  bool look(Watch& watch, std::uint32_t seen, std::chrono::nanoseconds limit);
  void read_ahead(const Watch& watch);
  void handle(const Watch& watch);
  void silence();
  void sleep(std::uint32_t seen, std::chrono::steady_clock::time_point until);

  void note(const std::optional<WireFault>& fault);
  void note_leftover(const std::shared_ptr<Sender>& sender);
  bool flush_leftovers();
  void send_leftovers();  // run by leftover_thread_

  const Patience patience_;
  const Socket bell_;  // an eventfd: rung by wake() if a thread sleeps
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<std::int32_t> sleepers_{0};  // changed under the lock
  std::atomic<bool> rung_{false};          // since the last sleeper left
  std::atomic<std::int32_t> luck_{1};      // recent success of spinning
  std::atomic<std::uint32_t> vain_spins_{0};
  std::atomic<bool> faulty_{false};
  std::atomic<bool> any_leftover_{false};

  std::mutex mutex_;  // guards the following members, and every Sender and Receiver
  std::vector<std::shared_ptr<Sender>> senders_;
  std::vector<std::shared_ptr<Receiver>> receivers_;
  std::vector<std::shared_ptr<Sender>> leftovers_;  // kept alive until they are sent
  std::optional<WireFault> fault_;
  std::thread leftover_thread_;
  std::condition_variable leftover_work_;
  std::optional<std::chrono::steady_clock::time_point> give_up_;  // set by the destructor
};

}  // namespace weft::transport::tcp
