#include "weft/formats/row_file.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/letters.h"

namespace weft::formats {
namespace {

// Whether the number is exact in f32. If so, the shortest text that reads back as the same f32 is
// written.
bool fits_f32(double value) {
  return !(std::isfinite(value) && static_cast<double>(static_cast<float>(value)) != value);
}

void add_number(std::string& out, double value) {
  if (fits_f32(value))
    out += fmt::format("{}", static_cast<float>(value));
  else
    out += fmt::format("{}", value);
}

template <class T>
void add_bytes(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string print_csv(std::span<const Column> columns, std::span<const double> values, std::int64_t rows) {
  std::string out;
  std::int64_t width = 0;
  for (const Column& column : columns) {
    for (std::int64_t i = 0; i < column.width; ++i) {
      out += width++ == 0 ? "" : ",";
      out += column.width == 1 ? column.name : fmt::format("{}_{}", column.name, i);
    }
  }
  out += '\n';
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < width; ++i) {
      add_number(out, values[static_cast<std::size_t>(row * width + i)]);
      out += i + 1 == width ? '\n' : ',';
    }
  return out;
}

std::string print_npy(std::span<const double> values, std::int64_t rows, std::int64_t width) {
  const bool narrow = std::ranges::all_of(values, fits_f32);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   narrow ? "<f4" : "<f8", rows, width);
  constexpr std::size_t kBefore = 10, kAlign = 64;  // the numbers are aligned to kAlign
  header.append(kAlign - (kBefore + header.size() + 1) % kAlign, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  add_bytes(out, static_cast<std::uint16_t>(header.size()));
  out += header;
  for (const double value : values)
    if (narrow)
      add_bytes(out, static_cast<float>(value));
    else
      add_bytes(out, value);
  return out;
}

Status write_rows(const std::string& path, std::span<const Column> columns, std::span<const double> values,
                  std::int64_t rows) {
  std::int64_t width = 0;
  for (const Column& column : columns) width += column.width;
  const std::string name = lower(path);
  if (name.ends_with(".csv")) return write_file_atomically(path, print_csv(columns, values, rows));
  if (name.ends_with(".npy")) return write_file_atomically(path, print_npy(values, rows, width));
  return user_error(fmt::format("expected a name that ends in .csv or .npy, found {}", path),
                    "for example: INTO 'answers.csv'");
}

}  // namespace weft::formats
