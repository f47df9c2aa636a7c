// weft/communication/transport/group_keeper.h -- ends process groups when the process that looks after them is gone.
//
//   launcher ──pipe──▶ keeper      a small process in a session of its own, which sleeps
//      ├─ rank 0, group 4711: sh, sleep 300
//      └─ rank 1, group 4712        the launcher is killed: the pipe ends, and the keeper kills all groups in its list
//
// A rank dies with its launcher by itself (PR_SET_PDEATHSIG); what the rank has started does not, and nobody else is
// left who knows its group.
#pragma once
#include <sys/types.h>

#include "weft/base/result.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

// Of a fork that failed.
Error no_process(int code);

class GroupKeeper {
 public:
  static Result<GroupKeeper> start();

  GroupKeeper() = default;
  GroupKeeper(GroupKeeper&&) = default;
  GroupKeeper& operator=(GroupKeeper&&) = default;
  ~GroupKeeper();  // the groups that are still in the list are ended

  // From the process that is the group, too, between fork and exec: one write.
  void add(pid_t group) const { tell(group); }
  // REQUIRES: the group's first process is not reaped yet, so that its number is nobody else's.
  void remove(pid_t group) const { tell(-group); }

 private:
  void tell(pid_t word) const;

  tcp::Socket pipe_;  // its write end
  pid_t process_ = -1;
};

}  // namespace weft::transport
