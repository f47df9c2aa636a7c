// weft/formats/mapped_file.h -- a file's bytes as they lie on the disk: what is not looked at takes no memory.
//
// For files that nobody changes meanwhile: one that is cut short while it is mapped ends the program.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

class MappedFile {
 public:
  // Fails where it cannot be read, or is no file but a folder or a pipe.
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::formats
