// weft/translate/runs/run_fields.h -- the fields of a row by name, with errors that name them.
//
//   fields.needed("layers"), fields.whole("experts", 0), fields.number("gpu_memory_gb")
//
// Reading goes on after an error with a usable value; the first error stays.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/translate/runs/run_table.h"

namespace weft::runs {

constexpr std::int64_t kMostDegree = 1 << 20, kMostSize = std::int64_t{1} << 40;

// "H100-SXM" is h100sxm: letters and digits in lower case.
std::string plain(std::string_view text);

class Fields {
 public:
  explicit Fields(const RunRow& row) : row_(row) {}

  bool has(std::string_view name) const { return row_.fields.contains(name); }
  // Empty if absent.
  std::string text(std::string_view name) const;
  // Absent fields and words such as "not stated" are `otherwise`.
  double number(std::string_view name, double otherwise = 0);
  std::int64_t whole(std::string_view name, std::int64_t otherwise, std::int64_t most = kMostSize);
  std::int64_t degree(std::string_view name);  // at least 1, which absent fields are
  std::int64_t needed(std::string_view name);  // at least 1
  void fail(std::string message);
  const std::optional<Error>& error() const { return error_; }

 private:
  const RunRow& row_;
  std::optional<Error> error_;
};

}  // namespace weft::runs
