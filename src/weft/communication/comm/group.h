// weft/communication/comm/group.h -- what a communicator is made of. Not for users: see communicator.h.
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

// The process's part in a job, shared by all its communicators: what doctor reads, what allocate() gives.
// Threads may use one communicator each at the same time, so each has a recorder of its own.
struct Membership {
  std::shared_ptr<transport::Job> job;
  std::mutex mutex;
  std::vector<std::weak_ptr<const FlightRecorder>> recorders;  // of its communicators
  std::vector<std::shared_ptr<Metrics>> metrics;
  Tallies retired = {};  // of communicators that are gone
  bool takes_times = false;

  std::shared_ptr<FlightRecorder> add_recorder();
  std::vector<Flight> read_flights();  // of all of them, oldest first
  // Counters of one more communicator; and what all of them have counted, those that are gone among them.
  // Who reads them wants times, too: these are taken from then on.
  std::shared_ptr<Metrics> add_metrics();
  RankMetrics read_metrics();
  std::mutex heap_mutex;
  Heap heap;
  std::map<std::int32_t, transport::Segment> heaps;  // of the ranks of this machine, by job rank
  std::optional<Error> no_heap;                      // why there is none
  std::unique_ptr<MetricsFile> metrics_file;         // last: it reads the rest until it is gone
};

// Every rank's heap, mapped by all of this machine. Collective over the job.
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
  // Ends what runs on other threads. Not on the job's watcher thread, which it waits for.
  void close();

  // Checks a call, gives it its number and says what runs it. Of several threads one at a time, but for sends.
  Result<Runner*> route(const Call& call, std::uint64_t& number);
  Result<Runner*> route_send(const Call& call);
  Status check_call(const Call& call);
  bool is_checked(const Call& call) const;  // like the last one that was found good
  MessageBox& messages();                   // opened by the first who asks
  // Where a call goes. Opens wires where it is the first to need them, which is collective; so all ranks ask
  // in the same order.
  Result<const Decision*> decide(const Call& call, std::uint64_t number);
  // Whether a call of this kind can be run by that name.
  Status check_algorithm(std::string_view algorithm, Kind kind, std::int32_t root) const;
  Result<Runner*> runner_of(const std::string& algorithm, const Call& call,
                            std::optional<bool> in_place = {});
  Result<Runner*> runner_of(std::shared_ptr<const collective::Program> program, Priority priority);
  // Opens a pair the first time, which takes until the other side comes: on a thread of its own, so that sends to
  // and receives from others are not kept waiting, in whatever order the ranks start them.
  Runner* pair_with(std::int32_t other);
  void apply_news(std::uint64_t number);
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
  // By the way that is wished for, and whether in place.
  std::map<std::pair<std::optional<DirectWay>, std::optional<bool>>, std::unique_ptr<Runner>> direct_runners;

  struct OpenProgram {
    std::unique_ptr<ReadyProgram> ready;
    std::unique_ptr<Runner> runner;
  };
  std::map<std::pair<std::shared_ptr<const collective::Program>, Priority>, OpenProgram> programs;
  struct OpenPair {
    std::unique_ptr<Pair> pair;
    std::unique_ptr<Runner> runner;
  };
  std::map<std::int32_t, OpenPair> pairs;  // by the other
  std::vector<std::thread> openers;        // of pairs, one each

  // What was decided for a kind, size, root, priority and name; forgotten when a program is installed and when
  // another algorithm is asked for.
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
  std::vector<std::string> named;    // by number of a NamedAlgorithm, less one
  Call checked;
  std::int64_t checked_input = 0, checked_output = 0;  // bytes of it

  std::shared_ptr<Agreement> agreement;
  std::shared_ptr<Engine> engine;
  std::uint64_t death_listener = 0;
  std::uint64_t splits = 0, shrinks = 0;

  // Where several threads call: collectives take their numbers one after another. `sending` is for what sends open.
  std::mutex calling, sending;
  std::mutex opening_messages;
  std::shared_ptr<MessageBox> box;
};

// Collective over `members`: opens what they share.
Result<std::shared_ptr<Communicator::State>> open_group(std::shared_ptr<Membership> membership,
                                                        std::vector<std::int32_t> members, std::uint64_t id,
                                                        const Options& options);

}  // namespace weft::comm
