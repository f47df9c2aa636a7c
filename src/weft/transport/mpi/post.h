// weft/transport/mpi/post.h -- letters between the ranks of a job, as MPI messages of tag 0.
//
// Letters from one rank to another arrive in order. Sending never waits; letters on their way are kept here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/transport/job.h"
#include "weft/transport/mpi/library.h"

namespace weft::transport::mpi {

inline constexpr std::size_t kMostLetterBytes = std::size_t{64} << 20;

enum class LetterKind : std::uint64_t { parcel, survivor, message, goodbye };

struct Letter {
  LetterKind kind = LetterKind::message;
  Topic topic;
  std::int32_t from = 0;
  std::string bytes;
};

// Thread-safe, but letters are in order only when one thread at a time calls receive().
class Post {
 public:
  explicit Post(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  ~Post();

  // Fails when MPI cannot reach that rank. Those under way when the Post ends still arrive. REQUIRES: at most
  // kMostLetterBytes.
  Status send(std::int32_t to, LetterKind kind, Topic topic, std::string_view bytes);
  // The next letter that is all there.
  std::optional<Letter> receive();
  // Whether letters are on their way.
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
  std::vector<Parcelled> sending_;      // guarded by the library's lock, as is the next
  std::optional<Parcelled> receiving_;  // at most one, or letters would change places
};

}  // namespace weft::transport::mpi
