// weft/communication/transport/inbox.h -- received data that this rank has not consumed yet.
//
//   parcels of an exchange    by topic and sender, in order of arrival
//   messages                  by group, in order of arrival
//
// Holds at most kMostKept bytes per sender. Not thread-safe.
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

  // Stores a parcel or message; returns false without storing it if its sender exceeds the limit.
  bool put(std::int32_t from, Frame frame);

  // The ranks of `members`, except `self`, whose parcel has not arrived.
  std::vector<std::int32_t> missing(std::span<const std::int32_t> members, std::int32_t self,
                                    Topic topic) const;
  // REQUIRES: it is not missing.
  Parcel take(std::int32_t from, Topic topic);
  void drop(Topic topic);

  // The oldest message of the first group for which `wanted` returns true, and that group.
  template <class Wanted>
  std::optional<std::pair<std::uint64_t, Message>> next(Wanted wanted) {
    for (auto at = messages_.begin(); at != messages_.end(); ++at) {
      if (wanted(at->first)) return take_message(at);
    }
    return {};
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // from a Topic
  using Messages = std::map<std::uint64_t, std::deque<Message>>;

  std::pair<std::uint64_t, Message> take_message(Messages::iterator at);

  std::map<Key, std::map<std::int32_t, std::deque<Frame>>> parcels_;  // without empty entries
  Messages messages_;                                                 // without empty entries
  std::map<std::int32_t, std::size_t> kept_;
};

}  // namespace weft::transport
