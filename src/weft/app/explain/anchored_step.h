// weft/app/explain/anchored_step.h -- a measured step, its prediction before and after, and what was calibrated.
//
//   Anchored  measured 1.31 s per step and 61 GiB, predicted 1.05 s and 58 GiB; now 1.27 s and 60.4 GiB
//             kernels 1.22x, host 1.03x, collectives 1.02x, activations 1.08x, gradients 1.02x
#pragma once
#include <string>

#include "weft/translate/recipe/anchor.h"
#include "weft/translate/runs/measured_step.h"

namespace weft::explain {

struct AnchoredStepText {
  runs::MeasuredStep given;
  recipe::StepValues measured;
  recipe::Anchor anchor;
};

std::string print_text(const AnchoredStepText& text, std::size_t width);
std::string print_json(const AnchoredStepText& text);

}  // namespace weft::explain
