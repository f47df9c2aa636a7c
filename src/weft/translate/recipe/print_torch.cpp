// Prints a plan as Python values, followed by the functions that apply them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/embedded.h"
#include "weft/translate/recipe/python_text.h"
#include "weft/translate/recipe/torch_plan.h"

namespace weft {
std::span<const EmbeddedFile> embedded_torch_plan();  // src/weft/translate/recipe/torch_plan.py
}  // namespace weft

namespace weft::recipe {

Written print_torch(const TorchPlan& plan) {
  Written written;
  written.lost = plan.lost;
  written.lost.insert(written.lost.end(), plan.stages_lost.begin(), plan.stages_lost.end());
  std::string& text = written.text;
  text = fmt::format("\"\"\"A plan of {} for PyTorch: {}\n\n", in_docstring(plan.model),
                     in_docstring(plan.distribution));
  text +=
      "    import weft_plan\n"
      "    mesh = weft_plan.mesh()\n"
      "    parts, schedule = weft_plan.apply(model, mesh)\n";
  if (!written.lost.empty())
    text += fmt::format("\nNot in this file: {}.\n",
                        in_docstring(fmt::format("{}", fmt::join(written.lost, "; "))));
  // A schedule with overlapping passes needs OVERLAP_F_B.
  const bool overlaps = plan.schedule.find("OVERLAP") != std::string::npos;
  text += fmt::format("\"\"\"\n\nNEEDS_TORCH = (2, {})\n", overlaps ? 9 : 6);
  text += fmt::format("MESH = {}\n", dict(plan.mesh, false));
  text +=
      "# How ranks of the mesh dim tp slice modules, by the plan's names of their tensors; * is a layer's "
      "number.\n";
  text += fmt::format("TENSOR = {}\n", dict(plan.tensors, true));
  text += fmt::format("SEQUENCE_PARALLEL = {}\n", truth(plan.sequence_parallel));
  text += fmt::format("RESHARD_AFTER_FORWARD = {}\n", truth(plan.reshard_after_forward));
  text += fmt::format("PRECISION = {}\nRECOMPUTE = {}\n", python_quoted(name(plan.precision)),
                      python_quoted(name(plan.recompute)));
  text += fmt::format("LAYERS = {}\nMICRO_BATCHES = {}\n", plan.layers, plan.micro_batches);
  if (!plan.stage_layers.empty()) {
    text += fmt::format(
        "# Layers per stage, and the stages of tensors outside the layers.\nSTAGE_LAYERS = [{}]\n",
        fmt::join(plan.stage_layers, ", "));
    text += fmt::format("STAGE_OF = {}\n", dict(plan.stage_of, true));
    text += fmt::format(
        "# One row per rank: forward (F), backward of activations (I), of parameters (W), of both (B).\n"
        "SCHEDULE = \"\"\"\n{}\"\"\"\n",
        plan.schedule);
  }
  return written.text += embedded_torch_plan().front().text, written;
}

}  // namespace weft::recipe
