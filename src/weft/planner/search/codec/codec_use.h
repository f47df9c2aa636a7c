// weft/planner/search/codec/codec_use.h -- use of codecs, described by sizes instead of nodes.
//
//   gradients: int4 from 64 KiB on, activations: int8
//
// A pipeline step is estimated from a plan of one micro-batch and one of the end of a step, with
// few layers and without stages. The plan that runs has other nodes. A CodecUse applies to all of
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/codec/place_codecs.h"

namespace weft::search {

struct CodecUse {
  struct From {
    std::size_t codec = 0;   // index in the allowed codecs
    std::int64_t bytes = 0;  // least size of an exchange
    friend bool operator==(const From&, const From&) = default;
  };
  Codecs allowed;
  std::optional<From> gradients, weights, activations;  // none: sent uncoded

  bool any() const { return gradients || weights || activations; }
  friend bool operator==(const CodecUse&, const CodecUse&) = default;
};

// Adds codecs according to `use`, also at stage boundaries.
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const CodecUse& use);

// Step time with a use of codecs, and whether it fits.
struct EstimatedUse {
  double seconds = 0;
  bool fits = true;
};

// The fastest use for a pipeline plan: chooses for gradients, then weights, then activations. Fails
// if required codecs do not fit, or if the plan cannot be estimated without codecs.
Result<CodecUse> choose_use(const distribute::DistributedPlan& plan, const Codecs& codecs,
                            const std::function<Result<EstimatedUse>(const CodecUse&)>& price);

}  // namespace weft::search
