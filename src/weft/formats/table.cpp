#include "weft/formats/table.h"

#include <fmt/format.h>

namespace weft::formats {

Status check(std::span<const Field> fields) {
  WEFT_CHECK(!fields.empty());
  std::int64_t width = 0;
  for (const Field& field : fields) {
    WEFT_CHECK(field.width > 0, field.name);
    if (field.dtype != plan::DType::f32 && field.dtype != plan::DType::f64 && !plan::is_integer(field.dtype))
      return user_error(
          fmt::format("{}: data files can only fill f32, f64, i32 and i64, found {}", field.name,
                      plan::name(field.dtype)),
          fmt::format("declare it OF f32 and CAST it to {} in the model", plan::name(field.dtype)));
    if (field.width > kMostWidth - width)
      return user_error(fmt::format("a row of data is too wide: expected at most {} values", kMostWidth));
    width += field.width;
  }
  return {};
}

std::int64_t row_width(std::span<const Field> fields) {
  std::int64_t width = 0;
  for (const Field& field : fields) width += field.width;
  return width;
}

std::string describe(std::span<const Field> fields) {
  std::string text;
  for (const Field& field : fields)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.name, field.width);
  return text;
}

Table side_by_side(std::vector<Table> tables) {
  WEFT_CHECK(!tables.empty());
  Table all = std::move(tables.front());
  for (std::size_t i = 1; i < tables.size(); ++i) {
    WEFT_CHECK(tables[i].rows_ == all.rows_);
    for (Field& field : tables[i].fields_) all.fields_.push_back(std::move(field));
    for (Values& values : tables[i].values_) all.values_.push_back(std::move(values));
  }
  return all;
}

Values make_values(plan::DType dtype, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  switch (dtype) {
    case plan::DType::i32: return std::vector<std::int32_t>(size);
    case plan::DType::i64: return std::vector<std::int64_t>(size);
    case plan::DType::f64: return std::vector<double>(size);
    default: return std::vector<float>(size);
  }
}

}  // namespace weft::formats
