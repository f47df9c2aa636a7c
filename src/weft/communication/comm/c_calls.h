// weft/communication/comm/c_calls.h -- what the sources of the C functions share: handles, and how their arguments are read.
#pragma once
#include <memory>

#include "weft/communication/comm/c_boundary.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/comm/weft_comm.h"

struct weft_comm {
  std::unique_ptr<weft::comm::Communicator> communicator;
};
struct weft_work {
  weft::comm::Work work;
};

namespace weft::comm {

Error no_handle(const char* what);  // "comm is NULL"

// Whether numbers are those of weft_comm.h.
Status check_type(int type);
Status check_operation(int op);
Status check_numbers(const weft_call& call);

// The call, checked, to its end.
int run(weft_comm* comm, const weft_call& call);

// As tell(), and WEFT_LATE where a timeout ended the group.
int tell_late(weft_comm& comm, const Status& status);

}  // namespace weft::comm
