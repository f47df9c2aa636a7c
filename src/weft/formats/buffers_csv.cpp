#include "weft/formats/buffers_csv.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::array<std::string_view, 4> kColumns = {"id", "lower", "upper", "size"};

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    fields.push_back(without_blanks(line.substr(begin, comma - begin)));
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

class BufferLines {
 public:
  Status line(std::string_view text, std::size_t number) {
    number_ = number;
    const std::vector<std::string_view> fields = fields_of(text);
    if (width_ == 0) return header(fields);
    if (fields.size() != width_)
      return wrong(fmt::format("expected {} fields, found {}", width_, fields.size()));
    const std::string_view id = fields[places_[0]];
    std::array<std::int64_t, 3> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      WEFT_TRY(value, whole(fields[places_[i + 1]], kColumns[i + 1]));
      numbers[i] = value;
    }
    const auto [lower, upper, size] = numbers;
    if (upper < lower) return wrong(fmt::format("expected lower <= upper, found {} and {}", lower, upper));
    if (size < 0) return wrong(fmt::format("expected a size from 0, found {}", size));
    if (!known_.insert(std::string(id)).second)
      return wrong(fmt::format("expected every id once, found '{}' twice", shown(id)));
    read_.ids.emplace_back(id);
    read_.buffers.push_back({lower, upper, size});
    return {};
  }

  Result<NamedBuffers> take() {
    if (width_ == 0) return user_error("expected a header with id, lower, upper and size, found nothing");
    return std::move(read_);
  }

 private:
  Error wrong(std::string_view what) const { return user_error(fmt::format("line {}: {}", number_, what)); }

  Status header(const std::vector<std::string_view>& fields) {
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      std::optional<std::size_t> place;
      for (std::size_t f = 0; f < fields.size(); ++f) {
        if (fields[f] != kColumns[c]) continue;
        if (place) return wrong(fmt::format("expected one column '{}', found two", kColumns[c]));
        place = f;
      }
      if (!place) return wrong(fmt::format("expected a column '{}', found none", kColumns[c]));
      places_[c] = *place;
    }
    width_ = fields.size();
    return {};
  }

  Result<std::int64_t> whole(std::string_view text, std::string_view column) const {
    if (const auto value = read_number<std::int64_t>(text)) return *value;
    return wrong(fmt::format("{}: expected a whole number, found '{}'", column, shown(text)));
  }

  std::size_t width_ = 0, number_ = 0;
  std::array<std::size_t, 4> places_{};
  std::set<std::string> known_;
  NamedBuffers read_;
};

}  // namespace

Result<NamedBuffers> read_buffers_csv(std::string_view text) {
  BufferLines lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!without_blanks(line).empty()) WEFT_TRY_STATUS(lines.line(line, number));
  }
  return lines.take();
}

}  // namespace weft::formats
