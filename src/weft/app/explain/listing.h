// weft/app/explain/listing.h -- rows as a text table and as JSON: column i is the JSON field keys[i].
//
//   Listing listing({"device", "memory"}, {{"device"}, {"memory", Align::right}});
//   listing.add({"h100", Cell("80 GiB", 85899345920.0)});
//   listing.print("no devices", 100)    device  memory      listing.print_json()   [{"device":"h100",
//                                       h100    80 GiB                               "memory":85899345920.0}]
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"

namespace weft::explain {

// The text for a table, and the value for JSON.
struct Cell {
  std::string text;
  nlohmann::ordered_json json;

  Cell(std::string both) : text(both), json(std::move(both)) {}
  Cell(std::string_view both) : Cell(std::string(both)) {}
  Cell(std::string shown, double value) : text(std::move(shown)), json(value) {}
  static Cell count(std::int64_t value);
};

class Listing {
 public:
  Listing(std::vector<std::string> keys, std::vector<Column> columns)
      : keys_(std::move(keys)), table_(std::move(columns)) {}

  void add(std::vector<Cell> cells);

  std::string print(std::string_view none, std::size_t width) const;  // `none`: printed if there are no rows
  std::string print_json() const;                                     // one line

 private:
  std::vector<std::string> keys_;
  Table table_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

}  // namespace weft::explain
