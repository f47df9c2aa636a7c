// weft/runtime/exec/spill_file.h -- a file that stands in for memory: what a rank does not hold lies there.
//
//   memory    [ states ........ | parameters, step ]        the file's pages are mapped over a stretch of it, and are
//   file      [ states ........ ]                           let go of once a task has used them: the next use finds
//                                                           them in the file, or in the system's cache of it
//
// The file has no name and goes with its process. Its room is taken at once, so a full disk is told before the
// first step and not in the middle of one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/result.h"

namespace weft::exec {

class SpillFile {
 public:
  // In that folder; empty: the system's for temporary files. Fails where there is no room.
  static Result<SpillFile> make(const std::string& folder, std::int64_t bytes);
  SpillFile(SpillFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), next_(other.next_) {}
  SpillFile& operator=(SpillFile&&) = delete;
  ~SpillFile();

  // The next so many bytes of the file take the place of the pages there. REQUIRES: whole pages of this process' own.
  Status lay_over(std::byte* at, std::int64_t bytes);

 private:
  explicit SpillFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
  std::int64_t next_ = 0;
};

// Lets go of the pages of a stretch that a file is laid over; what was written is in the file.
void let_go(std::byte* at, std::int64_t bytes);

}  // namespace weft::exec
