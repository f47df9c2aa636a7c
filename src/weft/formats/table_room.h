// weft/formats/table_room.h -- where the rows of a table go while a file is read, and how many there may be.
//
// A small file can hold, or promise, more rows than a machine has memory for. Room is made as rows come, never
// for what is only promised, and never for more than `most_bytes`, while it grows too.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

// What tables may take: half of the memory that is free now.
std::int64_t most_table_bytes();

class TableRoom {
 public:
  // `path` is only for the errors. `most_bytes` 0: most_table_bytes().
  TableRoom(std::span<const Field> fields, std::int64_t most_bytes, std::string_view path);

  // Room for so many rows. `likely`: how many there will be, as far as that is known.
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
