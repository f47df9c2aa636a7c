// weft/explain/table.h -- rows of text in aligned columns.
//
//   Table table({{"model"}, {"parameters", Align::right}});
//   table.add({"gpt2", "124,439,808"});
//   table.print()      model  parameters
//                      gpt2  124,439,808
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft::explain {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // as many as there are columns; trailing ones may be missing
  bool empty() const { return rows_.empty(); }
  // Two spaces between columns, none at the end of a line. Columns that are empty throughout are
  // left out. Widths count code points.
  std::string print() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft::explain
