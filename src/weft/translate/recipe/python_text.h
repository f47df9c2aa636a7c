// weft/translate/recipe/python_text.h -- values of Python files.
//
//   python_quoted("a")            "a"
//   dict({{"dp_shard", 4}}, ..)   {"dp_shard": 4}
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::recipe {

inline std::string python_quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + "\"";
}

// Text for a docstring.
inline std::string in_docstring(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made;
}

inline std::string_view truth(bool is) { return is ? "True" : "False"; }

// Text values are quoted. With one entry per line if `long_form`.
template <class Value>
std::string dict(const std::vector<std::pair<std::string, Value>>& entries, bool long_form) {
  std::vector<std::string> made;
  for (const auto& [key, value] : entries) {
    if constexpr (std::is_same_v<Value, std::string>)
      made.push_back(fmt::format("{}: {}", python_quoted(key), python_quoted(value)));
    else
      made.push_back(fmt::format("{}: {}", python_quoted(key), value));
  }
  if (!long_form || made.empty()) return fmt::format("{{{}}}", fmt::join(made, ", "));
  return fmt::format("{{\n    {},\n}}", fmt::join(made, ",\n    "));
}

}  // namespace weft::recipe
