// The tagged messages of Communicator.
#include <fmt/format.h>

#include "weft/communication/comm/group.h"

namespace weft::comm {
namespace {

Status check_message(const void* memory, std::int64_t count, ElementType type,
                     std::chrono::milliseconds timeout) {
  if (static_cast<std::size_t>(type) >= device::kElementTypes)
    return user_error("a message has an unknown type");
  if (count < 0) return user_error(fmt::format("count is negative: {}", count));
  if (count > (std::int64_t{1} << 56))
    return user_error(fmt::format("count is too large: {} elements of {}", count, device::name(type)));
  if (memory == nullptr && count > 0) return user_error("the message buffer is null");
  if (timeout.count() < 0) return user_error(fmt::format("timeout is negative: {} ms", timeout.count()));
  return {};
}

Status check_place(std::string_view what, std::int32_t number, std::int32_t least, std::int32_t end) {
  if (number >= least && number < end) return {};
  return user_error(fmt::format("{} is not in the group: {} of {} ranks", what, number, end),
                    fmt::format("ranks are 0 to {}", end - 1));
}

Status check_asked(std::int32_t from, Tag tag, std::int32_t ranks) {
  WEFT_TRY_STATUS(check_place("sender", from, kAnySource, ranks));
  if (tag < kAnyTag) return user_error(fmt::format("a tag is 0 or more: {}", tag), "-1 matches any tag");
  return {};
}

}  // namespace

MessageBox& Communicator::State::messages() {
  const std::lock_guard lock(opening_messages);
  if (!box) {
    const auto failure = [engine = std::weak_ptr(engine)] {
      const auto alive = engine.lock();
      return alive ? alive->failure() : environment_error("the communicator is closed");
    };
    box = MessageBox::open(membership->job, members, rank, id, failure, membership->add_metrics());
  }
  return *box;
}

Result<bool> Communicator::send_tagged(const void* input, std::int64_t count, ElementType type,
                                       std::int32_t to, Tag tag, std::chrono::milliseconds timeout) {
  WEFT_TRY_STATUS(check_message(input, count, type, timeout));
  WEFT_TRY_STATUS(check_place("receiver", to, 0, size()));
  if (tag < 0) return user_error(fmt::format("a tag is 0 or more: {}", tag));
  const std::span bytes(static_cast<const std::byte*>(input),
                        static_cast<std::size_t>(count) * device::size_of(type));
  return state_->messages().send(bytes, {rank(), tag, count, type}, to, timeout);
}

Result<std::optional<Received>> Communicator::receive_tagged(void* output, std::int64_t room,
                                                             ElementType type, std::int32_t from, Tag tag,
                                                             std::chrono::milliseconds timeout) {
  WEFT_TRY_STATUS(check_message(output, room, type, timeout));
  WEFT_TRY_STATUS(check_asked(from, tag, size()));
  const std::span bytes(static_cast<std::byte*>(output),
                        static_cast<std::size_t>(room) * device::size_of(type));
  return state_->messages().receive(bytes, type, from, tag, timeout);
}

Result<std::optional<Received>> Communicator::probe(std::int32_t from, Tag tag) {
  WEFT_TRY_STATUS(check_asked(from, tag, size()));
  return state_->messages().probe(from, tag);
}

}  // namespace weft::comm
