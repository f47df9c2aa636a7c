// weft/runtime/run/serialized_training.h -- a training run serialized for rank processes.
//
//   header, JSON   plan and mesh as text, options, data source, steps, list of tensors
//   tensors        existing weights, one after the other; empty: initial values are drawn from the seed
//
// A rank reads the plan, localizes and compiles its own program, as ranks on several hosts must.
// Layouts are inferred from the plan. Included by the files of run/ only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/schedule.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

// What ranks do besides their steps, all of them after the same steps: see DistributedRun.
struct PartWatch {
  std::optional<std::int64_t> measure_from = {};
  std::int64_t check_every = 0, keep_every = 0, look_every = 0;
};

struct SerializedTraining {
  distribute::DistributedPlan plan;  // without what only readers of the one-device plan need
  LocalRanksOptions options;
  std::string feed;  // its recipe: see Feed::recipe()
  Weights start;
  std::int64_t first_step = 0;
  Schedule schedule = {};
  PartWatch watch = {};
};

std::vector<std::byte> print_training_part(const distribute::DistributedPlan& plan,
                                           const LocalRanksOptions& options, const std::string& feed,
                                           const Weights& start, std::int64_t first_step,
                                           const Schedule& schedule, const PartWatch& watch);
Result<SerializedTraining> read_training_part(std::span<const std::byte> bytes);

inline constexpr std::string_view kTrainingPart = "training";
Status run_training_rank(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work);

}  // namespace weft::run
