#include "weft/formats/csv.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/formats/table_buffer.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

// Placeholder for a comma inside quotes while a line is split.
constexpr char kInnerComma = '\x1f';

bool is_csv_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

const char* skip_spaces(const char* at, const char* end) {
  while (at != end && is_csv_space(*at)) ++at;
  return at;
}

std::string_view trim_value(std::string_view text) {
  while (!text.empty() && is_csv_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_csv_space(text.back())) text.remove_suffix(1);
  return text;
}

// Calls `visit(index, value)` for each value of the line until it returns false.
template <class Visit>
void for_each_value(std::string_view line, Visit visit) {
  for (std::int64_t index = 0;; ++index) {
    const std::size_t comma = line.find(',');
    if (!visit(index, trim_value(line.substr(0, comma))) || comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

bool begins_as_number(std::string_view text) {
  return !text.empty() && std::string_view("0123456789+-.").find(text[0]) != std::string_view::npos;
}

bool is_finite(std::floating_point auto value) { return std::isfinite(value); }
bool is_finite(std::integral auto) { return true; }

template <class T>
std::optional<std::errc> read_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::invalid_argument && end == text.data() + text.size()) return error;
  return std::nullopt;  // not a number, or followed by more text
}

// Fast path for short decimals, which most values are: 0, 13, 0.25, -1.5. With at most seven digits
// both the digits and the power of ten are exact floats, so their quotient is the nearest float.
// Takes half the time of from_chars. Returns null for any other form.
const char* read_short(const char* at, const char* end, float& value) {
  constexpr int kMostDigits = 7;
  constexpr float kPowers[kMostDigits + 1] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f};
  const bool negative = at != end && *at == '-';
  at += negative;
  std::uint32_t digits = 0;
  int count = 0, decimals = 0;
  const auto read_digits = [&] {
    const int before = count;
    for (; at != end && *at >= '0' && *at <= '9' && count <= kMostDigits; ++at, ++count)
      digits = 10 * digits + static_cast<std::uint32_t>(*at - '0');
    return count - before;
  };
  read_digits();
  if (at != end && *at == '.') {
    ++at;
    decimals = read_digits();
  }
  if (count == 0 || count > kMostDigits || (at != end && *at != ',')) return nullptr;
  float magnitude = static_cast<float>(digits);
  if (decimals != 0) magnitude /= kPowers[decimals];
  value = negative ? -magnitude : magnitude;
  return at;
}

// Other types are integers, for which from_chars is fast, or doubles, which are rare.
const char* read_short(const char*, const char*, auto&) { return nullptr; }

// Reads a value in any spelling: a plus sign, an integer with a decimal point, or a number that
// underflows its type, which becomes zero.
template <class T>
Misfit read_carefully(std::string_view text, T& value) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  if (const auto exact = read_whole(text, value)) {
    if (*exact == std::errc() && is_finite(value)) return Misfit::none;
    if (std::integral<T>) return Misfit::out_of_range;
  }
  double wide = 0;
  const auto error = read_whole(text, wide);
  if (!error) return Misfit::not_a_number;
  if (*error == std::errc()) return fit(wide, value);
  // Overflow or underflow of a double: the sign of the exponent tells which.
  if (text.find("e-") == std::string_view::npos && text.find("E-") == std::string_view::npos)
    return Misfit::out_of_range;
  if (std::integral<T>) return Misfit::not_whole;
  value = 0;
  return Misfit::none;
}

class CsvParser {
 public:
  CsvParser(ByteSource& source, std::span<const Field> fields, std::string_view path, std::int64_t most_bytes)
      : source_(source),
        fields_(fields),
        width_(row_width(fields)),
        path_(path),
        room_(fields, most_bytes, path) {}

  Result<Table> parse() {
    bool first = true;
    for (;;) {
      WEFT_TRY(is_line, next_line());
      if (!is_line) break;
      constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
      if (line_number_ == 1 && line_.starts_with(kByteOrderMark))
        line_ = trim_value(line_.substr(kByteOrderMark.size()));
      if (line_.empty()) continue;
      WEFT_TRY_STATUS(remove_quotes());
      if (std::exchange(first, false) && is_header()) {
        WEFT_TRY_STATUS(check_header());
        continue;
      }
      WEFT_TRY_STATUS(read_row());
    }
    if (rows_ == 0)
      return user_error(fmt::format("{} has no rows", path_),
                        fmt::format("each row is a line of {}: {}", counted_values(), describe(fields_)));
    return std::move(room_).finish(rows_);
  }

 private:
  // Reads the next line, which may span several chunks of the source. Returns false at the end.
  Result<bool> next_line() {
    begun_.clear();
    for (;;) {
      if (rest_.empty()) {
        WEFT_TRY(some, source_.next());
        rest_ = some;
        if (rest_.empty()) break;
      }
      // A small .gz can contain a huge number of empty lines: skip them in one go.
      const std::size_t blank = begun_.empty() ? std::min(rest_.find_first_not_of('\n'), rest_.size()) : 0;
      line_number_ += static_cast<std::int64_t>(blank);
      rest_.remove_prefix(blank);
      if (rest_.empty()) continue;
      const std::size_t end = rest_.find('\n');
      if (end != std::string_view::npos) {
        const std::string_view piece = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        if (!begun_.empty()) begun_ += piece;
        line_ = trim_value(begun_.empty() ? piece : std::string_view(begun_));
        ++line_number_;
        return true;
      }
      begun_ += rest_;
      rest_ = {};
      if (begun_.size() > longest_line()) return long_line_error();
    }
    if (begun_.empty()) return false;
    line_ = trim_value(begun_);
    ++line_number_;
    return true;
  }

  // Far more than a row needs, even with spaces, quotes and all digits.
  std::size_t longest_line() const { return (std::size_t{1} << 20) + 64 * static_cast<std::size_t>(width_); }

  Error long_line_error() const {
    return user_error(
        fmt::format("{} line {}: expected {} ({}), found a line of more than {}", path_, line_number_ + 1,
                    counted_values(), describe(fields_), print_bytes(static_cast<double>(longest_line()))),
        "write one row per line");
  }

  // Removes quotes: "a, b", 7 becomes a, b,7 with a placeholder for the inner comma. Lines without
  // quotes are left unchanged.
  Status remove_quotes() {
    if (line_.find('"') == std::string_view::npos) return {};
    unquoted_.clear();
    for (std::string_view rest = line_;;) {
      while (!rest.empty() && is_csv_space(rest.front())) rest.remove_prefix(1);
      if (rest.starts_with('"')) {
        WEFT_TRY(after, take_quoted(rest));
        rest = trim_value(after);
      } else {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        unquoted_ += rest.substr(0, comma);
        rest.remove_prefix(comma);
      }
      if (rest.empty()) break;
      if (rest.front() != ',')
        return user_error(fmt::format("{} line {}: expected a comma after a value in quotes, found '{}'",
                                      path_, line_number_, shown(rest)),
                          "a quote inside quotes is written twice");
      unquoted_ += ',';
      rest.remove_prefix(1);
    }
    line_ = unquoted_;
    return {};
  }

  // Consumes "..." at the front and returns the rest.
  Result<std::string_view> take_quoted(std::string_view rest) {
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == '"' && (i + 1 == rest.size() || rest[i + 1] != '"')) return rest.substr(i + 1);
      unquoted_ += rest[i] == ',' ? kInnerComma : rest[i];
      if (rest[i] == '"') ++i;
    }
    return user_error(
        fmt::format("{} line {}: a value in quotes does not end on its line", path_, line_number_),
        "a quote inside quotes is written twice");
  }

  bool is_header() const {
    bool names = true;
    for_each_value(line_, [&](std::int64_t, std::string_view text) {
      float ignored = 0;
      names = read_carefully(text, ignored) == Misfit::not_a_number && !begins_as_number(text);
      return names;
    });
    return names;
  }

  // Detects files whose header shows the columns in another order than the model's.
  Status check_header() const {
    std::int64_t wanted = 0;
    for (const Field& field : fields_) {
      std::int64_t found = wanted;
      if (field.width == 1)
        for_each_value(line_, [&](std::int64_t index, std::string_view text) {
          if (text == field.name) found = index;
          return found != index || text != field.name;
        });
      if (found != wanted)
        return user_error(fmt::format("{} line {}: expected {} as value {}, found it as value {}", path_,
                                      line_number_, field.name, wanted + 1, found + 1),
                          fmt::format("put the columns in this order: {}", describe(fields_)));
      wanted += field.width;
    }
    return {};
  }

  Status read_row() {
    if (static_cast<std::int64_t>(line_.size()) < 2 * width_ - 1) return short_line_error();
    if (rows_ == room_.room())
      WEFT_TRY_STATUS(room_.make_room(rows_ + 1, static_cast<double>(rows_) / source_.share()));
    const char* at = line_.data();
    std::int64_t index = 0;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::int64_t width = fields_[i].width;
      const Status read = std::visit(
          [&](auto& values) { return read_field(at, index, fields_[i], values.data() + rows_ * width); },
          room_.values(i));
      if (!read.ok()) return read;
      index += width;
    }
    ++rows_;
    return {};
  }

  // Reads the values of one field into `out`; the first is value `index` of the line.
  template <class T>
  Status read_field(const char*& at, std::int64_t index, const Field& field, T* out) const {
    const char* const end = line_.data() + line_.size();
    for (T* const out_end = out + field.width; out != out_end; ++out, ++index) {
      at = skip_spaces(at, end);
      const char* after = read_short(at, end, *out);
      if (after == nullptr) {
        const auto [stop, error] = std::from_chars(at, end, *out);
        after = skip_spaces(stop, end);
        const bool ends = after == end || *after == ',';
        if (error != std::errc() || !ends || !is_finite(*out)) {
          after = std::find(at, end, ',');
          const Misfit misfit = read_carefully(trim_value({at, after}), *out);
          if (misfit != Misfit::none) return value_error(misfit, index, field, trim_value({at, after}));
        }
      }
      const bool last = index + 1 == width_;
      if ((after == end) != last) return count_error();
      at = last ? end : after + 1;
    }
    return {};
  }

  std::string counted_values() const { return fmt::format("{} value{}", width_, width_ == 1 ? "" : "s"); }

  Error count_error() const {
    return user_error(fmt::format("{} line {}: expected {} ({}), found {}", path_, line_number_,
                                  counted_values(), describe(fields_), std::ranges::count(line_, ',') + 1));
  }

  // A wrong number of values is reported first, whatever the values are.
  Error value_error(Misfit misfit, std::int64_t index, const Field& field, std::string_view found) const {
    if (std::ranges::count(line_, ',') + 1 != width_) return count_error();
    std::string value(found);
    std::ranges::replace(value, kInnerComma, ',');
    Error error = misfit_error(
        misfit, fmt::format("{} line {}, value {} ({})", path_, line_number_, index + 1, field.name), field,
        value);
    if (misfit == Misfit::not_a_number && rows_ == 0)
      error.hint = "the first line counts as a header when no value starts like a number";
    return error;
  }

  // A line too short for all values lacks some, or has empty ones.
  Error short_line_error() const {
    std::int64_t empty = 0;
    for_each_value(line_, [&](std::int64_t index, std::string_view text) {
      empty = index;
      return !text.empty();
    });
    std::size_t i = 0;
    for (std::int64_t before = fields_[0].width; before <= empty && i + 1 < fields_.size();)
      before += fields_[++i].width;
    return value_error(Misfit::not_a_number, empty, fields_[i], "");
  }

  ByteSource& source_;
  std::string_view rest_, line_;  // unread bytes of the current chunk; current line
  std::string begun_;             // a line that continues in the next chunk
  std::string unquoted_;          // buffer for line_ if it had quotes
  std::span<const Field> fields_;
  std::int64_t width_;
  std::string_view path_;
  std::int64_t line_number_ = 0, rows_ = 0;
  TableBuffer room_;
};

}  // namespace

Result<Table> read_csv(ByteSource& source, std::span<const Field> fields, std::string_view path,
                       std::int64_t most_bytes) {
  WEFT_TRY_STATUS(check(fields));
  return CsvParser(source, fields, path, most_bytes).parse();
}

Result<Table> parse_csv(std::string_view text, std::span<const Field> fields, std::string_view path) {
  MemorySource source(text);
  return read_csv(source, fields, path);
}

}  // namespace weft::formats
