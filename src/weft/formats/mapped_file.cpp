#include "weft/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weft::formats {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto failed = [&](std::string_view why) {
    return environment_error(fmt::format("cannot read {}: {}", path, why));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed(std::strerror(errno));
  struct stat about {};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(file);
    return failed(S_ISDIR(about.st_mode) ? std::strerror(EISDIR)
                                         : "expected a file, found a pipe or a device");
  }
  MappedFile mapped;
  mapped.size_ = static_cast<std::size_t>(about.st_size);
  if (mapped.size_ > 0) {
    void* const data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      const int why = errno;
      ::close(file);
      mapped.size_ = 0;
      return failed(std::strerror(why));
    }
    mapped.data_ = static_cast<const std::byte*>(data);
  }
  ::close(file);
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace weft::formats
