#include "weft/communication/transport/inbox.h"

namespace weft::transport {

bool Inbox::put(std::int32_t from, Frame frame) {
  // Counts the frame itself, so that empty ones are bounded too.
  const std::size_t size = frame.bytes.size() + sizeof(Frame);
  std::size_t& kept = kept_[from];
  if (kept + size > kMostKept) return false;
  kept += size;
  if (frame.kind == FrameKind::message) {
    messages_[frame.group].push_back({from, frame.number, std::move(frame.bytes)});
  } else {
    parcels_[{frame.group, frame.number}][from].push_back(std::move(frame));
  }
  return true;
}

std::vector<std::int32_t> Inbox::missing(std::span<const std::int32_t> members, std::int32_t self,
                                         Topic topic) const {
  std::vector<std::int32_t> out;
  const auto here = parcels_.find({topic.group, topic.number});
  for (const std::int32_t rank : members) {
    if (rank != self && (here == parcels_.end() || !here->second.contains(rank))) out.push_back(rank);
  }
  return out;
}

Parcel Inbox::take(std::int32_t from, Topic topic) {
  const auto here = parcels_.find({topic.group, topic.number});
  const auto queue = here->second.find(from);
  Frame& frame = queue->second.front();
  kept_[from] -= frame.bytes.size() + sizeof(Frame);
  Parcel parcel{std::move(frame.bytes), frame.descriptor.release()};
  queue->second.pop_front();
  if (queue->second.empty()) here->second.erase(queue);
  if (here->second.empty()) parcels_.erase(here);
  return parcel;
}

void Inbox::drop(Topic topic) {
  const auto here = parcels_.find({topic.group, topic.number});
  if (here == parcels_.end()) return;
  for (const auto& [from, queue] : here->second) {
    for (const Frame& frame : queue) kept_[from] -= frame.bytes.size() + sizeof(Frame);
  }
  parcels_.erase(here);
}

std::pair<std::uint64_t, Inbox::Message> Inbox::take_message(Messages::iterator at) {
  std::pair<std::uint64_t, Message> out(at->first, std::move(at->second.front()));
  kept_[out.second.from] -= out.second.bytes.size() + sizeof(Frame);
  at->second.pop_front();
  if (at->second.empty()) messages_.erase(at);
  return out;
}

}  // namespace weft::transport
