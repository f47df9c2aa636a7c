// weft/communication/transport/scheduler_group.h -- the scheduler group of this process.
//
// The Linux scheduler first chooses among groups, then among the processes of a group. A yield only
// means "another of my group": if ranks share cores and each is in a separate group, it gives the
// core to no other rank. A control group with a CPU share is such a group. So is each session with
// autogroup enabled, as under launchers that start every rank in a session.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace weft::transport {

// Never 0; equal for processes of one group.
std::uint64_t scheduler_group();
// The same, computed from the contents of /proc/self/cgroup, whether autogroup is enabled, and the
// process's session.
std::uint64_t scheduler_group(std::string_view control_groups, bool by_session, pid_t session);

}  // namespace weft::transport
