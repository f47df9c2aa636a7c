#include "weft/formats/collective_table_json.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/formats/value.h"

namespace weft::formats {
namespace {

class JsonReader {
 public:
  explicit JsonReader(std::string_view path) : path_(path) {}

  Result<CollectiveTable> read(std::string_view text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) return wrong("JSON", "empty or truncated text");
    if (!json.is_object()) return wrong("an object", json.type_name());
    CollectiveTable table;
    if (const auto name = json.find("algorithm"); name != json.end()) {
      if (!name->is_string()) return wrong("algorithm: a name", name->type_name());
      table.algorithm = name->get_ref<const std::string&>();
    }
    if (const auto name = json.find("collective"); name != json.end()) {
      const auto kind = name->is_string() ? collective::find_kind(name->get_ref<const std::string&>())
                                          : std::optional<collective::Kind>();
      if (!kind) return wrong("collective: the name of one, such as all_reduce", described(*name));
      table.kind = *kind;
    }
    if (const auto ranks = json.find("ranks"); ranks != json.end()) {
      const auto count = whole(*ranks, 1, kMostCollectiveRanks);
      if (!count)
        return wrong(fmt::format("ranks: a whole number from 1 to {}", kMostCollectiveRanks),
                     described(*ranks));
      table.ranks = static_cast<std::int32_t>(*count);
    }
    const auto rows = json.find("rows");
    if (rows == json.end() || !rows->is_array() || rows->empty() || rows->size() > kMostCollectiveRows)
      return wrong(fmt::format("rows: a list of 1 to {}", kMostCollectiveRows),
                   rows == json.end() ? "none"
                   : rows->is_array() ? fmt::format("{}", rows->size())
                                      : rows->type_name());
    for (const nlohmann::json& row : *rows) WEFT_TRY_STATUS(read_row(row, table));
    return table;
  }

 private:
  Status read_row(const nlohmann::json& json, CollectiveTable& table) {
    const std::size_t number = table.rows.size() + 1;
    if (!json.is_object()) return wrong(fmt::format("row {}: an object", number), json.type_name());
    CollectiveRow row;
    const auto bytes = json.find("bytes");
    const auto size =
        bytes == json.end() ? std::optional<std::int64_t>() : whole(*bytes, 1, kMostCollectiveBytes);
    if (!size)
      return wrong(fmt::format("row {}: bytes from 1 to {}", number, kMostCollectiveBytes),
                   bytes == json.end() ? "none" : described(*bytes));
    row.bytes = *size;
    if (!table.rows.empty() && row.bytes <= table.rows.back().bytes)
      return wrong(fmt::format("row {}: ascending sizes", number),
                   fmt::format("{} after {}", row.bytes, table.rows.back().bytes));
    for (const auto& [key, target] :
         {std::pair("out_of_place_us", &row.out_of_place_us), std::pair("in_place_us", &row.in_place_us)}) {
      const auto time = json.find(key);
      if (time == json.end() || time->is_null()) continue;
      if (!possible_time(*time))
        return wrong(fmt::format("row {}: {} in microseconds", number, key), described(*time));
      *target = time->get<double>();
    }
    table.rows.push_back(row);
    return {};
  }

  static std::optional<std::int64_t> whole(const nlohmann::json& json, std::int64_t least,
                                           std::int64_t most) {
    if (!json.is_number_integer()) return std::nullopt;
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
      return std::nullopt;
    const auto value = json.get<std::int64_t>();
    return value >= least && value <= most ? std::optional(value) : std::nullopt;
  }

  static bool possible_time(const nlohmann::json& json) {
    return json.is_number() && json.get<double>() >= 0 && json.get<double>() <= kMostMicroseconds;
  }

  static std::string described(const nlohmann::json& json) {
    if (json.is_string()) return fmt::format("'{}'", shown(json.get_ref<const std::string&>()));
    return json.is_number() ? json.dump() : json.type_name();
  }

  Error wrong(std::string_view expected, std::string_view found) const {
    return user_error(fmt::format("{}: expected {}, found {}", path_, expected, found));
  }

  std::string_view path_;
};

}  // namespace

Result<CollectiveTable> parse_collective_table_json(std::string_view text, std::string_view path) {
  return JsonReader(path).read(text);
}

}  // namespace weft::formats
