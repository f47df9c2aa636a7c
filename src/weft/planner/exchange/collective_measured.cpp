#include "weft/planner/exchange/collective_measured.h"

#include <fmt/format.h>

#include "weft/base/file.h"

namespace weft::exchange {

Result<formats::CollectiveTable> read_collective_table(const std::string& path) {
  constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
  WEFT_TRY(text, read_file(path, kMostBytes));
  return formats::parse_collective_table(text, path);
}

Result<std::vector<sim::Measurement>> measurements(const formats::CollectiveTable& table,
                                                   const std::string& path) {
  std::vector<sim::Measurement> points;
  for (const formats::CollectiveRow& row : table.rows) {
    const double microseconds = row.in_place_us > 0 ? row.in_place_us : row.out_of_place_us;
    if (row.bytes > 0 && microseconds > 0) points.push_back({row.bytes, microseconds * 1e-6});
  }
  if (points.empty())
    return user_error(fmt::format("{} has no row with a size and a time", path),
                      "an nccl-tests log has one row per size");
  return points;
}

Result<std::vector<sim::Measurement>> read_measurements(const std::string& path) {
  WEFT_TRY(table, read_collective_table(path));
  return measurements(table, path);
}

}  // namespace weft::exchange
