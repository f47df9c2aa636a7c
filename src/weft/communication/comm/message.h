// weft/communication/comm/message.h -- tagged messages: a rank sends at any time, and the receiver matches by source and tag.
//
//   group.send_tagged(job, n, ElementType::i32, 3, 7);                  // to rank 3, tag 7
//   WEFT_TRY(got, group.receive_tagged(job, room, ElementType::i32));   // from any rank, any tag
//   got->from, got->tag, got->count
//
// Messages of one rank to another are taken in the order they were sent, among those that a receive asks for.
// A receive of too little room or of another type is refused and leaves the message where it is. A short send
// returns at once and the message is kept at the receiver; a long one, or one after many that nobody took (1
// MiB), waits for its receive. One that is late (a timeout) has sent, or taken, nothing, and the group goes on.
// Messages travel over the job's quiet line, a copy at either end: work queues and odd sizes are what they are
// for. Bulk data goes by send() and receive(), and by collectives.
#pragma once
#include <cstdint>

#include "weft/device/element_type.h"

namespace weft::comm {

using Tag = std::int32_t;  // 0 or more
inline constexpr Tag kAnyTag = -1;
inline constexpr std::int32_t kAnySource = -1;

struct Received {
  std::int32_t from = 0;
  Tag tag = 0;
  std::int64_t count = 0;
  device::ElementType type = device::ElementType::u8;

  friend bool operator==(const Received&, const Received&) = default;
};

}  // namespace weft::comm
