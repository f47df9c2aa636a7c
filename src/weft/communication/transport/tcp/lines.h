// weft/communication/transport/tcp/lines.h -- all open connections of an endpoint: one lock, one place to wait.
//
//   calls on a connection ──▶ lock, then Sender or Receiver    a call that is held up arms its line
//   wait()                ──▶ poll() on armed lines            one that can go on is disarmed: signal changes
//                             and on those with unasked bytes  drained, so that their senders can go on
//
// A message that was written to room() and that the kernel did not take whole is sent on by whoever waits or
// calls progress(), and if nobody does, by a thread that is started the first time this happens.
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
  // `bell`: an event descriptor that others may ring too, which ends wait(); none: one of its own.
  static Result<std::shared_ptr<Lines>> create(const Patience& patience, Socket bell = Socket());
  ~Lines();  // gives leftovers a second

  // The ends that callers hold keep the lines alive.
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
    look,      // what somebody waits for
    look_all,  // and what may come unasked
    armed,     // as `look`, and the bell
    all        // as `look_all`, and the bell
  };

  Lines(const Patience& patience, Socket bell) : patience_(patience), bell_(std::move(bell)) {}

  Watch watch(Scope scope);
  // Waits for what is watched, at most `limit`; whether signal() is no longer `seen` then.
  bool look(Watch& watch, std::uint32_t seen, std::chrono::nanoseconds limit);
  void read_ahead(const Watch& watch);
  void handle(const Watch& watch);
  void silence();
  void sleep(std::uint32_t seen, std::chrono::steady_clock::time_point until);

  void note(const std::optional<WireFault>& fault);
  void note_leftover(const std::shared_ptr<Sender>& sender);
  bool flush_leftovers();
  void send_leftovers();  // the thread

  const Patience patience_;
  const Socket bell_;  // an eventfd: rung by wake() where somebody sleeps
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<std::int32_t> sleepers_{0};  // changed under the lock
  std::atomic<bool> rung_{false};          // since the last sleeper left
  std::atomic<std::int32_t> luck_{1};      // how well spinning has paid lately
  std::atomic<std::uint32_t> vain_spins_{0};
  std::atomic<bool> faulty_{false};
  std::atomic<bool> any_leftover_{false};

  std::mutex mutex_;  // guards what follows, and every Sender and Receiver
  std::vector<std::shared_ptr<Sender>> senders_;
  std::vector<std::shared_ptr<Receiver>> receivers_;
  std::vector<std::shared_ptr<Sender>> leftovers_;  // these outlive their owners until they are sent
  std::optional<WireFault> fault_;
  std::thread leftover_thread_;
  std::condition_variable leftover_work_;
  std::optional<std::chrono::steady_clock::time_point> give_up_;  // set when the end has come
};

}  // namespace weft::transport::tcp
