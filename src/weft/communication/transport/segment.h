// weft/communication/transport/segment.h -- shared memory among ranks of one machine.
//
//   rank 0: 0xffff9000  ┐
//   rank 1: 0xfffe4000  ├─ one memory       an anonymous file of the kernel (memfd), mapped once by
//   rank 2: 0xffff1000  ┘                   each process: ranks that are threads share one mapping
//
// It has no name in any file system and disappears with the last process that maps it, however that
// exits: nothing is left behind. Unless it is `sparse`, all its pages are allocated at creation, so
// that a full machine is an error and not a later signal.
//
// On NUMA machines a page is placed on the node of the rank that touches it first. A `full` segment
// is therefore near its creator, which should be the rank that reads it most (a rank's own
// buffers). Memory that other ranks read most is created `sparse`, and each of them calls
// populate() on its part (message slots: the receiver) if has_several_numa_nodes().
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
  // Zeroed. Large segments are aligned to huge pages, and use them if the kernel allows.
  static Result<Segment> create(std::size_t bytes, Backing backing);
  // Maps a segment that another rank created; takes ownership of `descriptor`, even on failure.
  // Refuses a file shorter than `bytes`: accessing the missing part would raise SIGBUS.
  static Result<Segment> map(int descriptor, std::size_t bytes);

  Segment() = default;
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  int descriptor() const { return descriptor_; }  // to pass to other ranks; stays owned; -1 when empty

  // Allocates the missing pages of a range, near the calling thread. Preserves contents. REQUIRES:
  // inside.
  Status populate(std::size_t offset, std::size_t bytes) const;

 private:
  class Mapping;

  static Result<Segment> adopt(int descriptor, std::size_t bytes);

  std::shared_ptr<const Mapping> mapping_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
};

// Whether the machine has several NUMA nodes, so that first touch matters.
bool has_several_numa_nodes();

}  // namespace weft::transport
