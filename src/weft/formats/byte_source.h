// weft/formats/byte_source.h -- a file's bytes, some at a time: what reads them need not hold them all.
//
//   digits.csv.gz ──FileSource, 1 MiB──▶ GzipSource, 1 MiB──▶ rows
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::formats {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The next bytes, of which there is at least one until the end; they stay until the next call.
  virtual Result<std::string_view> next() = 0;
  // How much of the file has been read, 0 to 1: the rest may be expected to be like it.
  virtual double share() const = 0;
};

// Bytes that are there.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  Result<std::string_view> next() override { return std::exchange(rest_, {}); }
  double share() const override { return 1; }

 private:
  std::string_view rest_;
};

// A file, or what it inflates to where its name ends in .gz.
Result<std::unique_ptr<ByteSource>> open_source(const std::string& path);

// What a gzip file holds, one member or several in a row. `path` is only for the errors.
Result<std::unique_ptr<ByteSource>> inflate_source(std::unique_ptr<ByteSource> packed, std::string path);
// The same for deflated bytes without a wrapper, as zip files hold them, which become exactly `bytes_after`.
Result<std::unique_ptr<ByteSource>> inflate_raw_source(std::string_view packed, std::uint64_t bytes_after,
                                                       std::string path);

}  // namespace weft::formats
