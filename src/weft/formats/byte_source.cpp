#include "weft/formats/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "weft/base/descriptor.h"
#include "weft/base/file.h"
#include "weft/base/letters.h"

namespace weft::formats {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

class FileSource final : public ByteSource {
 public:
  FileSource(Descriptor file, std::int64_t size, std::string path)
      : file_(std::move(file)), size_(size), path_(std::move(path)) {}

  Result<std::string_view> next() override {
    block_.resize(kReadAtOnce);
    ssize_t got = 0;
    do got = ::read(file_.number(), block_.data(), block_.size());
    while (got < 0 && errno == EINTR);
    if (got < 0)
      return environment_error(
          fmt::format("cannot read {}: {}", path_, std::generic_category().message(errno)));
    read_ += got;
    return std::string_view(block_).substr(0, static_cast<std::size_t>(got));
  }

  double share() const override {
    return size_ <= read_ ? 1 : static_cast<double>(read_) / static_cast<double>(size_);
  }

 private:
  Descriptor file_;
  std::int64_t size_, read_ = 0;  // a pipe has no size
  std::string path_, block_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(const std::string& path) {
  WEFT_TRY(file, open_to_read(path));
  struct stat about = {};
  if (::fstat(file.number(), &about) != 0)
    return environment_error(fmt::format("cannot read {}: {}", path, std::generic_category().message(errno)));
  std::unique_ptr<ByteSource> source =
      std::make_unique<FileSource>(std::move(file), static_cast<std::int64_t>(about.st_size), path);
  if (lower(std::filesystem::path(path).extension().string()) != ".gz") return source;
  return inflate_source(std::move(source), path);
}

}  // namespace weft::formats
