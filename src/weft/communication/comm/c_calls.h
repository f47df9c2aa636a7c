// weft/communication/comm/c_calls.h -- shared by the sources of the C functions: handles and
// argument checks.
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

// Whether the values are enumerators of weft_comm.h.
Status check_type(int type);
Status check_operation(int op);
Status check_numbers(const weft_call& call);

// Checks the call and runs it to completion.
int run(weft_comm* comm, const weft_call& call);

// Like tell(), but returns WEFT_LATE if a timeout ended the group.
int tell_late(weft_comm& comm, const Status& status);

}  // namespace weft::comm
