// weft/communication/comm/direct/direct_mailbox_ring.h -- offsets of call entries in this rank's
// mailbox.
//
//   | call 4 | call 5     | call 6 | free                | call 3 |     a ring: entries follow each other,
//                                   ^ next                              and none wraps around the end
//
// All numbers are monotonic: bytes and calls since the start. An entry may be overwritten once all
// ranks have finished its call.
//
// Each entry starts on a separate page. A core that reads an entry also prefetches the lines behind
// it, up to the end of the page. Those would belong to the next entry, which its owner is about to
// write. (All_reduce of 64 B to 1 KiB among 12 and 16 ranks: 6 to 13 times as fast as with adjacent
// entries; no loss among 2 and 4.)
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/communication/comm/direct/direct_layout.h"

namespace weft::comm {

class MailboxRing {
 public:
  explicit MailboxRing(std::size_t bytes = 1) : ring_(bytes) {}

  // The location of a call's entry, valid once all ranks have finished the first `finished` calls.
  struct Room {
    std::uint64_t begin = 0, end = 0, finished = 0;
  };
  Room room(std::uint64_t sequence, std::size_t bytes) const {
    Room room{.begin = next_, .end = next_, .finished = oldest_};
    if (sequence + 1 > kPlaces) room.finished = std::max(room.finished, sequence + 1 - kPlaces);
    if (bytes <= kInlineBytes) return room;
    const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
    const std::size_t left = ring_ - room.begin % ring_;
    if (pages > left) room.begin += left;
    room.end = room.begin + pages;
    while (room.finished < sequence && room.end - begins_[room.finished % kPlaces] > ring_) ++room.finished;
    return room;
  }
  void take(std::uint64_t sequence, const Room& room) {
    next_ = room.end;
    oldest_ = room.finished;
    begins_[sequence % kPlaces] = room.begin;
  }

  std::size_t offset_of(const Room& room) const { return room.begin % ring_; }

 private:
  std::size_t ring_;
  std::uint64_t next_ = 0;                          // start of the next entry
  std::uint64_t oldest_ = 0;                        // the oldest call whose entry is not overwritten yet
  std::array<std::uint64_t, kPlaces> begins_ = {};  // start of each call's entry
};

}  // namespace weft::comm
