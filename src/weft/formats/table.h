// weft/formats/table.h -- rows of numbers, stored by column: the input of training.
//
//   fields     pixels 3 f32 | label 1 i32        what a model needs per row, in order
//   row 0      0.5  0  1    | 7
//   row 1      0    1  0    | 2
//
//   table.values<float>(0)          0.5 0 1 0 1 0    [rows][width], last fastest
//   table.values<std::int32_t>(1)   7 2
//
// A field is f32, f64, i32 or i64. Floating-point numbers are finite; integers were whole numbers
// in range.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/dtype.h"

namespace weft::formats {

struct Field {
  std::string name;
  std::int64_t width = 1;  // values per row, > 0
  plan::DType dtype = plan::DType::f32;
  // Required shape of a row in arrays of more dimensions: {3, 32, 32}. Empty: any with `width`
  // elements.
  std::vector<std::int64_t> shape = {};
};

constexpr std::int64_t kMostWidth = std::int64_t{1}
                                    << 40;  // for all fields together; keeps sizes in bytes far from overflow

// Succeeds iff a table can hold these fields.
Status check(std::span<const Field> fields);

std::int64_t row_width(std::span<const Field> fields);
std::string describe(std::span<const Field> fields);  // "pixels 64, label 1"

using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                            std::vector<std::int64_t>>;

Values make_values(plan::DType dtype, std::int64_t count);  // zeros. REQUIRES: check() allows the dtype

class Table {
 public:
  // REQUIRES: values[i] holds rows * fields[i].width numbers of fields[i].dtype.
  Table(std::int64_t rows, std::vector<Field> fields, std::vector<Values> values)
      : rows_(rows), fields_(std::move(fields)), values_(std::move(values)) {}

  std::int64_t rows() const { return rows_; }
  std::span<const Field> fields() const { return fields_; }

  // All rows of one field. REQUIRES: T is the field's: float, double, std::int32_t or std::int64_t.
  template <class T>
  std::span<const T> values(std::size_t field) const {
    const auto* numbers = std::get_if<std::vector<T>>(&values_[field]);
    WEFT_CHECK(numbers != nullptr, fields_[field].name);
    return *numbers;
  }

  // One row of one field.
  template <class T>
  std::span<const T> row(std::size_t field, std::int64_t row) const {
    const auto width = static_cast<std::size_t>(fields_[field].width);
    return values<T>(field).subspan(static_cast<std::size_t>(row) * width, width);
  }

 private:
  friend Table side_by_side(std::vector<Table> tables);

  std::int64_t rows_;
  std::vector<Field> fields_;
  std::vector<Values> values_;
};

// One table with all their fields. REQUIRES: at least one, and all have the same number of rows.
Table side_by_side(std::vector<Table> tables);

}  // namespace weft::formats
