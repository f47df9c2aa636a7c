// weft/distribute/choices.h -- where a single number decides which of two values a plan takes.
//
//   %9 = minimum(%one, %ratio)         a norm that is clipped: one, or the ratio
//   %12 = select(%7, %10, %11)         %7 a single flag: a step that is taken, or skipped
//
// One draw of values shows one of the two alone, and what is wrong with the other stays hidden: plans are drawn until
// each choice was seen to fall both ways.
#pragma once
#include <cstddef>
#include <vector>

#include "weft/base/result.h"
#include "weft/ops/evaluation.h"
#include "weft/plan/graph.h"

namespace weft::distribute {

class Choices {
 public:
  Choices() = default;  // none
  static Result<Choices> of(const plan::Graph& graph);

  // The plan with its choices as further outputs, behind its own.
  const plan::Graph& asked() const { return asked_; }

  // What `asked()` came to in one draw.
  void see(const std::vector<ops::Tensor<ops::Field>>& outputs);

  // Whether each fell both ways, or no draw would change that.
  bool all_seen() const;

 private:
  struct Choice {
    bool is_even = false;  // either of two numbers may be the larger one; a flag may hardly ever hold
    bool held = false, failed = false;
  };

  plan::Graph asked_;
  std::vector<Choice> choices_;
  int draws_ = 0;
};

}  // namespace weft::distribute
