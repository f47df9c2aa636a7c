#include "weft/formats/model_reshape.h"

namespace weft::formats {

std::vector<ReshapeBlock> reshape_blocks(const ModelShape& from, const ModelShape& to) {
  std::vector<ReshapeBlock> blocks;
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReshapeBlock block{i, 1, j, 1};
    std::int64_t before = from[i++], after = to[j++];
    while (before != after) {
      if (before < after) {
        before *= from[i++];
        ++block.from_count;
      } else {
        after *= to[j++];
        ++block.to_count;
      }
    }
    blocks.push_back(block);
  }
  blocks.back().from_count += from.size() - i;
  blocks.back().to_count += to.size() - j;
  return blocks;
}

std::optional<std::size_t> only_place(const ModelShape& shape, std::size_t first, std::size_t count) {
  std::optional<std::size_t> found;
  for (std::size_t place = first; place < first + count; ++place) {
    if (shape[place] == 1) continue;
    if (found) return std::nullopt;
    found = place;
  }
  return found ? found : first;
}

}  // namespace weft::formats
