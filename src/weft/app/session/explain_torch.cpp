#include "weft/app/session/explain_torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/translate/recipe/torch_plan.h"

namespace weft::session {
namespace {

recipe::Precision precision_of(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16: return recipe::Precision::bf16;
    case plan::DType::f16: return recipe::Precision::f16;
    default: return recipe::Precision::f32;
  }
}

}  // namespace

Answer explain_torch(const Session::State& state, const Context& context, const Prepared& prepared,
                     const distribute::DistributedPlan& plan, const distribute::Distribution& chosen,
                     double seconds) {
  if (!prepared.trains())
    return user_error("FORMAT torch needs TRAIN", "the file describes training", prepared.run->span);
  WEFT_TRY(made, recipe::torch_plan(prepared.plan.graph, plan, chosen, precision_of(prepared.settings.precision)));
  const recipe::Written written = recipe::print_torch(made);
  if (context.format == Format::json) {
    const nlohmann::ordered_json json = {{"format", "torch"},
                                         {"plan", print(chosen)},
                                         {"step_seconds", seconds},
                                         {"configuration", written.text},
                                         {"configuration_plan", print(chosen)},
                                         {"configuration_seconds", seconds},
                                         {"lost", written.lost}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (!written.lost.empty())
    state.warnings.add(fmt::format("torch cannot express all of {}", print(chosen)),
                       user_error(fmt::format("{}", fmt::join(written.lost, "; "))));
  return written.text;
}

}  // namespace weft::session
