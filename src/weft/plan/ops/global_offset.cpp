#include "weft/plan/ops/global_offset.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::ops {
namespace {

Result<std::vector<std::int64_t>> read_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  const char *at = text.data(), *end = at + text.size();
  for (;;) {
    std::int64_t size = 0;
    const auto [stop, status] = std::from_chars(at, end, size);
    const bool is_last = stop == end;
    if (status != std::errc() || size < 1 || (!is_last && *stop != ','))
      return user_error(fmt::format("whole must be sizes such as 8,16, found '{}'", text));
    sizes.push_back(size);
    if (is_last) return sizes;
    at = stop + 1;
  }
}

}  // namespace

Result<GlobalOffset> read_global_offset(const plan::Type& slice, std::int64_t begin, std::string_view whole) {
  GlobalOffset place{.begin = begin, .sizes = {}, .strides = {}};
  if (whole.empty()) {
    for (const plan::Dim& dim : slice.dims) place.sizes.push_back(dim.size);
  } else {
    WEFT_TRY(sizes, read_sizes(whole));
    place.sizes = std::move(sizes);
  }
  bool fits = place.sizes.size() == slice.rank() && begin >= 0;
  std::int64_t elements = 1, last = 0, room = plan::kLargestValueBytes;
  place.strides.resize(place.sizes.size());
  for (std::size_t i = place.sizes.size(); fits && i-- > 0;) {
    place.strides[i] = elements;
    fits = slice.dims[i].size <= place.sizes[i] && (room /= place.sizes[i]) > 0;
    if (!fits) break;
    last += (slice.dims[i].size - 1) * elements;
    elements *= place.sizes[i];
  }
  if (fits && begin < elements && last < elements - begin) return place;
  return user_error(fmt::format("a slice of {} elements from {} exceeds the whole tensor of [{}]",
                                slice.elements(), begin, fmt::join(place.sizes, ", ")));
}

std::int64_t begin_of_block(const GlobalOffset& place, std::span<const plan::Share> shares) {
  std::int64_t begin = place.begin;
  for (std::size_t i = 0; i < shares.size(); ++i) begin += shares[i].begin * place.strides[i];
  return begin;
}

std::string print_sizes(const GlobalOffset& place) { return fmt::format("{}", fmt::join(place.sizes, ",")); }

}  // namespace weft::ops
