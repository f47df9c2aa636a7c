// weft/app/explain/table.h -- rows of text in aligned columns, as wide as the reader's screen at most.
//
//   Table table({{"model"}, {"parameters", Align::right}});
//   table.add({"gpt2", "124,439,808"});
//   table.print()      model  parameters
//                      gpt2  124,439,808
//
// A table that is too wide gives up what columns may lose by their Fit, and where that is not enough whole
// columns that can be spared, the one that is spared most easily first. What is left may still be too wide.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/explain/lines.h"

namespace weft::explain {

enum class Align : std::uint8_t { left, right };

// What becomes of a cell that its column has no room for.
enum class Fit : std::uint8_t {
  whole,  // there is always room
  cut,    // it ends in an ellipsis
  wrap,   // it goes on in the next line
};

struct Column {
  std::string title;  // may have two lines
  Align align = Align::left;
  Fit fit = Fit::whole;
  int spare = 0;  // above 0: can be left out, the greatest first
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // as many as there are columns; trailing ones may be missing
  // A remark on the last row: lines of its own below it, indented, across all columns.
  void add_below(std::string text);
  bool empty() const { return rows_.empty(); }
  // Two spaces between columns, none at the end of a line. Columns that are empty throughout are
  // left out.
  std::string print(std::size_t width = kUsualWidth) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::vector<std::size_t> widths(std::size_t width) const;  // 0: left out
  std::string print_row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                        bool title) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// A part of a report: a table under a title, with what belongs to it. Text and pages show the same.
struct Section {
  std::string title;
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};   // as many cells as columns; trailing ones may be missing
  std::size_t marked = SIZE_MAX;                     // the row that stands out
  std::vector<std::vector<std::string>> below = {};  // remarks by row; trailing ones may be missing
  std::string drawing = {};                          // of characters, below the table
  std::vector<std::string> lines = {};               // a sentence each, below that
  std::string_view option = {};                      // of EXPLAIN, that asks for it: "PIPELINE"

  bool empty() const { return rows.empty() && drawing.empty() && lines.empty(); }
};
std::string print(const Section& section, std::size_t width);

}  // namespace weft::explain
