#include "weft/app/session/explain_memory.h"

#include <fmt/format.h>

#include "weft/app/explain/memory_over_time.h"
#include "weft/planner/step/fit_memory.h"
#include "weft/planner/step/plan_for.h"

namespace weft::session {
namespace {

struct Remedy {
  std::string what;
  train::Recompute again;
  std::int64_t micro_batches;
};

// Settings to try one at a time, in addition to the statement's own.
std::vector<Remedy> remedies(const Prepared& prepared, const train::Recompute& given) {
  std::vector<Remedy> list;
  if (!prepared.trains()) return list;
  if (given.is_nothing()) {
    list.push_back({"recompute = 'selective'", {.selective = true}, 0});
    list.push_back({"recompute = 'layers'", {.layers = true}, 0});
  }
  if (prepared.settings.micro_batches == 1 && prepared.settings.distribution.empty()) {
    list.push_back({"micro_batches = 2", given, 2});
    if (given.is_nothing()) list.push_back({"micro_batches = 2, recompute = 'layers'", {.layers = true}, 2});
  }
  return list;
}

}  // namespace

Result<std::string> explain_memory(const Session::State& state, const Context& context,
                                   const Prepared& prepared, const explain::Report& about, bool json) {
  WEFT_TRY(given, recompute_of(prepared.settings));
  WEFT_TRY(now, memory_with(state, context, prepared, given, 0, 0));
  explain::MemoryExplanation explanation;
  explanation.headline = explain::headline(about);
  explanation.plan = now.plan;
  explanation.rank = now.rank;
  explanation.program = now.program.get();
  explanation.bytes = now.bytes;
  explanation.limit = memory_per_rank(prepared.settings, prepared.target);
  explanation.width = context.width;
  for (const Remedy& remedy : remedies(prepared, given)) {
    if (context.interrupted && context.interrupted()) break;
    const auto tried = memory_with(state, context, prepared, remedy.again, remedy.micro_batches, 0);
    explanation.tried.push_back(
        {remedy.what, tried.ok() ? tried->bytes : 0, tried.ok() ? std::string() : tried.error().message});
  }
  return json ? print_json(explanation) : print_text(explanation);
}

}  // namespace weft::session
