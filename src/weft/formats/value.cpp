#include "weft/formats/value.h"

#include <fmt/format.h>

namespace weft::formats {
namespace {

constexpr std::size_t kLongestShown = 40;  // characters

std::string_view spelled(plan::DType dtype) {
  return dtype == plan::DType::i32   ? "int32"
         : dtype == plan::DType::i64 ? "int64"
         : dtype == plan::DType::f64 ? "float64"
                                     : "float32";
}

std::string range(plan::DType dtype) {
  using Int32 = std::numeric_limits<std::int32_t>;
  using Int64 = std::numeric_limits<std::int64_t>;
  switch (dtype) {
    case plan::DType::i32: return fmt::format("a whole number from {} to {}", Int32::min(), Int32::max());
    case plan::DType::i64: return fmt::format("a whole number from {} to {}", Int64::min(), Int64::max());
    case plan::DType::f64: return "a number from -1.8e+308 to 1.8e+308";
    default: return "a number from -3.4e+38 to 3.4e+38";
  }
}

}  // namespace

Error misfit_error(Misfit misfit, std::string_view place, const Field& field, std::string_view found) {
  const std::string text = shown(found);
  switch (misfit) {
    case Misfit::not_finite:
      return user_error(fmt::format("{}: found {}, expected a finite number", place, text),
                        "drop the row, or put a number in its place");
    case Misfit::not_whole:
      return user_error(fmt::format("{}: expected a whole number ({} is {}), found {}", place, field.name,
                                    spelled(field.dtype), text));
    case Misfit::out_of_range:
      return user_error(fmt::format("{}: expected {} ({} is {}), found {}", place, range(field.dtype),
                                    field.name, spelled(field.dtype), text));
    default: return user_error(fmt::format("{}: expected a number, found '{}'", place, text));
  }
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kLongestShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  if (text.size() > kLongestShown) out += "...";
  return out;
}

}  // namespace weft::formats
