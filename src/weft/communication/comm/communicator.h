// weft/communication/comm/communicator.h -- collectives among ranks: the main interface of the
// library.
//
//   WEFT_TRY(group, comm::connect());    // from the launcher's environment variables
//   WEFT_TRY_STATUS(group->all_reduce(gradient, gradient, n, ElementType::f32));
//
//   WEFT_TRY(work, group->start({.kind = Kind::all_reduce, ..., .priority = Priority::high}));
//   ...                                  // compute; a background thread moves bytes
//   WEFT_TRY_STATUS(work.wait());
//
// All ranks of a group make the same calls in the same order within each priority. One thread at a
// time may make calls, unless Options::several_threads is set; any thread may wait(). When a rank
// fails, all current and later calls fail with an error that names it, and dead_ranks() lists it.
// shrink() makes a group of the surviving ranks, grow() one with additional ranks.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/failure.h"
#include "weft/communication/comm/message.h"
#include "weft/communication/comm/options.h"
#include "weft/communication/comm/quorum.h"
#include "weft/communication/comm/rendezvous_point.h"
#include "weft/communication/comm/user_operation.h"
#include "weft/communication/comm/work.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

class Communicator {
 public:
  // Collective over all ranks of the job.
  static Result<std::unique_ptr<Communicator>> create(std::shared_ptr<transport::Job> job,
                                                      const Options& options);
  ~Communicator();

  std::int32_t rank() const;
  std::int32_t size() const;
  std::string_view transport() const;

  // Runs a call to completion.
  Status run(const Call& call);
  // Starts a call. `on_done`, if set, is called once, on the thread that completes the call.
  Result<Work> start(const Call& call, std::function<void(const Status&)> on_done = {});

  Status all_reduce(const void* input, void* output, std::int64_t count, ElementType type,
                    ReduceOp op = ReduceOp::sum);
  Status reduce_scatter(const void* input, void* output, std::int64_t count, ElementType type,
                        ReduceOp op = ReduceOp::sum);
  Status all_gather(const void* input, void* output, std::int64_t count, ElementType type);
  Status all_to_all(const void* input, void* output, std::int64_t count, ElementType type);
  Status broadcast(const void* input, void* output, std::int64_t count, ElementType type, std::int32_t root);
  Status reduce(const void* input, void* output, std::int64_t count, ElementType type, ReduceOp op,
                std::int32_t root);
  Status gather(const void* input, void* output, std::int64_t count, ElementType type, std::int32_t root);
  Status scatter(const void* input, void* output, std::int64_t count, ElementType type, std::int32_t root);
  Status send(const void* input, std::int64_t count, ElementType type, std::int32_t to);
  Status receive(void* output, std::int64_t count, ElementType type, std::int32_t from);
  Status barrier();

  // Rank r gets the combination of the inputs of ranks 0 to r, in rank order. An exclusive scan
  // leaves out the rank's own input and leaves rank 0's output unchanged. In place or out of place.
  // avg is refused.
  Status scan(const void* input, void* output, std::int64_t count, ElementType type, ReduceOp op);
  Status exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type, ReduceOp op);

  // The same with a user-defined operation, applied in rank order: see user_operation.h. The
  // traffic is the same as for a sum.
  Status all_reduce(const void* input, void* output, std::int64_t count, ElementType type,
                    const UserOperation& op);
  Status reduce(const void* input, void* output, std::int64_t count, ElementType type,
                const UserOperation& op, std::int32_t root);
  Status reduce_scatter(const void* input, void* output, std::int64_t count, ElementType type,
                        const UserOperation& op);
  Status scan(const void* input, void* output, std::int64_t count, ElementType type, const UserOperation& op);
  Status exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type,
                        const UserOperation& op);

  // For ranks that know only their own counts: what they send to and receive from each rank, or
  // what they contribute. (Call::counts needs the counts of all ranks.) Costs an extra all_gather
  // of counts. Blocks are contiguous in rank order. Counts that do not match are refused on all
  // ranks.
  Status all_to_all(const void* input, std::span<const std::int64_t> give, void* output,
                    std::span<const std::int64_t> take, ElementType type);
  // `room`: capacity of output in elements. Returns the counts of all ranks.
  Result<std::vector<std::int64_t>> all_gather(const void* input, std::int64_t count, void* output,
                                               std::int64_t room, ElementType type);

  // Tagged messages of any length up to the receiver's buffer, from a given rank or from any: see
  // message.h. False, or an empty optional: the timeout expired before the message was received, or
  // before one arrived.
  Result<bool> send_tagged(const void* input, std::int64_t count, ElementType type, std::int32_t to, Tag tag,
                           std::chrono::milliseconds timeout = {});
  Result<std::optional<Received>> receive_tagged(void* output, std::int64_t room, ElementType type,
                                                 std::int32_t from = kAnySource, Tag tag = kAnyTag,
                                                 std::chrono::milliseconds timeout = {});
  // The message that a receive would return, without receiving it; empty if none has arrived.
  Result<std::optional<Received>> probe(std::int32_t from = kAnySource, Tag tag = kAnyTag);

  // Memory that all ranks of the group on this machine can access: collectives on it are zero-copy.
  // Not collective. Freed with the communicator at the latest.
  Result<void*> allocate(std::size_t bytes);
  void free(void* memory);

  // Makes a group of the ranks that pass the same colour, ordered by key, then rank; null for a
  // negative colour. Collective.
  Result<std::unique_ptr<Communicator>> split(std::int32_t colour, std::int32_t key);
  // Makes a group of the surviving ranks; all survivors call it. The calls of this group have
  // failed by then. Further failures during shrink() are handled. A possible minority is refused:
  // see quorum.h.
  Result<std::unique_ptr<Communicator>> shrink(Quorum quorum = Quorum::majority);

  // Makes a group of this group's ranks followed by new ranks. All ranks of this group call it;
  // each new rank calls comm::join() with the same place and secret. This group stays usable.
  Result<std::unique_ptr<Communicator>> grow(std::int32_t newcomers, const RendezvousPoint& place);

  // Calls of the program's collective with min_bytes to max_bytes (0: no limit) use `program` from
  // a call number that all ranks agree on. One rank proposes it; no rank stops. Returns the call
  // number.
  Result<std::uint64_t> install(const collective::Program& program);

  // Uses only this algorithm from the next call on, like Options::algorithm; empty: the cost model
  // chooses. All ranks call it between the same two calls.
  void use(const std::string& algorithm);

  // Sets the timeout of later calls, like Options::call_timeout.
  void set_call_timeout(std::chrono::milliseconds timeout);

  // Fails the group: all current and later calls on all ranks fail with this error. From any
  // thread.
  void fail(const Error& error);
  // The failure as data: the failed ranks of this group, ascending, even if no call has failed yet;
  // and the cause that ended the group, if any.
  std::vector<std::int32_t> dead_ranks() const;
  struct End {
    Error error;
    Cause cause = Cause::fault;
    std::vector<std::int32_t> dead;
  };
  std::optional<End> end() const;
  // Calls fail() with "rank 2 gave up: `why` (code 7)".
  void abort(int code, std::string_view why);

  // Looks up an algorithm by name, "all_reduce_ring(channels=2)" or "direct", for Call::algorithm
  // of calls of this kind and root. A process compiles it once; the first call that names it opens
  // its connections. Fails if the name is unknown, if the algorithm is for another collective or
  // number of ranks, or if it needs shared memory that these ranks lack. Not collective, but all
  // ranks must use the same one.
  Result<NamedAlgorithm> find_algorithm(std::string_view name, Kind kind, std::int32_t root = 0);

  // Which algorithm would run a call of this size, and why.
  Result<std::string> explain(Kind kind, std::int64_t message_bytes);

  struct State;
  explicit Communicator(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

// Joins a growing group as rank `rank` of `ranks`; new ranks come last.
Result<std::unique_ptr<Communicator>> join(const RendezvousPoint& place, std::int32_t rank,
                                           std::int32_t ranks, const Options& options = {});

// Joins the job that the environment describes and creates a communicator of all its ranks.
Result<std::unique_ptr<Communicator>> connect(const Options& options = {});

}  // namespace weft::comm
