#include "weft/base/container.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string_view>

#include "temporary_folder.h"
#include "weft/base/machine.h"

namespace weft {
namespace {

class Container : public testing::Test {
 protected:
  void put(const std::filesystem::path& file, std::string_view text) {
    const std::filesystem::path at = folder_.path() / file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  ContainerLimits read() const { return container_limits(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(Container, HasNoLimitsWithoutCgroups) {
  EXPECT_EQ(read().memory, 0);
  EXPECT_EQ(read().processors, 0);
}

TEST_F(Container, CgroupV2AppliesTheLimitsOfAllParents) {
  put("proc/self/cgroup", "0::/slurm/job_7/step\n");
  put("sys/fs/cgroup/slurm/job_7/step/memory.max", "max\n");
  put("sys/fs/cgroup/slurm/job_7/memory.max", "1000000\n");
  put("sys/fs/cgroup/slurm/job_7/memory.current", "600000\n");
  put("sys/fs/cgroup/slurm/job_7/memory.stat", "anon 1\nfile 200000\n");
  put("sys/fs/cgroup/slurm/memory.max", "5000000\n");
  put("sys/fs/cgroup/slurm/cpu.max", "350000 100000\n");
  put("sys/fs/cgroup/slurm/job_7/cpu.max", "max 100000\n");
  EXPECT_EQ(read().memory, 1'000'000);
  EXPECT_EQ(read().available, 600'000);
  EXPECT_EQ(read().processors, 3.5);
}

// As in a container that sees its own cgroup at the mount point and the host's path in /proc.
TEST_F(Container, UsesTheMountPointIfThePathIsMissing) {
  put("proc/self/cgroup", "0::/kubepods/pod1/abc\n");
  put("sys/fs/cgroup/memory.max", "2000\n");
  put("sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(read().memory, 2000);
  EXPECT_EQ(read().processors, 0.5);
}

TEST_F(Container, CgroupV1HasOneHierarchyPerController) {
  put("proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "4096000\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "1096000\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 96000\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read().memory, 4'096'000);
  EXPECT_EQ(read().available, 3'096'000);
  EXPECT_EQ(read().processors, 2);
}

TEST_F(Container, IgnoresMalformedCgroups) {
  put("proc/self/cgroup", "nonsense\n0::/../../etc\n::\n7:memory\n");
  put("sys/fs/cgroup/memory.max", "-5\n");
  put("sys/fs/cgroup/cpu.max", "0 0\n");
  EXPECT_EQ(read().memory, 0);
  EXPECT_EQ(read().processors, 0);
}

TEST(Machine, HasMemoryAndProcessors) {
  EXPECT_GT(total_memory(), 0);
  EXPECT_LE(available_memory(), total_memory());
  EXPECT_GE(available_processors(), 1);
}

}  // namespace
}  // namespace weft
