#include "weft/planner/statement/requested_pipeline.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"

namespace weft::planner {

using distribute::Distribution;

search::Asked asked_of(const Settings& settings) {
  return {settings.sync_every, settings.delay, settings.servers, settings.credit.value_or(0)};
}

Result<std::optional<Distribution>> requested_pipeline(const Settings& settings, Span at) {
  Distribution asked;
  if (!settings.distribution.empty()) {
    WEFT_TRY(read, distribute::read_distribution(settings.distribution));
    asked = std::move(read);
  }
  if (settings.micro_batches > 1) {
    if (asked.micro_batches > 1 && asked.micro_batches != settings.micro_batches)
      return user_error(fmt::format("micro_batches = {}, but the distribution has micro={}",
                                    settings.micro_batches, asked.micro_batches),
                        "give it only once", at);
    asked.micro_batches = settings.micro_batches;
  }
  if (!distribute::is_pipelined(asked)) return std::optional<Distribution>();
  if (Status kept = search::check_in_time(asked_of(settings)); !kept.ok()) {
    Error error = std::move(kept).error();
    error.span = at;
    return error;
  }
  return std::optional(std::move(asked));
}

Result<std::int64_t> norm_shares_of(const Settings& settings, const plan::Graph& forward,
                                    std::int64_t ranks) {
  WEFT_TRY(asked, requested_pipeline(settings));
  if (!asked || asked->micro_batches == 1) return settings.local_norms ? ranks : 1;
  if (asked->mesh.axes.empty()) return asked->micro_batches * ranks;
  WEFT_TRY(batch, pipeline::batch_index(forward));
  const auto shares_of = [&](const Distribution& one) {
    std::int64_t shares = one.micro_batches;
    for (std::size_t axis = 0; axis < one.axes.size(); ++axis)
      if (std::ranges::find(one.axes[axis].slice, forward.text(batch)) != one.axes[axis].slice.end())
        shares *= one.mesh.axes[axis].ranks;
    return shares;
  };
  const std::int64_t shares = shares_of(distribute::as_in_stage(*asked, 0));
  if (distribute::has_stage_meshes(*asked) && train::count_batch_norms(forward) > 0)
    for (std::int32_t s = 1; s < asked->mesh.axes[*distribute::stage_axis(*asked)].ranks; ++s)
      if (const std::int64_t other = shares_of(distribute::as_in_stage(*asked, s)); other != shares)
        return user_error(fmt::format("batch norms need equal shares of the batch in all stages: found {} in "
                                      "stage 0, {} in stage {}",
                                      shares, other, s),
                          "use meshes that slice the batch in the same way");
  return shares;
}

}  // namespace weft::planner
