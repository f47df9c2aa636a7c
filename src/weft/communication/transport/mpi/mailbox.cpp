#include "weft/communication/transport/mpi/mailbox.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace weft::transport::mpi {
namespace {

// Precedes the bytes of every message.
struct Envelope {
  MessageKind kind;
  Topic topic;
};

}  // namespace

Mailbox::~Mailbox() {
  const auto lock = library_->lock();
  for (Parcelled& sent : sending_) library_->outlive(sent.request, std::move(sent.memory));
  if (receiving_) library_->cancel(receiving_->request);
}

Status Mailbox::send(std::int32_t to, MessageKind kind, Topic topic, std::string_view bytes) {
  WEFT_CHECK(bytes.size() <= kMostMessageBytes);
  const Envelope envelope{kind, topic};
  Parcelled parcelled;
  parcelled.bytes = sizeof envelope + bytes.size();
  parcelled.memory = std::make_unique_for_overwrite<std::byte[]>(parcelled.bytes);
  std::memcpy(parcelled.memory.get(), &envelope, sizeof envelope);
  if (!bytes.empty()) std::memcpy(parcelled.memory.get() + sizeof envelope, bytes.data(), bytes.size());

  const auto lock = library_->lock();
  const std::string why =
      library_->send(parcelled.memory.get(), parcelled.bytes, to, kJobTag, parcelled.request);
  if (!why.empty()) return environment_error(fmt::format("{} cannot reach it: {}", library_->name(), why));
  sending_.push_back(std::move(parcelled));
  return {};
}

bool Mailbox::start_receiving() {
  const Library::Arrival arrival = library_->probe(kJobTag);
  if (arrival.from < 0) return false;
  Parcelled parcelled;
  parcelled.bytes = arrival.bytes;
  parcelled.peer = arrival.from;
  parcelled.memory = std::make_unique_for_overwrite<std::byte[]>(parcelled.bytes);
  const std::string why =
      library_->receive(parcelled.memory.get(), parcelled.bytes, parcelled.peer, kJobTag, parcelled.request);
  if (why.empty()) receiving_ = std::move(parcelled);
  return why.empty();
}

std::optional<Message> Mailbox::receive() {
  std::optional<Parcelled> whole;
  {
    const auto lock = library_->lock();
    if (!receiving_ && !start_receiving()) return std::nullopt;
    const Library::Outcome outcome = library_->test(receiving_->request);
    if (!outcome.done) return std::nullopt;
    whole = std::exchange(receiving_, std::nullopt);
    if (!outcome.why.empty() || whole->bytes < sizeof(Envelope)) return std::nullopt;
  }
  Envelope envelope;
  std::memcpy(&envelope, whole->memory.get(), sizeof envelope);
  return Message{envelope.kind, envelope.topic, whole->peer,
                 std::string(reinterpret_cast<const char*>(whole->memory.get()) + sizeof envelope,
                             whole->bytes - sizeof envelope)};
}

bool Mailbox::busy() {
  const auto lock = library_->lock();
  std::erase_if(sending_, [this](Parcelled& sent) { return library_->test(sent.request).done; });
  return !sending_.empty() || receiving_.has_value();
}

}  // namespace weft::transport::mpi
