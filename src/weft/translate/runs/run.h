// weft/translate/runs/run.h -- one training run that somebody measured: model, cluster, configuration, outcome.
//
//   model      layers hidden heads kv_heads head_dim ffn gated vocab tied experts topk moe_ffn family seq
//   cluster    gpu gpus gpus_per_node within_gbps across_gbps gpu_memory_gb gpu_bandwidth_gbps network
//   plan       tp pp vp dp cp ep etp zero fsdp copies sp mbs gbs precision recompute overlap stack
//   measured   step_s | step_ms | tok_s_gpu, mem_gib | mem_gb | peak_bytes, mem_of, alloc_gib_by_rank, status (ok, oom, failed)
//
// A row that lacks a field which a prediction needs, or has an impossible one, is an error that names the field.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"
#include "weft/translate/runs/run_table.h"

namespace weft::runs {

enum class Outcome : std::uint8_t { ran, out_of_memory, presumed_out_of_memory };

struct RunCluster {
  std::string device;  // as the row names it: "H100-SXM-80GB"
  std::int64_t devices = 0, devices_per_node = 8;
  // 0: as the catalog has the device.
  double memory_bytes = 0, memory_bytes_per_second = 0;
  double within_bytes_per_second = 0, across_bytes_per_second = 0;  // per device, each way
  std::string fabric;  // the cluster of the catalog whose network it has; empty: an ideal one
};

// The device whose memory a table states.
enum class PeakOf : std::uint8_t { fullest_stage, first_stage, last_stage };

struct Run {
  std::string id;
  std::string stack;   // empty: the file does not say
  std::string config;  // the model as a config.json of Hugging Face's
  RunCluster cluster;
  recipe::Recipe recipe;
  Outcome outcome = Outcome::ran;
  double step_seconds = 0;  // 0: not measured
  double peak_bytes = 0;    // of the fullest device, by its allocator; 0: not measured
  PeakOf peak_of = PeakOf::fullest_stage;
  std::vector<double> peak_bytes_by_rank;  // where each was measured
  std::string series;                      // rows of one series differ in their plans and sizes only

  double tokens() const {
    return static_cast<double>(recipe.global_batch) * static_cast<double>(recipe.sequence);
  }
};

Result<Run> run_of(const RunRow& row);

// The catalog's name of a device: "H100-SXM-80GB" is h100. Empty: it has none.
std::string device_name(std::string_view device);

}  // namespace weft::runs
