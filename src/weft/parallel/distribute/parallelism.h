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

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"

namespace weft::distribute {

// `rows`: of the batch; 0: not known. Empty for one device that takes its batch at once.
std::string print_parallelism(const Distribution& distribution, const IndexRoles& roles, std::int64_t rows);

}  // namespace weft::distribute
