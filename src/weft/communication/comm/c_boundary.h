// weft/communication/comm/c_boundary.h -- keeps C++ on its own side of the C functions.
//
//   int weft_barrier(weft_comm* comm) {
//     return guarded([&] { return tell(comm->communicator->barrier()); });
//   }
//
// What goes wrong becomes a weft_status and a text for weft_last_error(), of the thread that called; nothing
// is thrown into C. Included by the sources of the C functions only.
#pragma once
#include <exception>
#include <new>
#include <string_view>

#include "weft/base/result.h"

namespace weft::comm {

// Keeps a text for weft_last_error(); an empty one where there is no memory for it.
void remember(std::string_view text) noexcept;

// Keeps the error; its weft_status.
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
