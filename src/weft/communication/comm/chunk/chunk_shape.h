// weft/communication/comm/chunk/chunk_shape.h -- how the elements of one call are dealt to the chunks of a program.
//
//   equal     every chunk has `longest` elements: the count divides
//   classed   chunks differ; a class has sizes[class] elements, and classes say what each step moves
//   padded    chunks differ and the program mixes them: it runs on chunks of `longest` elements in memory
//             of our own
//
// Every rank comes to the same shape, since it depends on the program and the call alone.
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

  // The elements of chunk `index` of a buffer begin at [index] in the caller's memory; [chunks] is their end.
  // REQUIRES: not equal.
  std::vector<std::int64_t> firsts(const collective::Collective& collective, collective::Buffer buffer,
                                   std::int32_t rank) const;
};

// Remembers what is costly to find out and the same for every call.
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
