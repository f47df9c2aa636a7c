// weft/communication/transport/inbox.h -- what other ranks have sent and nobody here has taken yet.
//
//   parcels of an exchange    by topic and sender, in the order they came
//   messages                  by group, in the order they came
//
// Holds at most kMostKept bytes of one sender. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/communication/transport/control_link.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

class Inbox {
 public:
  static constexpr std::size_t kMostKept = 64 << 20;

  struct Message {
    std::int32_t from = 0;
    std::uint64_t number = 0;
    std::string bytes;
  };

  // Keeps a parcel or a message; false, keeping nothing, when its sender has too much here already.
  bool put(std::int32_t from, Frame frame);

  // Who of `members` but `self` has no parcel here.
  std::vector<std::int32_t> missing(std::span<const std::int32_t> members, std::int32_t self,
                                    Topic topic) const;
  // REQUIRES: it is not missing.
  Parcel take(std::int32_t from, Topic topic);
  void drop(Topic topic);

  // The oldest message of the first group that `wanted` is true of, and its group.
  template <class Wanted>
  std::optional<std::pair<std::uint64_t, Message>> next(Wanted wanted) {
    for (auto at = messages_.begin(); at != messages_.end(); ++at) {
      if (wanted(at->first)) return take_message(at);
    }
    return {};
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // of a Topic
  using Messages = std::map<std::uint64_t, std::deque<Message>>;

  std::pair<std::uint64_t, Message> take_message(Messages::iterator at);

  std::map<Key, std::map<std::int32_t, std::deque<Frame>>> parcels_;  // no empty ones
  Messages messages_;                                                 // no empty ones
  std::map<std::int32_t, std::size_t> kept_;
};

}  // namespace weft::transport
