// weft/communication/comm/communicator.h -- collectives among ranks: the library's front door.
//
//   WEFT_TRY(group, comm::connect());    // from what the launcher left in the environment
//   WEFT_TRY_STATUS(group->all_reduce(gradient, gradient, n, ElementType::f32));
//
//   WEFT_TRY(work, group->start({.kind = Kind::all_reduce, ..., .priority = Priority::high}));
//   ...                                  // compute; a background thread moves bytes
//   WEFT_TRY_STATUS(work.wait());
//
// Every rank of a group makes the same calls in the same order; those of one priority may not be reordered.
// One thread at a time makes calls of a communicator, unless Options::several_threads; any thread may wait().
// When a rank dies, every call under way and every later one fails with its number, and dead_ranks() has it;
// shrink() gives a group of those that are left, grow() one with newcomers.
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
#include "weft/communication/comm/meeting_place.h"
#include "weft/communication/comm/message.h"
#include "weft/communication/comm/options.h"
#include "weft/communication/comm/quorum.h"
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

  // Runs a call to its end.
  Status run(const Call& call);
  // Starts it. `on_done`, if any, is called once, on whatever thread finishes it.
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

  // Rank r gets the combination of the inputs of ranks 0 to r, in that order; an exclusive scan leaves out its
  // own, and rank 0's output as it was. Out of place or in place. avg is refused.
  Status scan(const void* input, void* output, std::int64_t count, ElementType type, ReduceOp op);
  Status exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type, ReduceOp op);

  // The same with an operation of the caller's, applied in the order of ranks: see user_operation.h. Bytes
  // travel as they would for a sum.
  Status all_reduce(const void* input, void* output, std::int64_t count, ElementType type,
                    const UserOperation& op);
  Status reduce(const void* input, void* output, std::int64_t count, ElementType type,
                const UserOperation& op, std::int32_t root);
  Status reduce_scatter(const void* input, void* output, std::int64_t count, ElementType type,
                        const UserOperation& op);
  Status scan(const void* input, void* output, std::int64_t count, ElementType type, const UserOperation& op);
  Status exclusive_scan(const void* input, void* output, std::int64_t count, ElementType type,
                        const UserOperation& op);

  // Where each rank knows its own counts only: what it has for every rank and what it gets from every rank, or
  // what it gives (where Call::counts wants everyone's). Costs one more all_gather, of counts. Blocks lie one
  // after another in the order of ranks; counts that do not fit each other are refused on all ranks.
  Status all_to_all(const void* input, std::span<const std::int64_t> give, void* output,
                    std::span<const std::int64_t> take, ElementType type);
  // `room`: elements that output has room for; answers the counts of all ranks.
  Result<std::vector<std::int64_t>> all_gather(const void* input, std::int64_t count, void* output,
                                               std::int64_t room, ElementType type);

  // Messages with tags, of any length up to the receiver's room, from a rank or from any: see message.h. False,
  // and none: nobody took it, and nothing came, in time.
  Result<bool> send_tagged(const void* input, std::int64_t count, ElementType type, std::int32_t to, Tag tag,
                           std::chrono::milliseconds timeout = {});
  Result<std::optional<Received>> receive_tagged(void* output, std::int64_t room, ElementType type,
                                                 std::int32_t from = kAnySource, Tag tag = kAnyTag,
                                                 std::chrono::milliseconds timeout = {});
  // The message that a receive would get, without taking it; none: nothing has come.
  Result<std::optional<Received>> probe(std::int32_t from = kAnySource, Tag tag = kAnyTag);

  // Memory that all ranks of the group on this machine can reach: collectives on it copy nothing. Not
  // collective. Freed with the communicator at the latest.
  Result<void*> allocate(std::size_t bytes);
  void free(void* memory);

  // A group of those that give the same colour, ordered by key, then rank; none for a negative colour.
  // Collective.
  Result<std::unique_ptr<Communicator>> split(std::int32_t colour, std::int32_t key);
  // A group of the ranks that are alive. Every survivor calls it. This group's calls have failed by then. Deaths
  // meanwhile are dealt with inside. A minority of those that may be alive is refused: see quorum.h.
  Result<std::unique_ptr<Communicator>> shrink(Quorum quorum = Quorum::majority);

  // A group of this one's ranks and of newcomers, who come after them. All of this group call it, and each
  // newcomer comm::join() with the same place and secret. This group stays as it is.
  Result<std::unique_ptr<Communicator>> grow(std::int32_t newcomers, const MeetingPlace& place);

  // From a call number that all ranks agree on, calls of the program's collective of min_bytes to max_bytes
  // (0: no limit) use `program`. One rank proposes; nobody stops. Answers that number.
  Result<std::uint64_t> install(const collective::Program& program);

  // From the next call on only this algorithm is used, as Options::algorithm has it; empty: the model chooses.
  // Every rank says so between the same calls.
  void use(const std::string& algorithm);

  // Of later calls, as Options::call_timeout has it.
  void set_call_timeout(std::chrono::milliseconds timeout);

  // The group cannot go on: calls under way on any of its ranks fail with this, and all later ones. From any
  // thread.
  void fail(const Error& error);
  // The same as data: the ranks of this group that died, ascending, whether or not a call has failed of it;
  // and what ended the group, once something has.
  std::vector<std::int32_t> dead_ranks() const;
  struct End {
    Error error;
    Cause cause = Cause::fault;
    std::vector<std::int32_t> dead;
  };
  std::optional<End> end() const;
  // fail() with "rank 2 gave up: `why` (code 7)".
  void abort(int code, std::string_view why);

  // An algorithm by its name, "all_reduce_ring(channels=2)" or "direct", for Call::algorithm of calls of this
  // kind and root. A process compiles it once; the first call that names it opens its wires. Fails where no
  // algorithm has that name, where it is for another collective or another number of ranks, or where it needs
  // memory that these ranks do not share. Not collective, but all ranks must name the same.
  Result<NamedAlgorithm> find_algorithm(std::string_view name, Kind kind, std::int32_t root = 0);

  // What would run a call of this size, and why.
  Result<std::string> explain(Kind kind, std::int64_t message_bytes);

  struct State;
  explicit Communicator(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

// Joins a group that grows, as rank `rank` of `ranks`, the newcomers' ranks being the last ones.
Result<std::unique_ptr<Communicator>> join(const MeetingPlace& place, std::int32_t rank, std::int32_t ranks,
                                           const Options& options = {});

// Joins the job that the environment describes and makes a communicator of all its ranks.
Result<std::unique_ptr<Communicator>> connect(const Options& options = {});

}  // namespace weft::comm
