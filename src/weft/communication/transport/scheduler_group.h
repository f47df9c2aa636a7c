// weft/communication/transport/scheduler_group.h -- which group of the scheduler this process is in.
//
// The scheduler first chooses among groups, then among the processes of one. A yield only says "another of my
// group": where ranks share cores and each is in a group of its own, it gives the core to nobody. A control
// group with a share of processors is such a group; so is each session where sessions are grouped by
// themselves (autogroup), as with launchers that give every rank a session.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace weft::transport {

// Never 0; the same for two processes of one group.
std::uint64_t scheduler_group();
// What that makes of /proc/self/cgroup, of whether sessions are grouped, and of the process' session.
std::uint64_t scheduler_group(std::string_view control_groups, bool by_session, pid_t session);

}  // namespace weft::transport
