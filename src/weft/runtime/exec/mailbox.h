// weft/runtime/exec/mailbox.h -- messages between two ranks: sent when ready, buffered until received.
//
//   rank 0   send 7 ──▶  rank 1's postman ──▶ [7][9]  ──▶ take 9, take 7
//            send 9 ──▶
//
// A thread of the mailbox (the postman) receives all messages, so that a send never waits for the
// receiver's program. Pipeline schedules that send in one order and receive in another therefore
// cannot deadlock. Messages with the same sender and tag are delivered in order.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"

namespace weft::exec {

class Mailbox {
 public:
  // `group` must outlive it. `largest`: bytes of the longest incoming message.
  Mailbox(comm::Communicator& group, std::size_t largest);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Returns when the buffer may be overwritten. Callable from any thread.
  Status send(std::span<const std::byte> bytes, std::int32_t to, comm::Tag tag);
  // Waits for the message. Fails if no more messages can arrive, or if the length differs.
  Status take(std::span<std::byte> bytes, std::int32_t from, comm::Tag tag);
  bool has(std::int32_t from, comm::Tag tag);

 private:
  void collect(std::size_t largest);

  comm::Communicator& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::int32_t, comm::Tag>, std::deque<std::vector<std::byte>>> kept_;
  std::optional<Error> failure_;
  bool closing_ = false;
  std::thread postman_;
};

}  // namespace weft::exec
