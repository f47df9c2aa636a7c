// weft/parallel/partition/buckets.h -- what travels together: a chain of tensors cut into buckets.
//
//   computing  | a | b |   c   | d |             Tensors are made one after the other, cross one wire and are
//   wire           |--a b--|   |----c d----|     read one after the other. A bucket is one transfer: it begins
//   computing              | a | b |       | c   when its last tensor is made and the wire is free, and takes the
//                                                wire's latency and its bytes.
//
// Many buckets begin early and pay much latency; few pay little and begin late. Which is best is one question
// with many names: gradients that are summed while the backward pass goes on (made, not read), parameters that
// are gathered, or loaded, before a layer runs (read, not made), updates between the two (both).
//
// bucketise() is exact: of all buckets of neighbours none take less. seconds_of() judges any, and shares no code
// with it. Pure: numbers in, cuts out.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::partition {

struct Wire {
  double latency = 0;           // seconds of a transfer, whatever its size
  double bytes_per_second = 1;  // above 0
};

struct Tensor {
  double bytes = 0;
  double made_seconds = 0, read_seconds = 0;  // of computing: before it travels, and after
  // In so many even parts it may be cut, and what makes and reads it with it: a part is made, travels and is
  // read like a tensor of its own.
  std::int32_t grains = 1;
};

// When who reads a tensor may begin: at the end of its bucket, or as soon as its own bytes are there. A wire
// passes a bucket's tensors in their order.
enum class Release : std::uint8_t { together, early };

// Of 40 MiB in four grains, travelling as 10 and 30: ends = [1, 4].
struct Buckets {
  std::vector<std::int32_t> ends;  // past the last grain of each bucket, counted over all tensors
  double seconds = 0;              // until the last tensor is read, or there
};

// The grains of all tensors.
std::int32_t grain_count(std::span<const Tensor> chain);

// REQUIRES: bytes and seconds are finite and not below 0, grains and bytes_per_second are above.
Buckets bucketise(std::span<const Tensor> chain, const Wire& wire, Release release = Release::together);

// What these buckets take. REQUIRES: the ends ascend to grain_count().
double seconds_of(std::span<const Tensor> chain, const Wire& wire, std::span<const std::int32_t> ends,
                  Release release = Release::together);

// Closed when they hold so many bytes or more, as frameworks do: they are cut between tensors only.
std::vector<std::int32_t> fixed_buckets(std::span<const Tensor> chain, double bytes);

constexpr double kUsualBucketBytes = 25.0 * 1024 * 1024;  // PyTorch's bucket_cap_mb

}  // namespace weft::partition
