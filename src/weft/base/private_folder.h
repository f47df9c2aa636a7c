// weft/base/private_folder.h -- a folder whose files nobody but this user can have written.
//
//   ~/.cache/weft/proofs     ours, mode 0700     links: refused
//     3f2a..9c.proof         ours, mode 0600     links: refused
//
// What lies in a cache is believed, and a checksum stops nobody who can write: anyone can compute it. So a
// folder or a file is refused where it belongs to another user, where others may write to it, or where it is
// a link. Missing folders are made with mode 0700, files with 0600. Every file is opened from the folder that
// was looked at, so that no other folder can take its place in between.
//
// Whoever is refused goes on without the cache and tells the user why: see check().
#pragma once
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft {

class PrivateFolder {
 public:
  // Fails where the folder is missing or refused.
  static Result<PrivateFolder> open(const std::string& path);
  // The same, but a missing folder is made, and those above it.
  static Result<PrivateFolder> make(const std::string& path);
  // Fails only where the folder is there and refused: what to tell the user.
  static Status check(const std::string& path);

  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  // Names have no slash. Nothing: there is no such file.
  Result<std::optional<std::string>> read(const std::string& name, std::int64_t most_bytes) const;
  // Whole or not at all; of several writers at once the last one stands.
  Status write(const std::string& name, std::string_view bytes) const;
  // As `write` makes it, without changing one that is there. Fails where that one is refused.
  Status make_file(const std::string& name) const;
  Status check_file(const std::string& name) const;  // nothing is wrong with a missing file

  struct Entry {
    std::string name;
    std::int64_t bytes = 0;
    timespec used = {};
  };
  std::vector<Entry> files() const;  // regular ones, in no order
  void mark_as_used(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  PrivateFolder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace weft
