// weft/communication/transport/segment.h -- memory that several ranks of one machine see.
//
//   rank 0: 0xffff9000  ┐
//   rank 1: 0xfffe4000  ├─ one memory       an anonymous file of the kernel (memfd), mapped once by
//   rank 2: 0xffff1000  ┘                   each process: ranks that are threads share one mapping
//
// It has no name in any file system and is gone with the last process that maps it, however that ended:
// nothing can be left behind. Unless it is `sparse`, it gets all its pages when it is made: a full machine is
// an error then, not a signal later.
//
// On machines with several memory nodes a page lies near the rank that touched it first. A `full` segment
// therefore lies near its creator, who should be the one that reads it most (a rank's own buffers). What
// others read most is made `sparse`, and each of them calls populate() on its part (slots of messages: the
// receiver), where several_memory_nodes() says that it matters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "weft/base/result.h"

namespace weft::transport {

enum class Backing : bool { full, sparse };

class Segment {
 public:
  // All zero. Large ones are aligned to huge pages, and made of them where the kernel allows it.
  static Result<Segment> create(std::size_t bytes, Backing backing);
  // Maps what another rank created; takes over `descriptor`, also when it fails. A file that is shorter than
  // `bytes` is refused: touching what is not there would be a signal.
  static Result<Segment> map(int descriptor, std::size_t bytes);

  Segment() = default;
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  int descriptor() const { return descriptor_; }  // to be handed to others, stays ours; -1 when empty

  // Gets pages near the caller for a stretch that has none yet. Contents stay. REQUIRES: inside.
  Status populate(std::size_t offset, std::size_t bytes) const;

 private:
  class Mapping;

  static Result<Segment> adopt(int descriptor, std::size_t bytes);

  std::shared_ptr<const Mapping> mapping_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
};

// Whether it matters who touches a page first.
bool several_memory_nodes();

}  // namespace weft::transport
