// weft/parallel/pipeline/schedule.h -- the order of passes on each stage of a pipeline.
//
//   stage 0: F0 F1 F2 B0 W0 F3 B1 W1 ...     F  forward of a micro-batch
//   stage 1:    F0 F1 B0 W0 F2 B1 W1 ...     B  gradients of activations, W  of parameters, BW  both in one
//
// A model may be split into more parts than there are stages; a stage then holds several chunks. A
// route is the path of a micro-batch through the parts:
//
//   line        one part per stage                     0 1 2 3
//   loop        chunk after chunk, round and round     0 1 2 3 0 1 2 3
//   v           there and back                         0 1 2 3 3 2 1 0
//   both_ways   half of the micro-batches in each direction; stages hold parameters of both (chunks 0, 1)
//
// If a schedule overlaps, an F directly followed by a B forms a pair. They may run concurrently,
// and then both begin when both have their inputs. A schedule defines an order but no times: it can
// be evaluated for any times.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::pipeline {

enum class Kind : std::uint8_t { forward, backward, weight, whole_backward };
std::string_view name(Kind kind);  // F, B, W, BW

struct Pass {
  Kind kind = Kind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};
std::string print(const Pass& pass, bool with_chunk);  // F3, or F3.1

enum class Route : std::uint8_t { line, loop, v, both_ways };
std::string_view name(Route route);

// What the cost measures. end: from time 0 to the end of the last pass. span: the longest time of
// one stage from its first pass to its last, for schedules whose optimizer steps do not wait for
// each other.
enum class Clock : std::uint8_t { end, span };
std::string_view name(Clock clock);

struct Schedule {
  std::string name;
  std::int32_t stages = 1, micro_batches = 1, chunks = 1;
  Route route = Route::line;
  Clock clock = Clock::span;
  std::vector<std::vector<Pass>> orders;  // by stage
  bool overlaps = false;                  // pairs may run concurrently

  // Whether the pass at `place` of an order is an F directly followed by its pair, a B of another
  // micro-batch.
  bool is_pair(const std::vector<Pass>& order, std::size_t place) const;
  // The number of parts that a micro-batch passes, and the stage of the part at `position`.
  std::int32_t positions() const { return route == Route::both_ways ? stages : stages * chunks; }
  std::int32_t stage_at(std::int32_t position, std::int32_t micro_batch) const;
  // The position of this stage's chunk on the path of a micro-batch; -1 if it is not on it.
  std::int32_t position(std::int32_t stage, const Pass& pass) const;
  std::int32_t chunk_at(std::int32_t position, std::int32_t micro_batch) const;
  // A chunk's share of the stage's forward pass.
  double share() const { return route == Route::both_ways ? 1.0 : 1.0 / chunks; }
  // The stage whose times apply to a chunk: the stage itself, or its mirror image.
  std::int32_t timed_as(std::int32_t stage, std::int32_t chunk) const {
    return route == Route::both_ways && chunk == 1 ? stages - 1 - stage : stage;
  }
};

}  // namespace weft::pipeline
