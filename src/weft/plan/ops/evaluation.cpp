#include "weft/plan/ops/evaluation.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {

Walk::Walk(std::vector<std::int64_t> sizes)
    : sizes_(std::move(sizes)),
      at_(sizes_.size(), 0),
      empty_(std::ranges::any_of(sizes_, [](auto s) { return s <= 0; })) {}

void Walk::track(std::vector<std::int64_t> strides) {
  WEFT_CHECK(strides.size() == sizes_.size());
  strides_.push_back(std::move(strides));
  offsets_.push_back(0);
}

bool Walk::next() {
  for (std::size_t i = sizes_.size(); i-- > 0;) {
    if (++at_[i] < sizes_[i]) {
      for (std::size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += strides_[k][i];
      return true;
    }
    for (std::size_t k = 0; k < offsets_.size(); ++k) offsets_[k] -= (sizes_[i] - 1) * strides_[k][i];
    at_[i] = 0;
  }
  return false;
}

std::vector<std::int64_t> strides_along(const plan::Type& type, std::span<const plan::Dim> loops) {
  std::vector<std::int64_t> own(type.rank());
  std::int64_t stride = 1;
  for (std::size_t i = type.rank(); i-- > 0;) {
    own[i] = stride;
    stride *= type.dims[i].size;
  }
  std::vector<std::int64_t> strides;
  for (const plan::Dim& loop : loops) {
    const int at = type.position(loop.index);
    strides.push_back(at < 0 ? 0 : own[static_cast<std::size_t>(at)]);
  }
  return strides;
}

std::vector<std::int64_t> offsets_along(const plan::Type& type, std::span<const plan::Dim> loops) {
  std::vector<std::int64_t> offsets;
  Walk walk(sizes_of(loops));
  walk.track(strides_along(type, loops));
  if (walk.empty()) return offsets;
  do offsets.push_back(walk.offset(0));
  while (walk.next());
  return offsets;
}

Rows::Rows(const plan::Type& type, std::span<const Symbol> over)
    : starts(offsets_along(type, without(type.dims, over))) {
  std::vector<plan::Dim> dims;
  for (const Symbol index : over) dims.push_back({index, type.size_of(index)});
  columns = offsets_along(type, dims);
}

Blocks::Blocks(const plan::Type& type, Symbol along) : size(type.size_of(along)) {
  const auto at = static_cast<std::size_t>(type.position(along));
  outer = points_of(type.dims.first(at));
  inner = points_of(type.dims.subspan(at + 1));
}

}  // namespace weft::ops
