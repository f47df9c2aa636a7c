// weft/parallel/partition/buckets.h -- splits a chain of tensors into transfer buckets.
//
//   computing  | a | b |   c   | d |             Tensors are computed, sent over one link and read
//   link           |--a b--|   |----c d----|     one after another. A bucket is one transfer. It
//   computing              | a | b |       | c   starts when its last tensor is ready and the link
//                                                is free, and takes its latency plus bytes / bandwidth.
//
// Many buckets start early but pay the latency often; few pay it seldom but start late. The same
// problem has many names: gradients that are reduced during the backward pass (made, not read),
// parameters that are gathered or loaded before a layer runs (read, not made), and updates between
// the two (both).
//
// bucketise() is exact: no other partition into contiguous buckets takes less time. seconds_of()
// evaluates any partition and shares no code with it. Pure functions on numbers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::partition {

struct Wire {
  double latency = 0;           // fixed seconds per transfer
  double bytes_per_second = 1;  // positive
};

struct Tensor {
  double bytes = 0;
  double made_seconds = 0, read_seconds = 0;  // compute time before and after the transfer
  // The tensor may be split into this many equal grains, along with the work that makes and reads
  // it. A grain is computed, transferred and read like a separate tensor.
  std::int32_t grains = 1;
};

// When the reader of a tensor may start: at the end of its bucket, or as soon as its own bytes have
// arrived. The link transfers a bucket's tensors in order.
enum class Release : std::uint8_t { together, early };

// For 40 MiB in four grains, transferred as 10 and 30: ends = [1, 4].
struct Buckets {
  std::vector<std::int32_t> ends;  // one past the last grain of each bucket, over all tensors
  double seconds = 0;              // until the last tensor has been read, or has arrived
};

// The total number of grains of all tensors.
std::int32_t grain_count(std::span<const Tensor> chain);

// REQUIRES: bytes and seconds are finite and not negative; grains and bytes_per_second are
// positive.
Buckets bucketise(std::span<const Tensor> chain, const Wire& wire, Release release = Release::together);

// The time of these buckets. REQUIRES: the ends ascend to grain_count().
double seconds_of(std::span<const Tensor> chain, const Wire& wire, std::span<const std::int32_t> ends,
                  Release release = Release::together);

// A bucket is closed once it holds at least this many bytes, as in common frameworks: boundaries
// are only between tensors.
std::vector<std::int32_t> fixed_buckets(std::span<const Tensor> chain, double bytes);

constexpr double kUsualBucketBytes = 25.0 * 1024 * 1024;  // PyTorch's bucket_cap_mb

}  // namespace weft::partition
