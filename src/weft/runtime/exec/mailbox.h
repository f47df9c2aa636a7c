// weft/runtime/exec/mailbox.h -- values between two ranks: sent when they are made, kept until they are asked for.
//
//   rank 0   send 7 ──▶  rank 1's postman ──▶ [7][9]  ──▶ take 9, take 7
//            send 9 ──▶
//
// A thread of the mailbox takes whatever comes, so that a send never waits for what its receiver does: stages
// whose schedules send in one order and read in another cannot wait for each other. Messages of one rank with one
// tag come out in the order they were sent.
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
  // `group` must outlive it. `largest`: bytes of the longest message that comes.
  Mailbox(comm::Communicator& group, std::size_t largest);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Returns when the bytes may be written again. From any thread.
  Status send(std::span<const std::byte> bytes, std::int32_t to, comm::Tag tag);
  // Waits for it. Fails where no message comes any more, or one of another length.
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
