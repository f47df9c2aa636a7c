#include "weft/plan/graph/type.h"

#include <fmt/format.h>

#include "weft/base/check.h"

namespace weft::plan {

std::int64_t Type::elements() const {
  std::int64_t product = 1;
  for (const Dim& dim : dims) product *= dim.size;
  return product;
}

int Type::position(Symbol index) const {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].index == index) return static_cast<int>(i);
  return -1;
}

std::int64_t Type::size_of(Symbol index) const {
  const int at = position(index);
  WEFT_CHECK(at >= 0);
  return dims[static_cast<std::size_t>(at)].size;
}

std::string print(const Type& type, const Symbols& symbols) {
  std::string text(name(type.dtype));
  text += '[';
  for (std::size_t i = 0; i < type.dims.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : ",", symbols.text(type.dims[i].index), type.dims[i].size);
  text += ']';
  return text;
}

std::string print_indices(std::span<const Dim> dims, const Symbols& symbols) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", symbols.text(dims[i].index));
  return text + "]";
}

}  // namespace weft::plan
