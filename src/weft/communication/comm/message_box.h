// weft/communication/comm/message_box.h -- a rank's messages with tags: those that came and were not taken, and receives that
// wait for one.
//
//   short     sender ── message ──▶ kept at the receiver until taken          taken ──▶ sender has room again
//   long      sender ── announce ─▶ a receive asks for it ── come ──▶ sender ── pieces ─▶ into its memory
//
// What one rank may have kept at another is bounded (kRoom); beyond it short messages go as long ones do. An
// announcement always passes, so that a receive finds any message, whatever else was not taken.
// All of it from any thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/deadline.h"
#include "weft/communication/comm/message.h"
#include "weft/communication/comm/metrics.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

class MessageBox : public std::enable_shared_from_this<MessageBox> {
 public:
  static constexpr std::size_t kShort = 64 << 10, kRoom = 1 << 20;    // bytes
  static constexpr std::size_t kPiece = 256 << 10, kPiecesAhead = 4;  // of a long message

  // `members` are job ranks in the order of the group. `failure` tells whether the group can go on;
  // `metrics` may be null.
  static std::shared_ptr<MessageBox> open(std::shared_ptr<transport::Job> job,
                                          std::vector<std::int32_t> members, std::int32_t rank,
                                          std::uint64_t group, std::function<std::optional<Error>()> failure,
                                          std::shared_ptr<Metrics> metrics = nullptr);
  void close();

  using Patience = std::chrono::milliseconds;  // 0: as long as the group lives
  // Whether it came to that in time.
  Result<bool> send(std::span<const std::byte> bytes, const Received& what, std::int32_t to,
                    Patience patience);
  // None: nothing came in time.
  Result<std::optional<Received>> receive(std::span<std::byte> room, device::ElementType type,
                                          std::int32_t from, Tag tag, Patience patience);
  Result<std::optional<Received>> probe(std::int32_t from, Tag tag);

 private:
  enum class Word : std::uint64_t { message = 1, announce, taken, come, piece, took, withdraw };
  struct Arrived {
    Received what;
    std::uint64_t id = 0;  // of its sender
    bool is_long = false;
    std::string bytes;  // of a short one
  };
  struct Posted {  // a receive that waits
    std::span<std::byte> room;
    device::ElementType type = device::ElementType::u8;
    std::int32_t from = 0;
    Tag tag = 0;
    std::optional<Received> matched;
    std::uint64_t id = 0;
    std::size_t missing = 0;  // bytes of a long message
    std::optional<Error> refused;
    bool done = false;
  };
  struct Sending {  // of a long message
    bool come = false;
    std::size_t taken = 0;  // pieces
  };
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  MessageBox(std::shared_ptr<transport::Job> job, std::vector<std::int32_t> members, std::int32_t rank,
             std::uint64_t group, std::function<std::optional<Error>()> failure,
             std::shared_ptr<Metrics> metrics);
  void hear(std::int32_t from, Word word, std::string_view bytes);
  void tell(std::int32_t rank, Word word, std::uint64_t id, std::uint64_t number, const Received& what,
            std::string_view bytes);
  void arrive(Arrived arrived);
  bool match(Posted& posted, std::deque<Arrived>::iterator arrived);  // false: refused
  void post(Posted& posted);
  void withdraw(std::int32_t rank, std::uint64_t id);
  void count(std::size_t bytes, std::int64_t began_at);  // as a send
  static bool fits(const Received& what, std::int32_t from, Tag tag);
  // Why no message of these can come any more, after a moment for those that are under way.
  std::optional<Error> nobody_left(std::int32_t from, Clock::time_point since) const;
  // Waits until `done`; false: the deadline passed. `others` is asked now and then.
  Result<bool> wait(Lock& lock, Moment deadline, const std::function<bool()>& done,
                    const std::function<std::optional<Error>()>& others);

  const std::shared_ptr<transport::Job> job_;
  const std::vector<std::int32_t> members_;
  const std::int32_t rank_;
  const std::uint64_t topic_;
  const std::function<std::optional<Error>()> failure_;
  const std::shared_ptr<Metrics> metrics_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrived> arrived_;  // in the order they came
  std::list<Posted*> posted_;    // in the order they were made
  std::map<std::pair<std::int32_t, std::uint64_t>, Posted*>
      taking_;                                 // long messages under way, by sender and id
  std::map<std::uint64_t, Sending*> sending_;  // by id
  std::vector<std::size_t> kept_;              // bytes that others keep of this rank's
  std::uint64_t next_id_ = 1;
};

}  // namespace weft::comm
