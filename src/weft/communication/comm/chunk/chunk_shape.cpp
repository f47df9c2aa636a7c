#include "weft/communication/comm/chunk/chunk_shape.h"

#include <algorithm>

namespace weft::comm {

using collective::Kind;

std::vector<std::int64_t> ChunkShape::firsts(const collective::Collective& collective,
                                             collective::Buffer buffer, std::int32_t rank) const {
  std::vector<std::int64_t> firsts = {0};
  for (const std::int32_t one : home_classes(collective, grain, buffer, rank))
    firsts.push_back(firsts.back() + sizes[static_cast<std::size_t>(one)]);
  return firsts;
}

const ChunkShaper::Classes& ChunkShaper::classes(ClassGrain grain) {
  std::optional<Classes>& known = grain == ClassGrain::place ? by_place_ : by_block_;
  if (!known) known = classify(program_, rank_, grain);
  return *known;
}

Result<ChunkShape> ChunkShaper::shape(const Call& call) {
  const collective::Collective& collective = program_.collective;
  ChunkShape shape;
  if (collective.kind == Kind::custom || collective.kind == Kind::barrier) {
    shape.longest = call.count;
    return shape;
  }
  const bool alike = call.counts.empty() && collective.counts.empty();
  if (alike && call.count % collective.chunks == 0) {
    shape.longest = call.count / collective.chunks;
    return shape;
  }
  shape.grain = alike ? ClassGrain::place : ClassGrain::block;
  WEFT_TRY(sizes, class_sizes(collective, shape.grain, call));
  if (sizes.empty()) return shape;
  const auto [least, most] = std::ranges::minmax(sizes);
  shape.longest = most;
  if (least == most) return shape;
  shape.sizes = std::move(sizes);
  const Classes& found = classes(shape.grain);
  shape.form = found ? ChunkShape::Form::classed : ChunkShape::Form::padded;
  if (found) shape.steps = &*found;
  return shape;
}

}  // namespace weft::comm
