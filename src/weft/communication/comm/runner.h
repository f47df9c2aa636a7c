// weft/communication/comm/runner.h -- runs calls by shared memory, a chunk program, or a pair of
// connections.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "weft/communication/comm/call.h"
#include "weft/communication/comm/chunk/chunk_machine.h"
#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/operation.h"
#include "weft/communication/comm/pair_operation.h"
#include "weft/communication/comm/source.h"
#include "weft/communication/transport/endpoint.h"

namespace weft::comm {

class Runner {
 public:
  virtual ~Runner() = default;

  // Calls that share a resource start in the order they were made.
  virtual const void* resource(const Call& call) const = 0;
  virtual bool can_start(const Call& call) const = 0;
  virtual Operation* start(const Call& call, std::uint64_t number) = 0;
  virtual void finish(Operation* operation) = 0;
  virtual Source& source() = 0;
  // Whether the error of mismatched calls already names both sides' calls.
  virtual bool reports_both_sides() const { return false; }
};

// The arguments must outlive the runner.
std::unique_ptr<Runner> direct_runner(DirectGroup& group, Source& source, const DirectOptions& wish);
std::unique_ptr<Runner> program_runner(ReadyProgram& program, Source& source);
// Calls are queued until the pair is open; threads sleep on `meanwhile` until then.
std::unique_ptr<Runner> pair_runner(Pair& pair, Source& meanwhile, std::int32_t rank);

}  // namespace weft::comm
