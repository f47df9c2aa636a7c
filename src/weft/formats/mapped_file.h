// weft/formats/mapped_file.h -- a memory-mapped file: pages that are not accessed take no memory.
//
// The file must not change while it is mapped: accessing a truncated file kills the process.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

class MappedFile {
 public:
  // Fails if it cannot be read, or is not a regular file.
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
