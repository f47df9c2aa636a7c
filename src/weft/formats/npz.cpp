#include "weft/formats/npz.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/crc32.h"
#include "weft/base/nearest.h"
#include "weft/formats/byte_source.h"
#include "weft/formats/npy.h"
#include "weft/formats/table_buffer.h"

namespace weft::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in the file");

constexpr std::uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::uint32_t kZip64EndMark = 0x06064b50, kZip64LocatorMark = 0x07064b50;  // zip64
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kFarPlaceBytes = 20,
                      kFarEndBytes = 56;
constexpr std::uint32_t kZip64Sentinel = 0xffffffff;  // the number is in the zip64 field
constexpr std::uint16_t kStored = 0, kDeflated = 8;
constexpr std::size_t kUsuallyPacked = 16;  // compression ratio that numbers rarely exceed

// The number at offset `at`. REQUIRES: it is inside `bytes`.
template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct ZipEntry {
  std::string_view name;
  std::uint16_t method = kStored;
  std::uint32_t checksum = 0;
  std::uint64_t packed = 0, unpacked = 0, place = 0;
};

// The bytes of a member, checked at the end against the CRC-32 in the directory.
class CheckedSource final : public ByteSource {
 public:
  CheckedSource(std::unique_ptr<ByteSource> member, std::uint32_t expected, std::string name)
      : member_(std::move(member)), expected_(expected), name_(std::move(name)) {}

  Result<std::string_view> next() override {
    WEFT_TRY(some, member_->next());
    if (some.empty() && found_ != expected_)
      return environment_error(
          fmt::format("{} is damaged: expected CRC-32 {:08x}, found {:08x}", name_, expected_, found_),
          "download the file again");
    found_ = crc32(std::as_bytes(std::span(some)), found_);
    return some;
  }
  double share() const override { return member_->share(); }

  // The error to report for a member that could not be parsed: damage takes precedence over
  // `read_as`. Reads at most `most` further bytes, since a small file may contain a huge member.
  Error blame(Error read_as, std::size_t most) {
    for (std::size_t seen = 0; seen <= most;) {
      const Result<std::string_view> some = next();
      if (!some.ok()) return some.error();
      if (some->empty()) break;
      seen += some->size();
    }
    return read_as;
  }

 private:
  std::unique_ptr<ByteSource> member_;
  std::uint32_t expected_, found_ = 0;
  std::string name_;
};

class ZipReader {
 public:
  ZipReader(std::string_view bytes, std::string_view path) : bytes_(bytes), path_(path) {}

  Result<std::vector<ZipEntry>> entries() {
    const std::optional<std::size_t> end = find_end();
    if (!end)
      return user_error(fmt::format("{} is not an npz file: expected a zip file", path_),
                        "write it with numpy.savez");
    std::uint64_t at = number_at<std::uint32_t>(bytes_, *end + 16),
                  count = number_at<std::uint16_t>(bytes_, *end + 10);
    if (at == kZip64Sentinel || count == 0xffff) {
      const auto far = find_zip64_end(*end);
      if (!far) return damaged();
      at = number_at<std::uint64_t>(bytes_, *far + 48);
      count = number_at<std::uint64_t>(bytes_, *far + 32);
    }
    std::vector<ZipEntry> found;
    for (std::uint64_t i = 0; i < count; ++i) {
      WEFT_TRY(entry, read_entry(at));
      found.push_back(entry);
    }
    return found;
  }

  Result<CheckedSource> read(const ZipEntry& entry) const {
    WEFT_TRY(member, open(entry));
    return CheckedSource(std::move(member), entry.checksum, fmt::format("{}: {}", path_, entry.name));
  }

 private:
  Result<std::unique_ptr<ByteSource>> open(const ZipEntry& entry) const {
    if (!has(entry.place, kLocalBytes) || number_at<std::uint32_t>(bytes_, entry.place) != kLocalMark)
      return damaged();
    const std::uint64_t begin = entry.place + kLocalBytes +
                                number_at<std::uint16_t>(bytes_, entry.place + 26) +
                                number_at<std::uint16_t>(bytes_, entry.place + 28);
    if (!has(begin, entry.packed)) return damaged();
    const std::string_view packed = bytes_.substr(begin, entry.packed);
    const std::string name = fmt::format("{}: {}", path_, entry.name);
    if (entry.method == kStored && entry.packed == entry.unpacked)
      return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(packed));
    if (entry.method != kDeflated)
      return user_error(
          fmt::format("{} uses compression method {}, expected stored or deflated", name, entry.method),
          "write it with numpy.savez");
    // Deflate compresses at most 1032:1; a larger claim is invalid.
    if (entry.unpacked / 1032 > entry.packed) return damaged();
    return inflate_raw_source(packed, entry.unpacked, name);
  }

  bool has(std::uint64_t at, std::uint64_t count) const {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }

  Error damaged() const {
    return environment_error(fmt::format("{} is damaged: its zip directory is invalid", path_),
                             "download the file again");
  }

  // The end record may be followed by a comment of up to 65,535 bytes.
  std::optional<std::size_t> find_end() const {
    if (bytes_.size() < kEndBytes) return std::nullopt;
    const std::size_t last = bytes_.size() - kEndBytes, first = last - std::min<std::size_t>(last, 0xffff);
    for (std::size_t at = last + 1; at-- > first;)
      if (number_at<std::uint32_t>(bytes_, at) == kEndMark) return at;
    return std::nullopt;
  }

  std::optional<std::uint64_t> find_zip64_end(std::size_t end) const {
    if (end < kFarPlaceBytes || number_at<std::uint32_t>(bytes_, end - kFarPlaceBytes) != kZip64LocatorMark)
      return std::nullopt;
    const auto at = number_at<std::uint64_t>(bytes_, end - kFarPlaceBytes + 8);
    if (!has(at, kFarEndBytes) || number_at<std::uint32_t>(bytes_, at) != kZip64EndMark) return std::nullopt;
    return at;
  }

  Result<ZipEntry> read_entry(std::uint64_t& at) const {
    if (!has(at, kEntryBytes) || number_at<std::uint32_t>(bytes_, at) != kEntryMark) return damaged();
    const std::uint64_t name = number_at<std::uint16_t>(bytes_, at + 28),
                        extra = number_at<std::uint16_t>(bytes_, at + 30),
                        comment = number_at<std::uint16_t>(bytes_, at + 32);
    if (!has(at + kEntryBytes, name + extra + comment)) return damaged();
    ZipEntry entry{.name = bytes_.substr(at + kEntryBytes, name),
                   .method = number_at<std::uint16_t>(bytes_, at + 10),
                   .checksum = number_at<std::uint32_t>(bytes_, at + 16),
                   .packed = number_at<std::uint32_t>(bytes_, at + 20),
                   .unpacked = number_at<std::uint32_t>(bytes_, at + 24),
                   .place = number_at<std::uint32_t>(bytes_, at + 42)};
    if (!read_zip64(bytes_.substr(at + kEntryBytes + name, extra), entry)) return damaged();
    at += kEntryBytes + name + extra + comment;
    return entry;
  }

  // The zip64 field contains those numbers, in this order, that did not fit.
  static bool read_zip64(std::string_view extra, ZipEntry& entry) {
    while (extra.size() >= 4) {
      const std::size_t size = number_at<std::uint16_t>(extra, 2);
      if (size > extra.size() - 4) return false;
      std::string_view field = extra.substr(4, size);
      if (number_at<std::uint16_t>(extra, 0) == 1)
        for (std::uint64_t* number : {&entry.unpacked, &entry.packed, &entry.place}) {
          if (*number != kZip64Sentinel) continue;
          if (field.size() < 8) return false;
          *number = number_at<std::uint64_t>(field, 0);
          field.remove_prefix(8);
        }
      extra.remove_prefix(4 + size);
    }
    return entry.packed != kZip64Sentinel && entry.unpacked != kZip64Sentinel &&
           entry.place != kZip64Sentinel;
  }

  std::string_view bytes_, path_;
};

std::string_view array_name(const ZipEntry& entry) {
  std::string_view name = entry.name;
  if (name.ends_with(".npy")) name.remove_suffix(4);
  return name;
}

}  // namespace

Result<Table> parse_npz(std::string_view bytes, std::span<const Field> fields, std::string_view path,
                        std::int64_t most_bytes) {
  WEFT_TRY_STATUS(check(fields));
  if (most_bytes <= 0) most_bytes = max_table_bytes();
  ZipReader zip(bytes, path);
  WEFT_TRY(entries, zip.entries());
  std::vector<std::string_view> names;
  for (const ZipEntry& entry : entries) names.push_back(array_name(entry));
  std::vector<Table> tables;
  for (const Field& field : fields) {
    const auto found = std::ranges::find(entries, field.name, array_name);
    if (found == entries.end()) {
      std::string hint = did_you_mean(field.name, names);
      return user_error(fmt::format("{} has no array {}", path, field.name),
                        hint.empty() ? fmt::format("it has {}; numpy.savez('x.npz', {}=...) names it",
                                                   fmt::join(names, ", "), field.name)
                                     : hint);
    }
    WEFT_TRY(array, zip.read(*found));
    const std::string name = fmt::format("{}: {}", path, found->name);
    auto read = read_npy(array, {&field, 1}, name, most_bytes);
    if (!read.ok()) return array.blame(std::move(read).error(), kUsuallyPacked * bytes.size());
    Table table = std::move(*read);
    most_bytes -= std::min(most_bytes - 1, table.rows() * field.width * plan::size_in_bytes(field.dtype));
    if (!tables.empty() && table.rows() != tables[0].rows())
      return user_error(fmt::format("{} has {} rows of {} and {} of {}", path, tables[0].rows(),
                                    fields[0].name, table.rows(), field.name),
                        "every array must have one row per example");
    tables.push_back(std::move(table));
  }
  return side_by_side(std::move(tables));
}

}  // namespace weft::formats
