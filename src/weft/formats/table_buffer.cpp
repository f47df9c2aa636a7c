#include "weft/formats/table_buffer.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/base/units.h"

namespace weft::formats {
namespace {

constexpr std::int64_t kFirstRoom = std::int64_t{64} << 10;  // bytes
constexpr double kSpare = 1.02;                              // headroom over the estimate

}  // namespace

std::int64_t max_table_bytes() {
  const std::int64_t free = available_memory();
  return free > 0 ? free / 2 : std::numeric_limits<std::int64_t>::max() / 4;
}

TableBuffer::TableBuffer(std::span<const Field> fields, std::int64_t most_bytes, std::string_view path)
    : fields_(fields), most_bytes_(most_bytes > 0 ? most_bytes : max_table_bytes()), path_(path) {
  for (const Field& field : fields) {
    row_bytes_ += field.width * plan::size_in_bytes(field.dtype);
    values_.push_back(make_values(field.dtype, 0));
  }
  most_rows_ = most_bytes_ / row_bytes_;
}

Status TableBuffer::make_room(std::int64_t rows, double likely) {
  if (rows <= room_) return {};
  // While a field's numbers are reallocated, both copies exist.
  const std::int64_t most = std::max(most_rows_ - room_, room_);
  if (rows > most)
    return user_error(fmt::format("{} is too large: rows of {} ({}) may use {}, half of the free memory",
                                  path_, print_bytes(static_cast<double>(row_bytes_)), describe(fields_),
                                  print_bytes(static_cast<double>(most_bytes_))),
                      "split the file, or train on a host with more memory");
  std::int64_t wanted = std::max({rows, room_ + room_ / 2, kFirstRoom / row_bytes_});
  if (likely * kSpare < static_cast<double>(most))
    wanted = std::max(wanted, static_cast<std::int64_t>(likely * kSpare));
  room_ = std::min(wanted, most);
  for (std::size_t i = 0; i < fields_.size(); ++i)
    std::visit(
        [&](auto& numbers) {
          const auto count = static_cast<std::size_t>(room_ * fields_[i].width);
          numbers.reserve(count);
          numbers.resize(count);
        },
        values_[i]);
  return {};
}

Table TableBuffer::finish(std::int64_t rows) && {
  for (std::size_t i = 0; i < fields_.size(); ++i)
    std::visit([&](auto& numbers) { numbers.resize(static_cast<std::size_t>(rows * fields_[i].width)); },
               values_[i]);
  return Table(rows, {fields_.begin(), fields_.end()}, std::move(values_));
}

}  // namespace weft::formats
