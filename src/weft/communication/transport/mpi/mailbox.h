// weft/communication/transport/mpi/mailbox.h -- short messages between the ranks of a job, over MPI
// with tag 0.
//
// Messages between two ranks arrive in order. Sending never blocks; buffers of messages in flight
// are kept here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/mpi/library.h"

namespace weft::transport::mpi {

inline constexpr std::size_t kMostMessageBytes = std::size_t{64} << 20;

enum class MessageKind : std::uint64_t { parcel, survivor, message, goodbye };

struct Message {
  MessageKind kind = MessageKind::message;
  Topic topic;
  std::int32_t from = 0;
  std::string bytes;
};

// Thread-safe, but messages are in order only if one thread at a time calls receive().
class Mailbox {
 public:
  explicit Mailbox(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  ~Mailbox();

  // Fails if MPI cannot reach that rank. Messages in flight when the Mailbox is destroyed still
  // arrive. REQUIRES: at most kMostMessageBytes.
  Status send(std::int32_t to, MessageKind kind, Topic topic, std::string_view bytes);
  // The next complete message.
  std::optional<Message> receive();
  // Whether messages are in flight.
  bool busy();

 private:
  struct Parcelled {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
    std::int32_t peer = 0;
    WeftMpiRequest request{};
  };

  bool start_receiving();

  const std::shared_ptr<Library> library_;
  std::vector<Parcelled> sending_;      // this and the next: guarded by the library's lock
  std::optional<Parcelled> receiving_;  // at most one, to keep the order
};

}  // namespace weft::transport::mpi
