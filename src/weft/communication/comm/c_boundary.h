// weft/communication/comm/c_boundary.h -- exception barrier of the C functions.
//
//   int weft_barrier(weft_comm* comm) {
//     return guarded([&] { return tell(comm->communicator->barrier()); });
//   }
//
// An error becomes a weft_status and a message for weft_last_error() of the calling thread. No
// exception reaches C. Included only by the sources of the C functions.
#pragma once
#include <exception>
#include <new>
#include <string_view>

#include "weft/base/result.h"

namespace weft::comm {

// Stores the message for weft_last_error(), or an empty one if memory is short.
void remember(std::string_view text) noexcept;

// Stores the error and returns its weft_status.
int tell(const Error& error);
int tell(const Status& status);

template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    remember("out of memory");
    return static_cast<int>(Fault::world);
  } catch (const std::exception& exception) {
    remember(exception.what());
  } catch (...) {
    remember("an exception without a message");
  }
  return 3;  // WEFT_INTERNAL
}

}  // namespace weft::comm
