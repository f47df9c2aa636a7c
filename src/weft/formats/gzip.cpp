#include "weft/formats/gzip.h"

#include <fmt/format.h>

#ifdef WEFT_HAS_ZLIB

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "weft/base/units.h"

namespace weft::formats {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipOnly = 15 + 16;  // inflateInit2: the largest window, and a gzip wrapper around it
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

  // Inflates as much as fits: takes from the front of `bytes`, writes to `out`, returns zlib's verdict.
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

}  // namespace

Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t most_bytes, std::string_view path) {
  if (!bytes.starts_with(kGzipMagic))
    return user_error(fmt::format("{} is not a gzip file: expected it to begin with 1f 8b", path),
                      "if it is not compressed, take .gz off its name");
  Inflater inflater(kGzipOnly);
  if (!inflater.ready()) return world_error(fmt::format("cannot inflate {}: not enough memory", path));
  const auto most = static_cast<std::size_t>(most_bytes);
  std::string out;
  std::size_t filled = 0;
  for (;;) {
    if (filled == out.size()) {
      // One byte past the limit: an exact fit has its end still to be read.
      if (filled > most)
        return user_error(fmt::format("{} is too large: expected at most {} when inflated", path,
                                      print_bytes(static_cast<double>(most_bytes))));
      out.resize(std::min(std::max({2 * filled, 4 * bytes.size(), std::size_t{4096}}), most + 1));
    }
    const std::size_t before = filled;
    const int verdict = inflater.step(bytes, out, filled);
    if (verdict == Z_STREAM_END) {
      if (bytes.empty()) break;
      if (!bytes.starts_with(kGzipMagic))
        return world_error(
            fmt::format("{} is damaged: {} bytes follow the end of its contents", path, bytes.size()));
      inflater.restart();
    } else if (verdict == Z_MEM_ERROR) {
      return world_error(fmt::format("cannot inflate {}: not enough memory", path));
    } else if (verdict != Z_OK && verdict != Z_BUF_ERROR) {
      return world_error(fmt::format("{} is damaged: {}", path, inflater.complaint()),
                         "fetch the file again");
    } else if (bytes.empty() && filled == before) {
      return world_error(fmt::format("{} is cut short: its contents go on after {} bytes", path, filled),
                         "fetch the file again");
    }
  }
  if (filled > most)
    return user_error(fmt::format("{} is too large: expected at most {} when inflated", path,
                                  print_bytes(static_cast<double>(most_bytes))));
  out.resize(filled);
  return out;
}

Result<std::string> inflate_raw(std::string_view bytes, std::int64_t bytes_after, std::string_view path) {
  Inflater inflater(kNoWrapper);
  if (!inflater.ready()) return world_error(fmt::format("cannot inflate {}: not enough memory", path));
  std::string out(static_cast<std::size_t>(bytes_after) + 1, '\0');  // one more: too much is seen
  std::size_t filled = 0;
  for (int verdict = Z_OK; verdict != Z_STREAM_END;) {
    const std::size_t before = filled, left = bytes.size();
    verdict = inflater.step(bytes, out, filled);
    const bool stuck = filled == before && bytes.size() == left;
    if ((verdict != Z_OK && verdict != Z_STREAM_END) || (verdict == Z_OK && stuck) || filled == out.size())
      return world_error(fmt::format("{} is damaged: {}", path, inflater.complaint()),
                         "fetch the file again");
  }
  if (filled + 1 != out.size())
    return world_error(fmt::format("{} is damaged: expected {} bytes, found {}", path, bytes_after, filled),
                       "fetch the file again");
  out.resize(filled);
  return out;
}

}  // namespace weft::formats

#else

namespace weft::formats {

Result<std::string> inflate_gzip(std::string_view, std::int64_t, std::string_view path) {
  return user_error(fmt::format("cannot inflate {}: this weft was built without zlib", path),
                    "inflate it first: gunzip FILE");
}

Result<std::string> inflate_raw(std::string_view, std::int64_t, std::string_view path) {
  return user_error(fmt::format("cannot inflate {}: this weft was built without zlib", path),
                    "write it with numpy.savez");
}

}  // namespace weft::formats

#endif
