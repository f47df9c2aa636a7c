// weft/app/explain/table.h -- text in aligned columns that fit the terminal's width.
//
//   Table table({{"model"}, {"parameters", Align::right}});
//   table.add({"gpt2", "124,439,808"});
//   table.print()      model  parameters
//                      gpt2  124,439,808
//
// A table that is too wide first shrinks columns according to their Fit. If that is not enough, it
// drops optional columns, those with the largest `spare` first. The result may still be too wide.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/explain/lines.h"

namespace weft::explain {

enum class Align : std::uint8_t { left, right };

// What to do with a cell that is too wide for its column.
enum class Fit : std::uint8_t {
  whole,  // never shrink the column
  cut,    // truncate with an ellipsis
  wrap,   // continue on the next line
};

struct Column {
  std::string title;  // may have two lines
  Align align = Align::left;
  Fit fit = Fit::whole;
  int spare = 0;  // above 0: optional; the largest is dropped first
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // one cell per column; trailing cells may be omitted
  // Adds a remark to the last row: indented lines below it, across all columns.
  void add_below(std::string text);
  bool empty() const { return rows_.empty(); }
  // Separates columns by two spaces, without trailing spaces. Empty columns are dropped.
  std::string print(std::size_t width = kUsualWidth) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::vector<std::size_t> widths(std::size_t width) const;  // 0: dropped
  std::string print_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                        bool title) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// A section of a report: a titled table with remarks. Text and HTML show the same.
struct Section {
  std::string title;
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};   // one cell per column; trailing cells may be omitted
  std::size_t marked = SIZE_MAX;                     // the row to highlight
  std::vector<std::vector<std::string>> below = {};  // remarks by row; trailing ones may be omitted
  std::string drawing = {};                          // text drawing below the table
  std::vector<std::string> lines = {};               // one sentence each, below the drawing
  std::string_view option = {};                      // the EXPLAIN option that requests it: "PIPELINE"

  bool empty() const { return rows.empty() && drawing.empty() && lines.empty(); }
};
std::string print(const Section& section, std::size_t width);

}  // namespace weft::explain
