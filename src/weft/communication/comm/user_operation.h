// weft/communication/comm/user_operation.h -- a reduction that the caller defines.
//
//   const UserOperation longest{.combine = [](const void* right, void* left, std::int64_t items) { ... }};
//
// left = left op right, item by item; left holds what lower ranks gave. It must be associative and need not be
// commutative. It is called on the thread that calls, on memory that is aligned as the caller's type is.
#pragma once
#include <cstdint>
#include <functional>

#include "weft/communication/comm/call.h"

namespace weft::comm {

struct UserOperation {
  std::function<void(const void* right, void* left, std::int64_t items)> combine;
  std::int64_t item = 1;  // elements that belong together: 2 for complex numbers. Divides every count
};

// Refuses a count that its items do not divide.
Status check_items(const UserOperation& op, std::int64_t count);

// A built-in operation as if it were the caller's. REQUIRES: it is defined for the type, and is not avg.
UserOperation operation_of(ReduceOp op, ElementType type);

}  // namespace weft::comm
