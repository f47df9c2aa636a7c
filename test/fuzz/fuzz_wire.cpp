// Any bytes from a socket are frames or a fault. A receiver returns exactly what was framed, stops
// at the first error, and stays stopped. No bytes can prove knowledge of the job's secret.
//
// The first byte selects how the rest is read: 1 requires checksums on payloads, 2 corrects the
// checksums of headers, 4 those of payloads. Without this, a fuzzer would never get past a
// checksum.

#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "promise.h"
#include "weft/base/crc32c.h"
#include "weft/communication/transport/handshake.h"
#include "weft/communication/transport/tcp/connection.h"

using weft::fuzz::promise;
using namespace weft::transport;
using namespace weft::transport::tcp;

namespace {

using Bytes = std::vector<std::byte>;
constexpr Capacity kCapacity{.slots = 2, .slot_bytes = 256};

void put(std::byte* at, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(number >> (8 * i));
}

std::size_t length_at(const Bytes& stream, std::size_t at) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length |= std::to_integer<std::size_t>(stream[at + 12 + i]) << (8 * i);
  return length;
}

// Corrects the checksums of the frames that the lengths in the stream delimit.
void mend(Bytes& stream, bool headers, bool payloads) {
  for (std::size_t at = 0; at + kFrameHeaderBytes <= stream.size();) {
    const std::size_t begin = at + kFrameHeaderBytes;
    const std::size_t length = std::min(length_at(stream, at), stream.size() - begin);
    if (payloads) put(&stream[at + 24], weft::crc32c_by_tables(std::span(stream).subspan(begin, length)));
    if (headers) put(&stream[at + 28], weft::crc32c_by_tables(std::span(stream).subspan(at, 28)));
    at = begin + length;
  }
}

// The frame header at `at`, if it is valid.
const FrameHeader* header_at(const Bytes& stream, std::size_t at,
                             std::variant<FrameHeader, Deviation>& decoded) {
  if (at + kFrameHeaderBytes > stream.size()) return nullptr;
  FrameBytes bytes;
  std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), bytes.begin());
  decoded = decode(bytes);
  const auto* deviation = std::get_if<Deviation>(&decoded);
  promise(!deviation || !deviation->text.empty(), "a deviation has a text");
  return std::get_if<FrameHeader>(&decoded);
}

struct Line {
  explicit Line(const Bytes& stream, bool checked) {
    int ends[2];
    promise(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a socket pair can be created");
    Socket from(ends[0]), to(ends[1]);
    promise(
        ::send(ends[0], stream.data(), stream.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(stream.size()),
        "the stream fits into the kernel's buffer");
    receiver.emplace(std::move(to), Wire{1, 0, 0}, kCapacity, checked);
  }
  std::optional<Receiver> receiver;
};

// The number of messages received before the fault.
std::size_t receive(const Bytes& stream, bool checked, bool drained, bool lent) {
  Line line(stream, checked);
  Receiver& receiver = *line.receiver;
  std::size_t at = 0, messages = 0;
  for (;;) {
    if (drained) receiver.drain();
    std::variant<FrameHeader, Deviation> decoded;
    const FrameHeader* header = header_at(stream, at, decoded);
    Bytes target(header && header->length <= 256 ? header->length : 64);
    if (header) receiver.set_label(header->label);
    bool is_there = false;
    if (lent) {
      const std::byte* message = receiver.front(target.size());
      is_there = message != nullptr;
      if (is_there) {
        target.assign(message, message + target.size());
        receiver.pop();
      }
    } else {
      is_there = receiver.receive_into(target);
    }
    if (!is_there) break;
    promise(header != nullptr, "only a valid header delivers a message");
    promise(header->sequence == messages, "messages arrive in order");
    promise(!checked || header->checked, "payloads carry checksums where required");
    promise(!header->checked || header->checksum == weft::crc32c_by_tables(target),
            "payloads match their checksums");
    at += kFrameHeaderBytes;
    promise(std::equal(target.begin(), target.end(), stream.begin() + static_cast<std::ptrdiff_t>(at)),
            "a message equals what was sent");
    at += target.size();
    ++messages;
  }
  promise(receiver.fault().has_value(), "a stream ends with a fault");
  promise(!receiver.fault()->text.empty(), "a fault has a text");
  Bytes target(8);
  promise(!receiver.receive_into(target) && !receiver.front(8) && !receiver.armed() && !receiver.can_drain(),
          "nothing is received after a fault");
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned how = data[0];
  Bytes stream(size - 1);
  std::transform(data + 1, data + size, stream.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
  mend(stream, how & 2, how & 4);

  const bool checked = how & 1;
  const std::size_t asked = receive(stream, checked, false, false);
  promise(receive(stream, checked, false, true) == asked,
          "front() and receive_into() deliver the same messages");
  promise(receive(stream, checked, true, false) <= asked, "draining delivers no extra messages");

  HelloBytes hello{};
  std::copy_n(stream.begin(), std::min(stream.size(), hello.size()), hello.begin());
  if (const auto decoded = decode(hello)) promise(encode(*decoded) == hello, "a hello reads back");

  for (const Role role : {Role::caller, Role::listener}) {
    int ends[2];
    promise(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a socket pair can be created");
    const Socket near(ends[0]), far(ends[1]);
    promise(::send(far.descriptor(), stream.data(), stream.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(stream.size()),
            "the stream fits into the kernel's buffer");
    Handshake hand("a key that no input contains", role);
    for (int turn = 0; turn < 8 && hand.state() == Handshake::State::going; ++turn)
      hand.step(near.descriptor());
    promise(hand.state() != Handshake::State::proven, "no peer is accepted without the secret");
  }
  return 0;
}
