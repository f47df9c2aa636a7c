// weft/runtime/run/rank_program.h -- a program that starts itself again, once for each rank of this machine.
//
//   int main(int argc, char** argv) {
//     if (const auto code = weft::run::rank_main()) return *code;    // first of all: this process may be a rank
//     ...
//   }
//
//   ON LOCAL 4      this process: rank 0, with all it has
//                     ├─ spawn ──▶ rank 1   the same program from its beginning: rank_main() finds what it is to
//                     ├─ spawn ──▶ rank 2   do in memory that it was given, joins the others, does it, and main()
//                     └─ spawn ──▶ rank 3   returns
//
// A rank has nothing of its starter's but bytes: no threads, no locks, no open device. What cannot begin so,
// like an interpreter that loads the library, has its ranks from the `weft` that is installed with the library,
// or names a program that begins so in WEFT_RANK_PROGRAM.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/thread_error.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/runtime/run/complaints.h"

namespace weft::run {

// What a rank does with the bytes that it was given.
using RankPart = Status (*)(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work);

struct NamedPart {
  std::string_view name;
  RankPart part = nullptr;
};

// When this process was started as a rank: does its part, and returns what main() is to return. Else nothing,
// and this program may start ranks. `more` are parts of the program's own beside the library's.
std::optional<int> rank_main(std::span<const NamedPart> more = {});

// Of a rank that was started so: whether it was told to end (SIGTERM) since it first asked. Until a rank asks, the signal
// ends it; what the keyboard says is for rank 0 alone.
bool told_to_end();

// What all ranks of a run are given, in memory that they share.
class RankOrders {
 public:
  // Fails where this program cannot be started again, or there is no memory.
  static Result<RankOrders> make(const transport::Rendezvous& meeting, std::string_view part,
                                 std::span<const std::byte> work);
  RankOrders(RankOrders&& other) noexcept;
  RankOrders& operator=(RankOrders&&) = delete;
  ~RankOrders();

  // Starts one. It ends with the thread that calls, however that ends.
  Result<pid_t> start(std::int32_t rank, const Complaints& complaints) const;

 private:
  RankOrders(std::string program, int descriptor) : program_(std::move(program)), descriptor_(descriptor) {}
  std::string program_;
  int descriptor_ = -1;
};

// Never throws: a rank that throws fails.
template <class Part>
Status do_part(const Part& part) {
  try {
    return part();
  } catch (const std::bad_alloc&) {
    return world_error("out of memory", "use a smaller batch or model");
  } catch (const std::system_error& error) {
    return thread_error(error);
  } catch (const std::exception& error) {
    return world_error(std::string("internal error: ") + error.what());
  }
}

}  // namespace weft::run
