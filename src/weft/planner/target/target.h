// weft/planner/target/target.h -- where a plan runs.
//
//   ON LOCAL 4         local      ranks on this machine's processors
//   ON JOB             job        the ranks that a launcher started, on their hosts
//   ON GPU RANKS 2     gpu        the GPU of this machine, shared by ranks
//   ON pod, ON h100    described  a cluster or device of the catalog: for planning only
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "weft/device/device.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/target/job_hosts.h"

namespace weft::planner {

enum class TargetKind : std::uint8_t { local, job, gpu, described };

struct Target : cluster::Cluster {
  TargetKind kind = TargetKind::local;
  std::shared_ptr<device::Device> gpu;  // only if kind is gpu
  std::optional<JobHosts> hosts;        // only if kind is job
  int threads = 1;                      // per machine, for all of its ranks together

  Target() = default;
  Target(cluster::Cluster cluster, TargetKind is) : cluster::Cluster(std::move(cluster)), kind(is) {}

  bool is_job() const { return kind == TargetKind::job; }
  bool has_several_hosts() const { return hosts && hosts->ranks.size() > 1; }
  bool on_gpu() const { return kind == TargetKind::gpu; }
  bool on_processors() const { return kind == TargetKind::local || is_job(); }
  bool runs_here() const { return kind != TargetKind::described; }
};

}  // namespace weft::planner
