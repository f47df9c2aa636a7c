#include "weft/planner/step/local_ranks.h"

#include <algorithm>
#include <filesystem>

#include "weft/communication/transport/machine_ranks.h"
#include "weft/planner/target/machine.h"
#include "weft/predict/cost/choose_algorithms.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {

Result<run::LocalRanksOptions> local_ranks_of(const Prepared& prepared, const sim::Prediction& priced) {
  run::LocalRanksOptions options;
  options.ranks = static_cast<std::int32_t>(prepared.ranks);
  const std::int64_t here = prepared.ranks > 1 ? cost::ranks_of_a_host(prepared.target) : 1;
  options.workers = static_cast<int>(std::max<std::int64_t>(prepared.target.threads / here, 1));
  options.memory_limit = static_cast<std::int64_t>(prepared.settings.memory_limit);
  options.spills = prepared.settings.spills;
  options.spill_folder = spill_folder_of(prepared.settings);
  options.outer = {prepared.settings.running.outer_rate, prepared.settings.running.outer_momentum};
  options.overlap = overlaps(prepared.settings, here, options.workers);
  if (const auto transport = comm::find_transport(prepared.settings.running.transport))
    options.transport = *transport;
  if (prepared.target.on_gpu()) {
    // GPU ranks are threads of this process, so that they can access each other's memory. One
    // thread launches kernels, and communication runs beside it.
    options.gpu = prepared.target.gpu;
    options.transport = comm::TransportKind::inproc;
    options.workers = 1;
    options.device_timeout = prepared.settings.running.device_timeout;
    options.unit_by_unit = prepared.settings.running.unit_by_unit;
    options.overlap = prepared.settings.running.overlap.value_or(true);
    return options;
  }
  WEFT_TRY(launched, run::launched_job());
  const bool far = launched != nullptr && transport::find_hosts(*launched).count > 1;
  // Pipeline plans have no per-rank prediction: their communicators choose algorithms.
  if (!priced.classes.empty() && (!far || !prepared.settings.running.algorithm.empty()))
    options.algorithms = cost::algorithms_of(*priced.classes.front().program);
  return options;
}

std::string spill_folder_of(const Settings& settings) {
  const std::string& file = settings.running.checkpoint;
  if (file.empty()) return {};
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace weft::planner
