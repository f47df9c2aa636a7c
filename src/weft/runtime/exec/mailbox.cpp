#include "weft/runtime/exec/mailbox.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace weft::exec {
namespace {

// Timeout of one receive. It is shorter than the delay after which a receive fails because all
// other ranks have left: the postman keeps running then, since that only concerns ranks that wait.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

Mailbox::Mailbox(comm::Communicator& group, std::size_t largest)
    : group_(group), postman_([this, largest] { collect(largest); }) {}

Mailbox::~Mailbox() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  // Wakes the receiver thread by a message to itself. If the group has failed, it has already
  // stopped.
  (void)group_.send_tagged(nullptr, 0, comm::ElementType::u8, group_.rank(), 0);
  postman_.join();
}

void Mailbox::collect(std::size_t largest) {
  std::vector<std::byte> room(std::max<std::size_t>(largest, 1));
  for (;;) {
    auto came = group_.receive_tagged(room.data(), static_cast<std::int64_t>(room.size()),
                                      comm::ElementType::u8, comm::kAnySource, comm::kAnyTag, kPatience);
    const bool failed = !came.ok();
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      if (failed)
        failure_ = std::move(came).error();
      else if (*came)
        kept_[{(*came)->from, (*came)->tag}].emplace_back(room.begin(), room.begin() + (*came)->count);
    }
    changed_.notify_all();  // without the lock, which the woken thread needs
    if (failed) return;
  }
}

Status Mailbox::send(std::span<const std::byte> bytes, std::int32_t to, comm::Tag tag) {
  WEFT_TRY_STATUS(group_.send_tagged(bytes.data(), static_cast<std::int64_t>(bytes.size()),
                                     comm::ElementType::u8, to, tag));
  return {};
}

Status Mailbox::take(std::span<std::byte> bytes, std::int32_t from, comm::Tag tag) {
  std::unique_lock lock(mutex_);
  const auto found = [&] { return kept_.find({from, tag}); };
  changed_.wait(lock, [&] { return found() != kept_.end() || failure_ || closing_; });
  const auto kept = found();
  if (kept == kept_.end())
    return failure_ ? Status(*failure_) : Status(environment_error("the mailbox is closed"));
  const std::vector<std::byte> message = std::move(kept->second.front());
  kept->second.pop_front();
  if (kept->second.empty()) kept_.erase(kept);
  lock.unlock();
  if (message.size() != bytes.size())
    return environment_error(
        fmt::format("rank {} of the stages sent {} bytes, expected {}", from, message.size(), bytes.size()),
        "run the same statement on every rank");
  std::ranges::copy(message, bytes.begin());
  return {};
}

bool Mailbox::has(std::int32_t from, comm::Tag tag) {
  const std::lock_guard lock(mutex_);
  return kept_.contains({from, tag}) || failure_ || closing_;
}

}  // namespace weft::exec
