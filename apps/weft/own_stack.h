// own_stack.h -- a stack that is large enough, whatever `ulimit -s` says.
//
// Plans are walked by recursion, and threads begin with as much stack as the limit allows the first one.
#pragma once
#include <functional>

namespace weft {

// Runs `body` on this thread, or where its stack is small on one of 8 MiB, and returns what that returns. Threads that
// are started from then on have stacks of that size. `body` does not throw.
int with_own_stack(const std::function<int()>& body);

}  // namespace weft
