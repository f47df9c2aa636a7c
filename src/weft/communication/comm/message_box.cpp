#include "weft/communication/comm/message_box.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/communication/comm/flight_recorder.h"

namespace weft::comm {
namespace {

constexpr std::size_t kOverhead = 128;  // buffer space counted for an empty message
constexpr std::chrono::milliseconds kLook{20}, kLastWords{1000};

// Precedes the payload of every message.
struct MessageHead {
  std::uint64_t id = 0, number = 0;
  std::int64_t count = 0;
  std::int32_t tag = 0;
  std::uint32_t type = 0;
};
static_assert(sizeof(MessageHead) == 32);

std::size_t bytes_in(const Received& what) {
  return static_cast<std::size_t>(what.count) * device::size_of(what.type);
}

}  // namespace

MessageBox::MessageBox(std::shared_ptr<transport::Job> job, std::vector<std::int32_t> members,
                       std::int32_t rank, std::uint64_t group, std::function<std::optional<Error>()> failure,
                       std::shared_ptr<Metrics> metrics)
    : job_(std::move(job)),
      members_(std::move(members)),
      rank_(rank),
      topic_(mix(group ^ 0x6d657373616765) | 2),
      failure_(std::move(failure)),
      metrics_(std::move(metrics)),
      kept_(members_.size(), 0) {}

std::shared_ptr<MessageBox> MessageBox::open(std::shared_ptr<transport::Job> job,
                                             std::vector<std::int32_t> members, std::int32_t rank,
                                             std::uint64_t group,
                                             std::function<std::optional<Error>()> failure,
                                             std::shared_ptr<Metrics> metrics) {
  auto box = std::shared_ptr<MessageBox>(new MessageBox(std::move(job), std::move(members), rank, group,
                                                        std::move(failure), std::move(metrics)));
  box->job_->handle(box->topic_, [weak = std::weak_ptr(box)](std::int32_t from, std::uint64_t word,
                                                             std::string_view bytes) {
    if (const auto alive = weak.lock()) alive->hear(from, static_cast<Word>(word), bytes);
  });
  return box;
}

void MessageBox::close() { job_->handle(topic_, nullptr); }

void MessageBox::tell(std::int32_t rank, Word word, std::uint64_t id, std::uint64_t number,
                      const Received& what, std::string_view bytes) {
  const MessageHead head{id, number, what.count, what.tag, static_cast<std::uint32_t>(what.type)};
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all += bytes;
  job_->send(members_[static_cast<std::size_t>(rank)], {topic_, static_cast<std::uint64_t>(word)}, all);
}

void MessageBox::count(std::size_t bytes, std::int64_t began_at) {
  if (metrics_)
    metrics_->add(Kind::send, static_cast<std::int64_t>(bytes), metrics_->is_timed() ? ticks() - began_at : 0,
                  false, false);
}

bool MessageBox::fits(const Received& what, std::int32_t from, Tag tag) {
  return (from == kAnySource || from == what.from) && (tag == kAnyTag || tag == what.tag);
}

// Other ranks are authenticated, but still every field that could cause an invalid write is
// checked.
void MessageBox::hear(std::int32_t from, Word word, std::string_view bytes) {
  const auto sender = std::ranges::find(members_, from);
  MessageHead head;
  if (sender == members_.end() || bytes.size() < sizeof head) return;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  const auto rank = static_cast<std::int32_t>(sender - members_.begin());
  if (head.type >= device::kElementTypes || head.count < 0 || head.tag < 0 ||
      head.count > (std::int64_t{1} << 60))
    return;
  const Received what{rank, head.tag, head.count, static_cast<device::ElementType>(head.type)};
  const Lock lock(mutex_);
  switch (word) {
    case Word::message:
      if (bytes.size() == bytes_in(what)) arrive({what, head.id, false, std::string(bytes)});
      break;
    case Word::announce: arrive({what, head.id, true, {}}); break;
    case Word::withdraw: withdraw(rank, head.id); break;
    case Word::taken: {
      std::size_t& kept = kept_[static_cast<std::size_t>(rank)];
      kept -= std::min<std::size_t>(kept, head.number);
      return;  // no sender waits for space: without space, messages go as long ones
    }
    case Word::come:
    case Word::took: {
      const auto found = sending_.find(head.id);
      if (found == sending_.end()) break;
      found->second->come = true;
      if (word == Word::took) ++found->second->taken;
      break;
    }
    case Word::piece: {
      const auto found = taking_.find({rank, head.id});
      if (found == taking_.end()) break;
      Posted& posted = *found->second;
      const std::size_t all = bytes_in(*posted.matched), at = all - posted.missing;
      if (head.number != at || bytes.size() > posted.missing) break;
      std::memcpy(posted.room.data() + at, bytes.data(), bytes.size());
      posted.missing -= bytes.size();
      tell(rank, Word::took, head.id, 0, {}, {});
      if (posted.missing > 0) return;
      posted.done = true;
      taking_.erase(found);
      break;
    }
  }
  changed_.notify_all();
}

void MessageBox::arrive(Arrived arrived) {
  arrived_.push_back(std::move(arrived));
  for (auto at = posted_.begin(); at != posted_.end();) {
    Posted& posted = **at;
    if (!fits(arrived_.back().what, posted.from, posted.tag)) {
      ++at;
      continue;
    }
    at = posted_.erase(at);
    if (match(posted, std::prev(arrived_.end()))) return;  // otherwise refused: try the next receive
  }
}

void MessageBox::post(Posted& posted) {
  const auto found = std::ranges::find_if(
      arrived_, [&](const Arrived& one) { return fits(one.what, posted.from, posted.tag); });
  if (found == arrived_.end())
    posted_.push_back(&posted);
  else
    match(posted, found);
}

// The sender gave up before it learned of the matching receive: no fragment will arrive.
void MessageBox::withdraw(std::int32_t rank, std::uint64_t id) {
  std::erase_if(arrived_,
                [&](const Arrived& one) { return one.is_long && one.id == id && one.what.from == rank; });
  const auto found = taking_.find({rank, id});
  if (found == taking_.end()) return;
  Posted& posted = *found->second;
  taking_.erase(found);
  posted.matched.reset();
  post(posted);
}

// Delivers the message to the receive, or refuses it.
bool MessageBox::match(Posted& posted, std::deque<Arrived>::iterator arrived) {
  const Received& what = arrived->what;
  if (what.type != posted.type || bytes_in(what) > posted.room.size()) {
    posted.refused = user_error(
        fmt::format("the message from rank {} with tag {} has {} elements of {}; the buffer holds {} of {}",
                    what.from, what.tag, what.count, device::name(what.type),
                    posted.room.size() / device::size_of(posted.type), device::name(posted.type)),
        "probe() reports what has arrived");
    return false;
  }
  posted.matched = what;
  if (arrived->is_long) {
    posted.missing = bytes_in(what);
    taking_[{what.from, arrived->id}] = &posted;
    tell(what.from, Word::come, arrived->id, 0, {}, {});
  } else {
    if (!arrived->bytes.empty())
      std::memcpy(posted.room.data(), arrived->bytes.data(), arrived->bytes.size());
    if (what.from != rank_) tell(what.from, Word::taken, 0, arrived->bytes.size() + kOverhead, {}, {});
    posted.done = true;
  }
  arrived_.erase(arrived);
  return true;
}

std::optional<Error> MessageBox::no_peer_left(std::int32_t from, Clock::time_point since) const {
  if (Clock::now() - since < kLastWords) return {};
  std::vector<std::int32_t> gone;
  for (const transport::Death& death : job_->deaths()) {
    const auto found = std::ranges::find(members_, death.rank);
    if (found != members_.end()) gone.push_back(static_cast<std::int32_t>(found - members_.begin()));
  }
  if (from != kAnySource) {
    if (std::ranges::find(gone, from) == gone.end()) return {};
    return environment_error(fmt::format("rank {} has left the group", from));
  }
  // In a group of one, another thread of this rank may still send to it.
  if (gone.size() + 1 < members_.size() || members_.size() == 1) return {};
  return environment_error("all other ranks have left the group");
}

Result<bool> MessageBox::wait(Lock& lock, Moment deadline, const std::function<bool()>& done,
                              const std::function<std::optional<Error>()>& others) {
  while (!done()) {
    if (const auto failure = failure_()) return *failure;
    if (auto error = others()) return *std::move(error);
    const auto now = Clock::now();
    if (now >= deadline) return false;
    changed_.wait_until(lock, std::min(deadline, now + kLook));
  }
  return true;
}

Result<bool> MessageBox::send(std::span<const std::byte> bytes, const Received& what, std::int32_t to,
                              Patience patience) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto since = Clock::now();
  const std::int64_t began_at = ticks();
  const Moment deadline = deadline_of(patience);
  Lock lock(mutex_);
  if (const auto failure = failure_()) return *failure;
  if (to == rank_) {
    arrive({what, 0, false, std::string(text)});
    changed_.notify_all();
    count(bytes.size(), began_at);
    return true;
  }
  std::size_t& kept = kept_[static_cast<std::size_t>(to)];
  if (bytes.size() <= kShort && kept + bytes.size() + kOverhead <= kRoom) {
    kept += bytes.size() + kOverhead;
    tell(to, Word::message, 0, 0, what, text);
    count(bytes.size(), began_at);
    return true;
  }
  Sending sending;
  const std::uint64_t id = next_id_++;
  sending_[id] = &sending;
  struct Entry {  // removed when this call returns
    std::map<std::uint64_t, Sending*>& all;
    std::uint64_t id;
    ~Entry() { all.erase(id); }
  } const entry{sending_, id};
  tell(to, Word::announce, id, 0, what, {});
  const auto gone = [&] { return no_peer_left(to, since); };
  WEFT_TRY(in_time, wait(
                        lock, deadline, [&] { return sending.come; }, gone));
  if (!in_time) {
    tell(to, Word::withdraw, id, 0, {}, {});
    return false;
  }
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < bytes.size() || pieces == 0; at += kPiece) {
    const auto has_room = [&] { return pieces - sending.taken < kPiecesAhead; };
    if (auto ready = wait(lock, Moment::max(), has_room, gone); !ready.ok()) return std::move(ready).error();
    tell(to, Word::piece, id, at, {}, text.substr(at, kPiece));
    ++pieces;
  }
  count(bytes.size(), began_at);
  return true;
}

Result<std::optional<Received>> MessageBox::receive(std::span<std::byte> room, device::ElementType type,
                                                    std::int32_t from, Tag tag, Patience patience) {
  const auto since = Clock::now();
  const std::int64_t began_at = ticks();
  const Moment deadline = deadline_of(patience);
  Posted posted;
  posted.room = room;
  posted.type = type;
  posted.from = from;
  posted.tag = tag;
  Lock lock(mutex_);
  if (const auto failure = failure_()) return *failure;
  post(posted);
  struct Entry {  // no writes to the caller's memory after this call returns
    MessageBox& box;
    Posted& posted;
    ~Entry() {
      box.posted_.remove(&posted);
      std::erase_if(box.taking_, [&](const auto& one) { return one.second == &posted; });
    }
  } const entry{*this, posted};
  // A transfer that has started is awaited to its end; a withdrawn message counts as never sent.
  while (!posted.done) {
    const auto matched = [&] { return posted.matched || posted.refused; };
    WEFT_TRY(in_time, wait(lock, deadline, matched, [&] { return no_peer_left(from, since); }));
    if (!in_time) return std::optional<Received>();
    if (posted.refused) return *posted.refused;
    const std::int32_t sender = posted.matched->from;
    const auto moved = [&] { return posted.done || !posted.matched; };
    if (auto came = wait(lock, Moment::max(), moved, [&] { return no_peer_left(sender, since); }); !came.ok())
      return std::move(came).error();
  }
  count(bytes_in(*posted.matched), began_at);
  return posted.matched;
}

Result<std::optional<Received>> MessageBox::probe(std::int32_t from, Tag tag) {
  const Lock lock(mutex_);
  if (const auto failure = failure_()) return *failure;
  const auto found =
      std::ranges::find_if(arrived_, [&](const Arrived& one) { return fits(one.what, from, tag); });
  if (found == arrived_.end()) return std::optional<Received>();
  return std::optional(found->what);
}

}  // namespace weft::comm
