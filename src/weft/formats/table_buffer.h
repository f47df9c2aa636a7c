// weft/formats/table_buffer.h -- memory for the rows of a table while a file is read, with a limit.
//
// A small file can contain, or claim, more rows than fit in memory. Memory grows as rows arrive,
// never for rows that are only claimed, and never above `most_bytes`, even during reallocation.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

// The default limit of a table: half of the free memory.
std::int64_t max_table_bytes();

class TableBuffer {
 public:
  // `path` is only for error messages. `most_bytes` 0: max_table_bytes().
  TableBuffer(std::span<const Field> fields, std::int64_t most_bytes, std::string_view path);

  // Makes room for `rows` rows. `likely` is the expected total, if known.
  Status make_room(std::int64_t rows, double likely = 0);
  std::int64_t room() const { return room_; }
  Values& values(std::size_t field) { return values_[field]; }

  Table finish(std::int64_t rows) &&;

 private:
  std::span<const Field> fields_;
  std::int64_t row_bytes_ = 0, most_rows_, room_ = 0;
  std::int64_t most_bytes_;
  std::string_view path_;
  std::vector<Values> values_;
};

}  // namespace weft::formats
