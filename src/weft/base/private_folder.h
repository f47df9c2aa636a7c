// weft/base/private_folder.h -- a folder whose files only this user can have written.
//
//   ~/.cache/weft/proofs     ours, mode 0700     links: refused
//     3f2a..9c.proof         ours, mode 0600     links: refused
//
// Weft trusts the contents of its caches, and a checksum does not stop an attacker, who can compute
// it too. So a folder or file is refused if it belongs to another user, if others can write to it,
// or if it is a link. Missing folders are created with mode 0700, files with 0600. Files are opened
// relative to the checked folder, so that it cannot be replaced in between.
//
// A caller that is refused continues without the cache and reports the reason: see check().
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
  // Fails if the folder is missing or refused.
  static Result<PrivateFolder> open(const std::string& path);
  // The same, but creates a missing folder and its parents.
  static Result<PrivateFolder> make(const std::string& path);
  // Fails only if the folder exists and is refused; the error is for the user.
  static Status check(const std::string& path);

  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  // Names have no slash. Empty if there is no such file.
  Result<std::optional<std::string>> read(const std::string& name, std::int64_t most_bytes) const;
  // Atomic: writes the whole file or nothing. Of concurrent writers, the last one wins.
  Status write(const std::string& name, std::string_view bytes) const;
  // Creates an empty file with the permissions of `write`, and leaves an existing one unchanged.
  // Fails if the existing file is refused.
  Status make_file(const std::string& name) const;
  Status check_file(const std::string& name) const;  // succeeds for a missing file

  struct Entry {
    std::string name;
    std::int64_t bytes = 0;
    timespec used = {};
  };
  std::vector<Entry> files() const;  // regular files, in no particular order
  void mark_as_used(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  PrivateFolder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace weft
