// weft/runtime/run/rank_program.h -- a program that starts itself again, once per rank of this machine.
//
//   int main(int argc, char** argv) {
//     if (const auto code = weft::run::rank_main()) return *code;    // must be first
//     ...
//   }
//
//   ON LOCAL 4      this process: rank 0, with all its state
//                     ├─ spawn ──▶ rank 1   the same program from the start: rank_main() reads its work from
//                     ├─ spawn ──▶ rank 2   shared memory, joins the other ranks, does the work, and main()
//                     └─ spawn ──▶ rank 3   returns
//
// A rank inherits only bytes from its parent: no threads, locks or open devices. Programs that
// cannot start this way, such as an interpreter that loads the library, use the `weft` installed
// with the library as rank program, or the program named in WEFT_RANK_PROGRAM.
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

// The work of a rank, given its bytes.
using RankFunction = Status (*)(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work);

struct NamedRankFunction {
  std::string_view name;
  RankFunction part = nullptr;
};

// If this process was started as a rank, does its work and returns main()'s exit code. Otherwise
// returns nothing, and this program may start ranks. `more`: the program's own parts besides the
// library's.
std::optional<int> rank_main(std::span<const NamedRankFunction> more = {});

// In a process started as a rank: whether it has received SIGTERM. Before the first call, SIGTERM
// ends the process. Terminal signals go to rank 0 only.
bool received_sigterm();

// The input of all ranks of a run, in shared memory.
class RankInput {
 public:
  // Fails if this program cannot be started again, or if there is no memory.
  static Result<RankInput> make(const transport::Rendezvous& meeting, std::string_view part,
                                std::span<const std::byte> work);
  RankInput(RankInput&& other) noexcept;
  RankInput& operator=(RankInput&&) = delete;
  ~RankInput();

  // Starts a rank. It is killed when the calling thread ends, however that ends.
  Result<pid_t> start(std::int32_t rank, const Complaints& complaints) const;

 private:
  RankInput(std::string program, int descriptor) : program_(std::move(program)), descriptor_(descriptor) {}
  std::string program_;
  int descriptor_ = -1;
};

// Runs `part`, turning exceptions into errors.
template <class Part>
Status run_guarded(const Part& part) {
  try {
    return part();
  } catch (const std::bad_alloc&) {
    return environment_error("out of memory", "use a smaller batch or model");
  } catch (const std::system_error& error) {
    return thread_error(error);
  } catch (const std::exception& error) {
    return environment_error(std::string("internal error: ") + error.what());
  }
}

}  // namespace weft::run
