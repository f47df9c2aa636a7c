// own_stack.h -- a sufficiently large stack, whatever `ulimit -s` says.
//
// Plans are traversed recursively, and new threads get the stack size of that limit.
#pragma once
#include <functional>

namespace weft {

// Runs `body` on this thread, or on one with an 8 MiB stack if this one's is smaller, and returns
// its result. Threads started later have stacks of that size. `body` must not throw.
int with_large_stack(const std::function<int()>& body);

}  // namespace weft
