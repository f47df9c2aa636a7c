#include "weft/app/explain/listing.h"

#include "weft/base/units.h"

namespace weft::explain {

using ListingJson = nlohmann::ordered_json;

Cell Cell::count(std::int64_t value) {
  Cell cell(print_exact(value));
  cell.json = value;
  return cell;
}

void Listing::add(std::vector<Cell> cells) {
  ListingJson row = ListingJson::object();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    row[keys_[i]] = std::move(cells[i].json);
    texts.push_back(std::move(cells[i].text));
  }
  rows_.push_back(std::move(row));
  table_.add(std::move(texts));
}

std::string Listing::print(std::string_view none, std::size_t width) const {
  return table_.empty() ? std::string(none) + "\n" : table_.print(width);
}

std::string Listing::print_json() const {
  return rows_.dump(-1, ' ', false, ListingJson::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
