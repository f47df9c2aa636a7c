// weft/communication/comm/options.h -- how a communicator is opened: the same on every rank.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weft::comm {

// mixed: shared memory within hosts, TCP across. What automatic gives a group that needs both.
enum class TransportKind : std::uint8_t { automatic, inproc, shm, tcp, mpi, mixed };
std::string_view name(TransportKind kind);
std::optional<TransportKind> find_transport(std::string_view name);

struct Options {
  TransportKind transport = TransportKind::automatic;  // shared memory within a machine, TCP across
  bool background = true;  // a thread moves bytes of started calls while nobody waits for them
  // Any number of threads may make calls at once. Collectives still come in one order on all ranks, which
  // is the caller's to see to; sends, receives and messages are free. Costs a lock and a queue a call.
  bool several_threads = false;
  bool explain = false;  // WEFT_EXPLAIN=1: explain() is called with what ran and why
  std::function<void(std::string_view)> on_explain = {};
  // Of calls that have none of their own, see Call::timeout; 0: none.
  std::chrono::milliseconds call_timeout{0};
  std::string statistics;  // the statistics database; empty: the user's own; "none": no file
  std::string algorithm;   // use this one alone: "all_reduce_ring", "direct"; empty: the model chooses
};

}  // namespace weft::comm
