// weft/communication/transport/group_keeper.h -- kills process groups when the process that
// supervises them is gone.
//
//   launcher ──pipe──▶ keeper      a small process in its own session, which sleeps
//      ├─ rank 0, group 4711: sh, sleep 300
//      └─ rank 1, group 4712        when the launcher is killed, the pipe closes and the keeper
//                                   kills all groups in its list
//
// A rank is killed with its launcher (PR_SET_PDEATHSIG), but the processes it has started are not,
// and no other process knows their group.
#pragma once
#include <sys/types.h>

#include "weft/base/result.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

// The error for a failed fork.
Error no_process(int code);

class GroupKeeper {
 public:
  static Result<GroupKeeper> start();

  GroupKeeper() = default;
  GroupKeeper(GroupKeeper&&) = default;
  GroupKeeper& operator=(GroupKeeper&&) = default;
  ~GroupKeeper();  // kills the groups still in the list

  // A single write, so the group's own process may also call it between fork and exec.
  void add(pid_t group) const { tell(group); }
  // REQUIRES: the group's first process is not reaped yet, so that its pid is not reused.
  void remove(pid_t group) const { tell(-group); }

 private:
  void tell(pid_t word) const;

  tcp::Socket pipe_;  // its write end
  pid_t process_ = -1;
};

}  // namespace weft::transport
