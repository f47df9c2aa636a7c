#include "weft/formats/gzip.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

#include "weft/base/units.h"
#include "weft/formats/byte_source.h"

namespace weft::formats {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipOnly = 15 + 16;  // inflateInit2: the largest window, gzip format only
constexpr int kNoWrapper = -15;

class Inflater {
 public:
  explicit Inflater(int window) : ready_(inflateInit2(&stream_, window) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  void restart() { inflateReset(&stream_); }
  std::string_view complaint() const { return stream_.msg != nullptr ? stream_.msg : "invalid data"; }

  // Inflates as much as fits: consumes from the front of `bytes`, writes to `out`, returns zlib's
  // status.
  int step(std::string_view& bytes, std::string& out, std::size_t& filled) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(std::min(bytes.size(), kMost));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream_.avail_out = static_cast<uInt>(std::min(out.size() - filled, kMost));
    const int verdict = inflate(&stream_, Z_NO_FLUSH);
    bytes.remove_prefix(static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - bytes.data()));
    filled = static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out.data());
    return verdict;
  }

 private:
  z_stream stream_ = {};
  bool ready_;
};

constexpr std::size_t kInflatedAtOnce = std::size_t{1} << 20;

Error no_memory_to_inflate(std::string_view path) {
  return environment_error(fmt::format("cannot inflate {}: not enough memory", path));
}

Error damaged_file(std::string_view path, std::string_view complaint) {
  return environment_error(fmt::format("{} is damaged: {}", path, complaint), "download the file again");
}

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string path)
      : packed_(std::move(packed)), path_(std::move(path)), inflater_(kGzipOnly) {}

  Status begin() {
    if (!inflater_.ready()) return no_memory_to_inflate(path_);
    WEFT_TRY(bytes, packed_->next());
    rest_ = bytes;
    if (rest_.empty() || !begins_member())
      return user_error(fmt::format("{} is not a gzip file: expected it to begin with 1f 8b", path_),
                        "if it is not compressed, remove .gz from its name");
    return {};
  }

  Result<std::string_view> next() override {
    out_.resize(kInflatedAtOnce);
    std::size_t filled = 0;
    while (filled == 0 && !ended_) {
      const std::size_t left = rest_.size();
      const int verdict = inflater_.step(rest_, out_, filled);
      total_ += filled;
      if (verdict == Z_STREAM_END) {
        WEFT_TRY_STATUS(begin_next_member());
      } else if (verdict == Z_MEM_ERROR) {
        return no_memory_to_inflate(path_);
      } else if (verdict != Z_OK && verdict != Z_BUF_ERROR) {
        return damaged_file(path_, inflater_.complaint());
      } else if (filled == 0 && rest_.size() == left) {
        WEFT_TRY(bytes, packed_->next());
        rest_ = bytes;
        if (rest_.empty())
          return environment_error(fmt::format("{} is truncated after {} bytes", path_, total_),
                                   "download the file again");
      }
    }
    return std::string_view(out_).substr(0, filled);
  }

  double share() const override { return packed_->share(); }

 private:
  bool begins_member() const {
    return kGzipMagic.starts_with(rest_.substr(0, std::min(rest_.size(), kGzipMagic.size())));
  }

  Status begin_next_member() {
    if (rest_.empty()) {
      WEFT_TRY(bytes, packed_->next());
      rest_ = bytes;
    }
    ended_ = rest_.empty();
    if (ended_) return {};
    if (!begins_member())
      return environment_error(
          fmt::format("{} is damaged: {} bytes follow the end of its contents", path_, rest_.size()));
    inflater_.restart();
    return {};
  }

  std::unique_ptr<ByteSource> packed_;
  std::string path_;
  Inflater inflater_;
  std::string_view rest_;  // unread bytes of the current chunk
  std::string out_;
  std::uint64_t total_ = 0;
  bool ended_ = false;
};

class RawSource final : public ByteSource {
 public:
  RawSource(std::string_view packed, std::uint64_t bytes_after, std::string path)
      : rest_(packed), bytes_after_(bytes_after), path_(std::move(path)), inflater_(kNoWrapper) {}

  bool ready() const { return inflater_.ready(); }

  Result<std::string_view> next() override {
    if (ended_) return std::string_view();
    out_.resize(kInflatedAtOnce);
    std::size_t filled = 0;
    const std::size_t left = rest_.size();
    const int verdict = inflater_.step(rest_, out_, filled);
    total_ += filled;
    const bool stuck = filled == 0 && rest_.size() == left;
    ended_ = verdict == Z_STREAM_END;
    if ((verdict != Z_OK && !ended_) || (!ended_ && stuck) || total_ > bytes_after_)
      return damaged_file(path_, inflater_.complaint());
    if (ended_ && total_ != bytes_after_)
      return damaged_file(path_, fmt::format("expected {} bytes, found {}", bytes_after_, total_));
    // An empty block yields nothing but is not the end.
    return filled == 0 && !ended_ ? next() : std::string_view(out_).substr(0, filled);
  }

  double share() const override {
    return bytes_after_ == 0 ? 1 : static_cast<double>(total_) / static_cast<double>(bytes_after_);
  }

 private:
  std::string_view rest_;
  std::uint64_t bytes_after_, total_ = 0;
  std::string path_;
  Inflater inflater_;
  std::string out_;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> inflate_source(std::unique_ptr<ByteSource> packed, std::string path) {
  auto source = std::make_unique<GzipSource>(std::move(packed), std::move(path));
  WEFT_TRY_STATUS(source->begin());
  return std::unique_ptr<ByteSource>(std::move(source));
}

Result<std::unique_ptr<ByteSource>> inflate_raw_source(std::string_view packed, std::uint64_t bytes_after,
                                                       std::string path) {
  auto source = std::make_unique<RawSource>(packed, bytes_after, path);
  if (!source->ready()) return no_memory_to_inflate(path);
  return std::unique_ptr<ByteSource>(std::move(source));
}

Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t most_bytes, std::string_view path) {
  WEFT_TRY(source, inflate_source(std::make_unique<MemorySource>(bytes), std::string(path)));
  std::string out;
  for (;;) {
    WEFT_TRY(some, source->next());
    if (some.empty()) return out;
    if (static_cast<std::int64_t>(out.size() + some.size()) > most_bytes)
      return user_error(fmt::format("{} is too large: expected at most {} when inflated", path,
                                    print_bytes(static_cast<double>(most_bytes))));
    out += some;
  }
}

}  // namespace weft::formats
