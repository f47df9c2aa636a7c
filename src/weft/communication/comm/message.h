// weft/communication/comm/message.h -- tagged messages: a rank sends at any time, and the receiver
// matches by source and tag.
//
//   group.send_tagged(job, n, ElementType::i32, 3, 7);                  // to rank 3, tag 7
//   WEFT_TRY(got, group.receive_tagged(job, room, ElementType::i32));   // from any rank, any tag
//   got->from, got->tag, got->count
//
// Messages between two ranks are received in the order they were sent, among those that match a
// receive. A receive with too small a buffer or another type fails and leaves the message in place.
// A short send is eager: it returns at once and the receiver buffers the message. A long send, or
// one after 1 MiB of unreceived messages, waits for its receive. A send or receive that times out
// has no effect, and the group stays usable. Messages travel over the job's control links with one
// copy at each end; they suit work queues and irregular sizes. For bulk data use send() and
// receive(), or collectives.
#pragma once
#include <cstdint>

#include "weft/device/element_type.h"

namespace weft::comm {

using Tag = std::int32_t;  // 0 or greater
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
