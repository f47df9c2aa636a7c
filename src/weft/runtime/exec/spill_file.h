// weft/runtime/exec/spill_file.h -- a file mapped in place of memory: it holds a rank's spilled tensors.
//
//   memory    [ states ........ | parameters, step ]        the file's pages are mapped over memory and
//   file      [ states ........ ]                           released once a task has used them; the next
//                                                           use reads them from the file or from the
//                                                           system's page cache
//
// The file has no name and disappears with its process. Its space is allocated at once, so that a
// full disk is reported before the first step rather than during one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/result.h"

namespace weft::exec {

class SpillFile {
 public:
  // In `folder`; empty: the system's temporary folder. Fails if there is not enough space.
  static Result<SpillFile> make(const std::string& folder, std::int64_t bytes);
  SpillFile(SpillFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), next_(other.next_) {}
  SpillFile& operator=(SpillFile&&) = delete;
  ~SpillFile();

  // Maps the next `bytes` bytes of the file over the pages at `at`. REQUIRES: whole pages owned by
  // this process.
  Status lay_over(std::byte* at, std::int64_t bytes);

 private:
  explicit SpillFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
  std::int64_t next_ = 0;
};

// Releases the pages of a mapped range; written data stays in the file.
void release_pages(std::byte* at, std::int64_t bytes);

}  // namespace weft::exec
