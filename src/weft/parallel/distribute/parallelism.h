// weft/parallel/distribute/parallelism.h -- a distribution in the field's usual terms.
//
//   stage=8: stage, chunks=2; data=16: slice b, shard optimizer; gpu=8: slice h, f, v, s; micro=48; schedule zb_v
//   TP 8 (sequence parallel) · PP 8 x 2 chunks (zero-bubble V) · DP 16 (ZeRO-1) · micro-batch 2 x 48
//   TP 8 (layers with d) · DP 8 (other layers)             where tensors without d slice the batch
//
// An axis without a usual term is named by what it slices: "4-way slices of y".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"

namespace weft::distribute {

// What all mesh axes of a kind come to.
struct Degrees {
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t data = 1;        // batches are sliced
  std::int64_t optimizer = 1;   // of those, by ranks that shard the optimizer's states
  std::int64_t parameters = 1;  // and the parameters too
  std::int64_t copies = 1;      // that all compute the same
  std::int32_t chunks = 1;      // of each pipeline stage
  bool sequence = false;        // activations between tensor-parallel parts are sliced along the sequence
  bool differ = false;          // in stages
  // Along a tensor-parallel axis, ranks that slice the batch wherever a tensor has none of these indices.
  std::int64_t data_elsewhere = 1;
  std::vector<std::string> elsewhere;
  std::vector<std::string> others;
};

Degrees degrees_of(const Distribution& distribution, const IndexRoles& roles);

// `rows`: of the batch; 0: not known. Empty for one device that takes its batch at once.
std::string print_parallelism(const Distribution& distribution, const IndexRoles& roles, std::int64_t rows);

}  // namespace weft::distribute
