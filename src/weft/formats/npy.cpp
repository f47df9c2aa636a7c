#include "weft/formats/npy.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/device/element_access.h"
#include "weft/formats/table_buffer.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in the file");

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kElements =
    "<f2, <f4, <f8, |i1, <i2, <i4, <i8, |u1, <u2, <u4, <u8 or |b1 (little-endian)";

// A stored element type, and the widest type of its kind, which represents it exactly.
template <class Stored>
struct Element {
  using Wide = std::conditional_t<std::is_integral_v<Stored>, std::int64_t, double>;
  static Misfit widen(Stored stored, Wide& wide) {
    if constexpr (std::is_same_v<Stored, std::uint64_t>)
      if (stored > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return Misfit::out_of_range;
    wide = static_cast<Wide>(stored);
    return Misfit::none;
  }
};
struct F16 {
  std::uint16_t bits;
};
template <>
struct Element<F16> {
  using Wide = double;
  static Misfit widen(F16 stored, Wide& wide) {
    wide = device::from_f16(stored.bits);
    return Misfit::none;
  }
};
enum class Truth : std::uint8_t {};
template <>
struct Element<Truth> {
  using Wide = std::int64_t;
  static Misfit widen(Truth stored, Wide& wide) {
    wide = static_cast<Wide>(stored);
    return wide > 1 ? Misfit::out_of_range : Misfit::none;
  }
};

template <class Stored>
std::string print_element(Stored stored) {
  if constexpr (std::is_arithmetic_v<Stored>) {
    return fmt::format("{}", stored);
  } else {
    typename Element<Stored>::Wide wide = 0;
    Element<Stored>::widen(stored, wide);
    return fmt::format("{}", wide);
  }
}

struct Header {
  std::string_view descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Parses the Python dictionary that numpy writes: every key once, in any order.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  std::optional<Header> read() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const auto key = read_string();
      if (!key || !take(':')) return std::nullopt;
      bool read = false;
      if (*key == "descr" && !std::exchange(has_descr, true))
        read = read_descr(header.descr);
      else if (*key == "fortran_order" && !std::exchange(has_order, true))
        read = read_truth(header.fortran_order);
      else if (*key == "shape" && !std::exchange(has_shape, true))
        read = read_shape(header.shape);
      if (!read) return std::nullopt;
      if (!take(',') && !rest_.starts_with('}')) return std::nullopt;
    }
    skip_spaces();
    if (!rest_.empty() || !has_descr || !has_order || !has_shape) return std::nullopt;
    return header;
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }

  // Consumes one character and the spaces around it.
  bool take(char sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    skip_spaces();
    return true;
  }

  std::optional<std::string_view> read_string() {
    if (!rest_.starts_with('\'') && !rest_.starts_with('"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  // A string. Record dtypes are lists, which are not supported: consumed up to the closing bracket.
  bool read_descr(std::string_view& descr) {
    if (const auto text = read_string()) {
      descr = *text;
      return true;
    }
    const std::size_t end = rest_.find(']');
    if (!rest_.starts_with('[') || end == std::string_view::npos) return false;
    descr = rest_.substr(0, end + 1);
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool read_truth(bool& truth) {
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      truth = word == "True";
      rest_.remove_prefix(word.size());
      return true;
    }
    return false;
  }

  bool read_shape(std::vector<std::int64_t>& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2's long integers
      shape.push_back(size);
      if (!take(',') && !rest_.starts_with(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

class NpyReader {
 public:
  NpyReader(ByteSource& source, std::span<const Field> fields, std::string_view path, std::int64_t most_bytes)
      : source_(source), fields_(fields), path_(path), room_(fields, most_bytes, path) {}

  Result<Table> read() {
    WEFT_TRY_STATUS(gather_header());
    WEFT_TRY(header, read_header());
    if (header.descr == "<f2") return read_rows<F16>(header);
    if (header.descr == "<f4") return read_rows<float>(header);
    if (header.descr == "<f8") return read_rows<double>(header);
    if (header.descr == "|i1") return read_rows<std::int8_t>(header);
    if (header.descr == "<i2") return read_rows<std::int16_t>(header);
    if (header.descr == "<i4") return read_rows<std::int32_t>(header);
    if (header.descr == "<i8") return read_rows<std::int64_t>(header);
    if (header.descr == "|u1") return read_rows<std::uint8_t>(header);
    if (header.descr == "<u2") return read_rows<std::uint16_t>(header);
    if (header.descr == "<u4") return read_rows<std::uint32_t>(header);
    if (header.descr == "<u8") return read_rows<std::uint64_t>(header);
    if (header.descr == "|b1") return read_rows<Truth>(header);
    return user_error(fmt::format("{} holds {}, expected one of {}", path_, shown(header.descr), kElements),
                      "convert it with x.astype('float32')");
  }

 private:
  // Reads until the whole header is in memory, which the first chunk usually contains.
  Status gather_header() {
    constexpr std::size_t kMostHeader = std::size_t{1} << 20;
    WEFT_TRY(first, source_.next());
    for (rest_ = first; !has_header() && rest_.size() < kMostHeader;) {
      if (begun_.empty()) begun_ = rest_;
      WEFT_TRY(some, source_.next());
      if (some.empty()) break;
      begun_ += some;
      rest_ = begun_;
    }
    return {};
  }

  bool has_header() const {
    const std::size_t fixed = rest_.size() > 6 && rest_[6] == 1 ? 10 : 12;
    if (rest_.size() < fixed) return false;
    std::size_t length = 0;
    std::memcpy(&length, rest_.data() + 8, fixed - 8);
    return rest_.size() - fixed >= length;
  }

  // Consumes a little-endian number of `count` bytes.
  std::optional<std::size_t> take_number(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    std::size_t number = 0;
    std::memcpy(&number, rest_.data(), count);
    rest_.remove_prefix(count);
    return number;
  }

  Result<Header> read_header() {
    if (!kNpyMagic.starts_with(rest_.substr(0, kNpyMagic.size())) || rest_.empty())
      return user_error(fmt::format("{} is not an npy file: expected it to begin with \\x93NUMPY", path_),
                        "write it with numpy.save");
    rest_.remove_prefix(std::min(kNpyMagic.size(), rest_.size()));
    const auto major = take_number(1), minor = take_number(1);
    if (!minor) return cut_short();
    if (*major < 1 || *major > 3 || *minor != 0)
      return user_error(
          fmt::format("{}: expected npy version 1.0, 2.0 or 3.0, found {}.{}", path_, *major, *minor));
    const auto length = take_number(*major == 1 ? 2 : 4);
    if (!length || *length > rest_.size()) return cut_short();
    const auto header = HeaderReader(rest_.substr(0, *length)).read();
    if (!header)
      return user_error(fmt::format("{}: expected a header with descr, fortran_order and shape, found {}",
                                    path_, shown(rest_.substr(0, *length))));
    rest_.remove_prefix(*length);
    return *header;
  }

  Error cut_short() const {
    return environment_error(fmt::format("{} is truncated: its header is missing", path_));
  }

  // Checks the dimensions after the first.
  Status check_row(const Header& header, std::int64_t width) const {
    const std::span row = std::span(header.shape).subspan(1);
    std::int64_t found = 1;
    bool vast = false;
    for (const std::int64_t size : row) vast = vast || __builtin_mul_overflow(found, size, &found);
    if (vast || found != width)
      return user_error(fmt::format("{} has {} column{}, expected {} ({})", path_,
                                    vast ? std::string("too many") : fmt::format("{}", found),
                                    found == 1 ? "" : "s", width, describe(fields_)));
    if (row.size() <= 1) return {};
    const Field& field = fields_[0];
    if (fields_.size() > 1)
      return user_error(fmt::format("{} has {} dimensions, expected 2 (rows, {}) for {}", path_,
                                    header.shape.size(), width, describe(fields_)),
                        "give each input a file: FROM x = 'x.npy', y = 'y.npy'");
    if (field.shape.empty() || std::ranges::equal(row, field.shape)) return {};
    return user_error(fmt::format("{} has rows of {}, {} is {}", path_, fmt::join(row, " x "), field.name,
                                  fmt::join(field.shape, " x ")),
                      "save it in the order of the input's indices: numpy.transpose");
  }

  Status check_shape(const Header& header, std::size_t element) const {
    const std::int64_t width = row_width(fields_);
    if (header.shape.empty())
      return user_error(fmt::format("{} is a single number, expected rows of {}", path_, width));
    if (header.fortran_order)
      return user_error(fmt::format("{} is in Fortran order, expected C order", path_),
                        "save numpy.ascontiguousarray(x)");
    WEFT_TRY_STATUS(check_row(header, width));
    if (header.shape[0] == 0) return user_error(fmt::format("{} has no rows", path_));
    std::int64_t expected = 0;
    if (__builtin_mul_overflow(header.shape[0], width * static_cast<std::int64_t>(element), &expected))
      return few_bytes(header, width * static_cast<std::int64_t>(element), rest_.size());
    return {};
  }

  Error few_bytes(const Header& header, std::int64_t row_bytes, std::size_t found) const {
    return environment_error(
        fmt::format("{} is truncated: its header states {} rows of {} bytes, found {} bytes", path_,
                    header.shape[0], row_bytes, found));
  }

  template <class Stored>
  Result<Table> read_rows(const Header& header) {
    WEFT_TRY_STATUS(check_shape(header, sizeof(Stored)));
    const auto row_bytes = static_cast<std::size_t>(row_width(fields_)) * sizeof(Stored);
    const std::int64_t rows = header.shape[0];
    std::int64_t done = 0;
    std::size_t found = rest_.size();  // bytes of numbers read
    std::string part;                  // an incomplete row
    for (std::string_view some = rest_;;) {
      const auto whole =
          std::min<std::int64_t>(rows - done, static_cast<std::int64_t>(some.size() / row_bytes));
      if (whole > 0) {
        WEFT_TRY_STATUS(take_rows<Stored>(some.data(), done, whole, rows));
        done += whole;
        some.remove_prefix(static_cast<std::size_t>(whole) * row_bytes);
      }
      std::string left = done < rows ? std::string(some) : std::string();
      WEFT_TRY(more, source_.next());
      if (more.empty()) break;
      found += more.size();
      // A small array may be followed by a huge rest: do not inflate it just to count.
      if (done == rows)
        return user_error(fmt::format("{}: expected {} bytes of numbers, found more", path_,
                                      static_cast<std::size_t>(rows) * row_bytes));
      part = std::move(left);
      if (part.empty()) {
        some = more;
        continue;
      }
      part += more;
      some = part;
    }
    if (done < rows) return few_bytes(header, static_cast<std::int64_t>(row_bytes), found);
    if (found != static_cast<std::size_t>(rows) * row_bytes)
      return user_error(fmt::format("{}: expected {} bytes of numbers, found {}", path_,
                                    static_cast<std::size_t>(rows) * row_bytes, found));
    return std::move(room_).finish(rows);
  }

  template <class Stored>
  Status take_rows(const char* bytes, std::int64_t done, std::int64_t count, std::int64_t all) {
    const double likely = static_cast<double>(done + count) / source_.share();
    WEFT_TRY_STATUS(room_.make_room(done + count, std::min(likely, static_cast<double>(all))));
    std::int64_t column = 0;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const Field& field = fields_[i];
      const Status read = std::visit(
          [&](auto& numbers) {
            return read_field<Stored>(field, column, bytes, done, count, numbers.data() + done * field.width);
          },
          room_.values(i));
      if (!read.ok()) return read;
      column += field.width;
    }
    return {};
  }

  // Reads columns [first, first + field.width) of `count` rows, starting at row `done`.
  template <class Stored, class T>
  Status read_field(const Field& field, std::int64_t first, const char* bytes, std::int64_t done,
                    std::int64_t count, T* out) const {
    const std::int64_t width = row_width(fields_);
    for (std::int64_t row = 0; row < count; ++row) {
      const char* at = bytes + (row * width + first) * static_cast<std::int64_t>(sizeof(Stored));
      for (std::int64_t i = 0; i < field.width; ++i, ++out, at += sizeof(Stored)) {
        Stored stored;
        std::memcpy(&stored, at, sizeof stored);
        Misfit misfit = Misfit::none;
        if constexpr (std::is_same_v<Stored, std::uint64_t> && std::is_floating_point_v<T>) {
          misfit = fit(static_cast<double>(stored), *out);
        } else {
          typename Element<Stored>::Wide wide = 0;
          misfit = Element<Stored>::widen(stored, wide);
          if (misfit == Misfit::none) misfit = fit(wide, *out);
        }
        if (misfit == Misfit::none) continue;
        const std::string place = fmt::format("{}[{}, {}] ({})", path_, done + row, first + i, field.name);
        if constexpr (std::is_same_v<Stored, Truth>)
          return user_error(
              fmt::format("{}: expected 0 or 1 for |b1, found {}", place, print_element(stored)));
        else
          return misfit_error(misfit, place, field, print_element(stored));
      }
    }
    return {};
  }

  ByteSource& source_;
  std::string_view rest_;  // unread bytes of what was read for the header
  std::string begun_;      // buffer for it, if it spans several chunks
  std::span<const Field> fields_;
  std::string_view path_;
  TableBuffer room_;
};

}  // namespace

Result<Table> read_npy(ByteSource& source, std::span<const Field> fields, std::string_view path,
                       std::int64_t most_bytes) {
  WEFT_TRY_STATUS(check(fields));
  return NpyReader(source, fields, path, most_bytes).read();
}

Result<Table> parse_npy(std::string_view bytes, std::span<const Field> fields, std::string_view path) {
  MemorySource source(bytes);
  return read_npy(source, fields, path);
}

}  // namespace weft::formats
