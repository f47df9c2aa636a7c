// weft/communication/comm/message_box.h -- tagged messages of a rank: those not yet received, and
// pending receives.
//
//   short     sender ── message ──▶ buffered at the receiver until taken      taken ──▶ sender has room again
//   long      sender ── announce ─▶ a receive asks for it ── come ──▶ sender ── fragments ─▶ into its memory
//
// The buffered bytes per sender and receiver are bounded (kRoom); beyond that, short messages use
// the protocol of long ones. Announcements are always sent, so that a receive finds any message no
// matter how many others are unreceived. Thread-safe.
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

  // `members` are job ranks in group order. `failure` returns the error of a failed group;
  // `metrics` may be null.
  static std::shared_ptr<MessageBox> open(std::shared_ptr<transport::Job> job,
                                          std::vector<std::int32_t> members, std::int32_t rank,
                                          std::uint64_t group, std::function<std::optional<Error>()> failure,
                                          std::shared_ptr<Metrics> metrics = nullptr);
  void close();

  using Patience = std::chrono::milliseconds;  // 0: for the lifetime of the group
  // Returns whether the message was sent in time.
  Result<bool> send(std::span<const std::byte> bytes, const Received& what, std::int32_t to,
                    Patience patience);
  // Empty: nothing arrived in time.
  Result<std::optional<Received>> receive(std::span<std::byte> room, device::ElementType type,
                                          std::int32_t from, Tag tag, Patience patience);
  Result<std::optional<Received>> probe(std::int32_t from, Tag tag);

 private:
  enum class Word : std::uint64_t { message = 1, announce, taken, come, piece, took, withdraw };
  struct Arrived {
    Received what;
    std::uint64_t id = 0;  // assigned by the sender
    bool is_long = false;
    std::string bytes;  // payload of a short message
  };
  struct Posted {  // a pending receive
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
  struct Sending {  // a long message
    bool come = false;
    std::size_t taken = 0;  // fragments
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
  // The error if no message from `from` can arrive any more, after a grace period for those in
  // flight.
  std::optional<Error> no_peer_left(std::int32_t from, Clock::time_point since) const;
  // Waits until `done`; false at the deadline. Polls `others` for errors.
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
  std::deque<Arrived> arrived_;  // in order of arrival
  std::list<Posted*> posted_;    // in the order they were posted
  std::map<std::pair<std::int32_t, std::uint64_t>, Posted*>
      taking_;                                 // long messages in flight, by sender and id
  std::map<std::uint64_t, Sending*> sending_;  // by id
  std::vector<std::size_t> kept_;              // this rank's bytes that each rank buffers
  std::uint64_t next_id_ = 1;
};

}  // namespace weft::comm
