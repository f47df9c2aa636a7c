// weft/communication/comm/group.h -- internals of a communicator. Users include communicator.h.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/communication/comm/agreement.h"
#include "weft/communication/comm/choice/choice.h"
#include "weft/communication/comm/chunk/chunk_machine.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/engine.h"
#include "weft/communication/comm/flight_recorder.h"
#include "weft/communication/comm/heap.h"
#include "weft/communication/comm/message_box.h"
#include "weft/communication/comm/metrics.h"
#include "weft/communication/comm/metrics_file.h"
#include "weft/communication/comm/pair_operation.h"
#include "weft/communication/comm/runner.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

// Per-process state of a job, shared by all its communicators: data for `weft doctor`, and the heap
// of allocate(). Different threads may use different communicators at once, so each has its own
// recorder.
struct Membership {
  std::shared_ptr<transport::Job> job;
  std::mutex mutex;
  std::vector<std::weak_ptr<const FlightRecorder>> recorders;  // of its communicators
  std::vector<std::shared_ptr<Metrics>> metrics;
  Tallies retired = {};  // counts of destroyed communicators
  bool takes_times = false;

  std::shared_ptr<FlightRecorder> add_recorder();
  std::vector<Flight> read_flights();  // of all recorders, oldest first
  // add_metrics() makes the counters of another communicator. read_metrics() returns the counts of
  // all communicators, including destroyed ones, and enables timing from then on.
  std::shared_ptr<Metrics> add_metrics();
  RankMetrics read_metrics();
  std::mutex heap_mutex;
  Heap heap;
  std::map<std::int32_t, transport::Segment> heaps;  // of this machine's ranks, by job rank
  std::optional<Error> no_heap;                      // why there is no heap
  std::unique_ptr<MetricsFile> metrics_file;         // last member: reads the others until destroyed
};

// Every rank maps the heaps of all ranks of its machine. Collective over the job.
Status share_heaps(Membership& membership);

inline constexpr std::uint64_t kWorld = 1;  // the group of all ranks

struct Decision {
  Runner* runner = nullptr;
  std::string algorithm;
  std::string why;
  double seconds = 0;  // predicted
};

struct Communicator::State {
  ~State();
  // Stops work on other threads. Must not run on the job's watcher thread, which it waits for.
  void close();

  // Checks a call, numbers it and returns its runner. One thread at a time, except for sends.
  Result<Runner*> route(const Call& call, std::uint64_t& number);
  Result<Runner*> route_send(const Call& call);
  Status check_call(const Call& call);
  bool is_checked(const Call& call) const;  // equals the last valid call but for its buffers
  MessageBox& messages();                   // opened on first use
  // Chooses how to run a call. Opens connections on first use, which is collective: all ranks must
  // call it in the same order.
  Result<const Decision*> decide(const Call& call, std::uint64_t number);
  // Whether the named algorithm can run calls of this kind.
  Status check_algorithm(std::string_view algorithm, Kind kind, std::int32_t root) const;
  Result<Runner*> runner_of(const std::string& algorithm, const Call& call,
                            std::optional<bool> in_place = {});
  Result<Runner*> runner_of(std::shared_ptr<const collective::Program> program, Priority priority);
  // Opens a pair on first use, which blocks until the peer does too. It runs on its own thread, so
  // that it does not delay sends to and receives from other ranks, in whatever order the ranks
  // start them.
  Runner* pair_with(std::int32_t other);
  void apply_installed(std::uint64_t number);
  void forget_decisions();
  Result<std::unique_ptr<transport::Endpoint>> make_endpoint(const std::vector<std::int32_t>& of,
                                                             std::uint64_t group) const;
  void hear_of(const transport::Death& death);

  std::shared_ptr<Membership> membership;
  std::shared_ptr<FlightRecorder> recorder;
  std::vector<std::int32_t> members;  // job ranks
  std::int32_t rank = 0;
  std::uint64_t id = 0;
  Options options;
  TransportKind transport = TransportKind::shm;
  std::int32_t hosts = 1;
  ChoiceTable table;

  std::unique_ptr<DirectGroup> direct;
  std::unique_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<Source> direct_source, endpoint_source;
  // By requested algorithm, and whether in place.
  std::map<std::pair<std::optional<DirectAlgorithm>, std::optional<bool>>, std::unique_ptr<Runner>>
      direct_runners;

  struct OpenProgram {
    std::unique_ptr<ReadyProgram> ready;
    std::unique_ptr<Runner> runner;
  };
  std::map<std::pair<std::shared_ptr<const collective::Program>, Priority>, OpenProgram> programs;
  struct OpenPair {
    std::unique_ptr<Pair> pair;
    std::unique_ptr<Runner> runner;
  };
  std::map<std::int32_t, OpenPair> pairs;  // by peer rank
  std::vector<std::thread> openers;        // one per pair

  // Cached decisions by kind, size, root, priority and name. Cleared when a program is installed or
  // another algorithm is requested.
  struct Question {
    Kind kind;
    Priority priority;
    NamedAlgorithm algorithm;
    std::int32_t root;
    std::int64_t bytes;
    bool uneven;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct QuestionHash {
    std::size_t operator()(const Question& question) const;
  };
  std::unordered_map<Question, Decision, QuestionHash> decisions;
  std::pair<Question, const Decision*> last_decision = {};
  std::vector<Installed> installed;  // newest last
  std::vector<std::string> named;    // by NamedAlgorithm::number - 1
  Call checked;
  std::int64_t checked_input = 0, checked_output = 0;  // its sizes in bytes

  std::shared_ptr<Agreement> agreement;
  std::shared_ptr<Engine> engine;
  std::uint64_t death_listener = 0;
  std::uint64_t splits = 0, shrinks = 0;

  // With several calling threads: `calling` serializes the numbering of collectives, `sending`
  // guards what sends open.
  std::mutex calling, sending;
  std::mutex opening_messages;
  std::shared_ptr<MessageBox> box;
};

// Opens the resources that `members` share. Collective over them.
Result<std::shared_ptr<Communicator::State>> open_group(std::shared_ptr<Membership> membership,
                                                        std::vector<std::int32_t> members, std::uint64_t id,
                                                        const Options& options);

}  // namespace weft::comm
