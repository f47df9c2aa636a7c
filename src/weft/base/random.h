// weft/base/random.h -- counter-based random numbers.
//
// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11). Word i of
// stream s under seed k is a pure function of (k, s, i). So any rank can draw any element of a
// tensor without drawing the ones before it, and dropout masks do not depend on slicing.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace weft {

// Four random words for one counter value.
std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter);

// Element `position` of the stream, uniform on [0, 1): 24 random bits, exact in float.
float uniform_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

// Element `position` of the stream, normal with mean 0 and standard deviation 1 (Box-Muller).
double normal_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);
// The same for the positions from `first` on, several at a time.
void normals_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<double> to);

// A sequential generator for tests and searches: draws the stream's words in order.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint64_t next();                                       // 64 random bits
  std::uint64_t below(std::uint64_t limit);                   // uniform on [0, limit), limit > 0
  std::int64_t between(std::int64_t low, std::int64_t high);  // both ends included
  double uniform();                                           // [0, 1)

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
};

}  // namespace weft
