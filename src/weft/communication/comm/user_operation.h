// weft/communication/comm/user_operation.h -- a user-defined reduction.
//
//   const UserOperation longest{.combine = [](const void* right, void* left, std::int64_t items) { ... }};
//
// left = left op right, per item; left holds the result of lower ranks. It must be associative but
// need not be commutative. It runs on the calling thread, on memory with the alignment of the
// element type.
#pragma once
#include <cstdint>
#include <functional>

#include "weft/communication/comm/call.h"

namespace weft::comm {

struct UserOperation {
  std::function<void(const void* right, void* left, std::int64_t items)> combine;
  std::int64_t item = 1;  // elements per item: 2 for complex numbers; divides every count
};

// Refuses a count that is not a multiple of the item size.
Status check_items(const UserOperation& op, std::int64_t count);

// A built-in operation as a UserOperation. REQUIRES: it is defined for the type, and is not avg.
UserOperation operation_of(ReduceOp op, ElementType type);

}  // namespace weft::comm
