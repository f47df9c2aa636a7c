#include "weft/session/plan_in_time.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/pipeline/in_time.h"
#include "weft/session/plan_for.h"

namespace weft::session {

using distribute::Distribution;

Result<std::optional<Distribution>> asked_in_time(const Settings& settings) {
  Distribution asked;
  if (!settings.distribution.empty()) {
    WEFT_TRY(read, distribute::read_distribution(settings.distribution));
    asked = std::move(read);
  }
  if (settings.micro_batches > 1) {
    if (asked.micro_batches > 1 && asked.micro_batches != settings.micro_batches)
      return user_error(fmt::format("micro_batches = {}, and the distribution says micro={}",
                                    settings.micro_batches, asked.micro_batches),
                        "say it once");
    asked.micro_batches = settings.micro_batches;
  }
  return distribute::is_in_time(asked) ? std::optional(std::move(asked)) : std::nullopt;
}

Result<std::int64_t> norm_shares_in_time(const Settings& settings, const plan::Graph& forward,
                                         std::int64_t ranks) {
  WEFT_TRY(asked, asked_in_time(settings));
  if (!asked || asked->micro_batches == 1) return settings.local_norms ? ranks : 1;
  if (asked->mesh.axes.empty()) return asked->micro_batches * ranks;
  WEFT_TRY(batch, pipeline::batch_index(forward));
  std::int64_t shares = asked->micro_batches;
  for (std::size_t axis = 0; axis < asked->axes.size(); ++axis)
    if (std::ranges::find(asked->axes[axis].slice, forward.text(batch)) != asked->axes[axis].slice.end())
      shares *= asked->mesh.axes[axis].ranks;
  return shares;
}

Result<search::Choice> plan_in_time(const Session::State& state, const Context* context,
                                    const Prepared& prepared, Distribution asked) {
  if (prepared.ranks == 1 && asked.mesh.axes.size() == 1 && asked.mesh.ranks() == 1)
    asked.mesh = {}, asked.axes = {};
  if (asked.mesh.axes.empty() && prepared.ranks > 1) {
    Prepared whole;
    whole.run = prepared.run;
    whole.settings = prepared.settings;
    whole.settings.micro_batches = 1;
    whole.settings.rules = false;
    whole.target = prepared.target;
    whole.threads = prepared.threads;
    whole.ranks = prepared.ranks;
    whole.fixed = prepared.fixed;
    whole.sizes = prepared.sizes;
    whole.plan.graph = prepared.plan.graph.clone();
    WEFT_TRY(spread, plan_for(state, whole, /*compare=*/false, context));
    const std::int64_t micro = asked.micro_batches;
    asked = spread.spread->distribution;
    asked.micro_batches = micro;
  }
  const std::int64_t ranks = asked.mesh.axes.empty() ? 1 : asked.mesh.ranks();
  if (ranks != prepared.ranks)
    return user_error(fmt::format("the distribution is of {} ranks, {} has {}", ranks, prepared.target.name,
                                  prepared.ranks),
                      "axes multiply: 'stage=2: stage; data=2: slice b' is for 4", prepared.run->span);
  auto plan = pipeline::distribute_in_time(prepared.plan.graph, asked);
  if (!plan.ok()) {
    Error error = std::move(plan).error();
    if (!error.span.known()) error.span = prepared.run->span;
    return error;
  }
  search::Choice choice;
  choice.plan = prepared.plan.graph.clone();
  choice.spread.emplace();
  choice.spread->distribution = std::move(asked);
  choice.spread->chosen.plan = std::move(*plan);
  return choice;
}

Result<search::Choice> plan_to_run(const Session::State& state, const Context* context,
                                   const Prepared& prepared) {
  if (prepared.trains()) {
    WEFT_TRY(asked, asked_in_time(prepared.settings));
    if (asked) return plan_in_time(state, context, prepared, std::move(*asked));
  }
  return plan_for(state, prepared, /*compare=*/false, context);
}

}  // namespace weft::session
