// weft/communication/comm/chunk/chunk_shape.h -- how the elements of one call are divided into the
// chunks of a program.
//
//   equal     every chunk has `longest` elements: the count is divisible
//   classed   chunks differ; a class has sizes[class] elements, and each step has a class
//   padded    chunks differ and the program mixes them: it runs on chunks of `longest` elements in
//             internal memory
//
// Every rank computes the same shape, since it depends only on the program and the call.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/communication/comm/chunk/chunk_classes.h"

namespace weft::comm {

struct ChunkShape {
  enum class Form : std::uint8_t { equal, classed, padded };
  Form form = Form::equal;
  ClassGrain grain = ClassGrain::place;
  std::int64_t longest = 0;
  std::vector<std::int64_t> sizes;                   // by class, unless equal
  const std::vector<std::int32_t>* steps = nullptr;  // classed: see classify()

  // Element offsets of a buffer's chunks in the caller's memory, followed by the end of the last
  // one. REQUIRES: not equal.
  std::vector<std::int64_t> firsts(const collective::Collective& collective, collective::Buffer buffer,
                                   std::int32_t rank) const;
};

// Caches the parts of a shape that are expensive and independent of the call.
class ChunkShaper {
 public:
  ChunkShaper(const collective::Program& program, std::int32_t rank) : program_(program), rank_(rank) {}

  Result<ChunkShape> shape(const Call& call);

 private:
  using Classes = std::optional<std::vector<std::int32_t>>;
  const Classes& classes(ClassGrain grain);

  const collective::Program& program_;
  const std::int32_t rank_;
  std::optional<Classes> by_place_, by_block_;
};

}  // namespace weft::comm
