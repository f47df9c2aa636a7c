// weft/communication/comm/options.h -- options of a communicator: the same on every rank.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weft::comm {

// mixed: shared memory within hosts, TCP between them. `automatic` selects it for a group that
// needs both.
enum class TransportKind : std::uint8_t { automatic, inproc, shm, tcp, mpi, mixed };
std::string_view name(TransportKind kind);
std::optional<TransportKind> find_transport(std::string_view name);

struct Options {
  TransportKind transport = TransportKind::automatic;  // shared memory within a machine, TCP across
  bool background = true;  // a thread progresses started calls while no thread waits for them
  // Any number of threads may make calls at once. The caller must still make collectives in one
  // order on all ranks; sends, receives and messages may be in any order. Costs a lock and a queue
  // per call.
  bool several_threads = false;
  bool explain = false;  // WEFT_EXPLAIN=1: on_explain reports which algorithm ran and why
  std::function<void(std::string_view)> on_explain = {};
  // Default for Call::timeout; 0: none.
  std::chrono::milliseconds call_timeout{0};
  std::string statistics;  // statistics database; empty: the user's; "none": no file
  std::string algorithm;   // use only this one: "all_reduce_ring", "direct"; empty: the cost model chooses
};

}  // namespace weft::comm
