// weft/search/codec/codecs.h -- what a user allows to be made small on the wires, and by what.
//
//   codecs = 'gradients: int8, weights: int8'     default: none
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/ops/codec.h"

namespace weft::search {

struct Codecs {
  std::optional<ops::CodecKind> gradients;  // of parameters, summed over ranks
  std::optional<ops::CodecKind> weights;    // sharded, and gathered to be used

  bool any() const { return gradients || weights; }
  friend bool operator==(const Codecs&, const Codecs&) = default;
};

Result<Codecs> read_codecs(std::string_view text);
std::string print(const Codecs& codecs);  // '' for none

}  // namespace weft::search
