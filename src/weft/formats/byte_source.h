// weft/formats/byte_source.h -- streams a file's bytes, so that readers need not hold it in memory.
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

  // The next bytes, valid until the next call; empty only at the end.
  virtual Result<std::string_view> next() = 0;
  // Fraction of the file read so far, 0 to 1, for extrapolating sizes.
  virtual double share() const = 0;
};

// Bytes that are already in memory.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  Result<std::string_view> next() override { return std::exchange(rest_, {}); }
  double share() const override { return 1; }

 private:
  std::string_view rest_;
};

// A file; inflated if its name ends in .gz.
Result<std::unique_ptr<ByteSource>> open_source(const std::string& path);

// The contents of a gzip file with one or more members. `path` is only for error messages.
Result<std::unique_ptr<ByteSource>> inflate_source(std::unique_ptr<ByteSource> packed, std::string path);
// The same for raw deflate data, as in zip files, which must inflate to exactly `bytes_after`.
Result<std::unique_ptr<ByteSource>> inflate_raw_source(std::string_view packed, std::uint64_t bytes_after,
                                                       std::string path);

}  // namespace weft::formats
