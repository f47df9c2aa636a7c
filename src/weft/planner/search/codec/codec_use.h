// weft/planner/search/codec/codec_use.h -- which codec codes what, said by sizes in place of nodes.
//
//   gradients: int4 from 64 KiB on, activations: int8
//
// A step that is cut in time is priced by plans of a micro-batch and of a step's end, of few layers and without stages;
// what runs is another plan with other nodes. One use says the same of all of them.
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
    std::size_t codec = 0;   // of those that are allowed
    std::int64_t bytes = 0;  // least, of what is exchanged
    friend bool operator==(const From&, const From&) = default;
  };
  Codecs allowed;
  std::optional<From> gradients, weights, activations;  // none: these go as they are

  bool any() const { return gradients || weights || activations; }
  friend bool operator==(const CodecUse&, const CodecUse&) = default;
};

// As the use says; what goes from stage to stage too, where there are stages.
Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const CodecUse& use);

// What a step takes with a use, and whether it fits.
struct PricedUse {
  double seconds = 0;
  bool fits = true;
};

// The quickest for a plan in time: gradients first, then weights, then activations. Fails where what must be coded does
// not fit, and where the plan is not priced without codecs.
Result<CodecUse> choose_use(const distribute::DistributedPlan& plan, const Codecs& codecs,
                            const std::function<Result<PricedUse>(const CodecUse&)>& price);

}  // namespace weft::search
