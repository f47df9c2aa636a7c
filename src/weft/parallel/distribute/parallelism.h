// weft/parallel/distribute/parallelism.h -- describes a distribution in the field's usual terms.
//
//   stage=8: stage, chunks=2; data=16: slice b, shard optimizer; gpu=8: slice h, f, v, s; micro=48; schedule zb_v
//   TP 8 (sequence parallel) · PP 8 x 2 chunks (zero-bubble V) · DP 16 (ZeRO-1) · micro-batch 2 x 48
//   TP 8 (layers with d) · DP 8 (other layers)             if tensors without d slice the batch
//
// An axis without a usual term is described by what it slices: "4-way slices of y".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"

namespace weft::distribute {

// The degree of each kind of parallelism: the product over all mesh axes of that kind.
struct Degrees {
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t data = 1;        // slices of the batch
  std::int64_t optimizer = 1;   // of those, ranks that shard the optimizer states
  std::int64_t parameters = 1;  // and ranks that shard the parameters too
  std::int64_t copies = 1;      // replicas with identical work
  std::int32_t chunks = 1;      // per pipeline stage
  bool sequence = false;        // activations between tensor-parallel regions are sliced along the sequence
  bool differ = false;          // between stages
  // Ranks of a tensor-parallel axis that slice the batch of tensors without these indices.
  std::int64_t data_elsewhere = 1;
  std::vector<std::string> elsewhere;
  std::vector<std::string> others;
};

Degrees degrees_of(const Distribution& distribution, const IndexRoles& roles);

// `rows`: batch size; 0: unknown. Empty for a single device without micro-batches.
std::string print_parallelism(const Distribution& distribution, const IndexRoles& roles, std::int64_t rows);

}  // namespace weft::distribute
