// fake_mpi.h -- an MPI whose ranks are threads of the test: implements only the table of
// transport/mpi/table.h.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "weft/communication/transport/mpi/table.h"

namespace weft::transport::mpi {

class FakeMpi {
 public:
  explicit FakeMpi(int ranks) : nodes_(static_cast<std::size_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) nodes_[static_cast<std::size_t>(r)] = {this, r, {}, {}};
  }

  WeftMpiTable table(int rank) {
    return {
        .version = kWeftMpiVersion,
        .context = &nodes_[static_cast<std::size_t>(rank)],
        .library = "a fake MPI",
        .start = start,
        .finish = [](void*) {},
        .send = send,
        .receive = receive,
        .test = test,
        .cancel = cancel,
        .probe = probe,
        .barrier = barrier,
        .describe = [](void*, int code, char* text,
                       std::size_t room) { std::strncpy(text, code == kRefused ? "refused" : "?", room); },
        .abort = [](void*, int) {}};
  }

  // Faults that apply from now on. Each is for one test.
  void flip_a_byte() {
    with([](FakeMpi& mpi) { mpi.flipping_ = true; });
  }
  void refuse_sends() {
    with([](FakeMpi& mpi) { mpi.refusing_ = true; });
  }
  void allow_tags(int most) { most_tag_ = most; }
  int unreceived() {
    const std::scoped_lock lock(mutex_);
    int count = 0;
    for (const Node& node : nodes_) count += static_cast<int>(node.came.size());
    return count;
  }

 private:
  static constexpr int kRefused = 7;

  struct Message {
    int from, tag;
    const void* bytes;
    std::int64_t size;
    std::uint64_t request;
  };
  struct Posted {
    int from, tag;
    void* bytes;
    std::uint64_t request;
  };
  struct Node {
    FakeMpi* mpi = nullptr;
    int rank = 0;
    std::deque<Message> came;  // arrived but not received
    std::deque<Posted> posted;
  };
  struct State {
    bool done = false;
    std::int64_t size = 0;
  };

  template <class Change>
  void with(Change change) {
    const std::scoped_lock lock(mutex_);
    change(*this);
  }

  static Node& of(void* context) { return *static_cast<Node*>(context); }

  WeftMpiRequest make_request() {
    requests_[++last_request_] = {};
    return {last_request_};
  }

  void deliver(const Message& message, const Posted& posted) {
    if (message.size > 0) std::memcpy(posted.bytes, message.bytes, static_cast<std::size_t>(message.size));
    if (flipping_ && message.tag != 0) static_cast<char*>(posted.bytes)[message.size - 1] ^= 1;
    requests_[message.request] = {true, 0};
    requests_[posted.request] = {true, message.size};
  }

  static int start(void* context, int* rank, int* ranks, int* most_tag) {
    *rank = of(context).rank;
    *ranks = static_cast<int>(of(context).mpi->nodes_.size());
    *most_tag = of(context).mpi->most_tag_;
    return 0;
  }

  static int send(void* context, const void* bytes, std::int64_t size, int to, int tag,
                  WeftMpiRequest* request) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    if (mpi.refusing_) return kRefused;
    *request = mpi.make_request();
    const Message message{of(context).rank, tag, bytes, size, request->handle};
    Node& receiver = mpi.nodes_[static_cast<std::size_t>(to)];
    const auto match =
        std::find_if(receiver.posted.begin(), receiver.posted.end(),
                     [&](const Posted& posted) { return posted.from == message.from && posted.tag == tag; });
    if (match == receiver.posted.end()) {
      receiver.came.push_back(message);
    } else {
      mpi.deliver(message, *match);
      receiver.posted.erase(match);
    }
    return 0;
  }

  static int receive(void* context, void* bytes, std::int64_t, int from, int tag, WeftMpiRequest* request) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    *request = mpi.make_request();
    const Posted posted{from, tag, bytes, request->handle};
    auto& came = of(context).came;
    const auto match = std::find_if(came.begin(), came.end(), [&](const Message& message) {
      return message.from == from && message.tag == tag;
    });
    if (match == came.end()) {
      of(context).posted.push_back(posted);
    } else {
      mpi.deliver(*match, posted);
      came.erase(match);
    }
    return 0;
  }

  static int test(void* context, WeftMpiRequest* request, int* done, std::int64_t* size) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    const State state = mpi.requests_.at(request->handle);
    *done = state.done ? 1 : 0;
    *size = state.size;
    if (state.done) mpi.requests_.erase(request->handle);
    return 0;
  }

  static void cancel(void* context, WeftMpiRequest* request) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    std::erase_if(of(context).posted,
                  [&](const Posted& posted) { return posted.request == request->handle; });
    mpi.requests_.erase(request->handle);
  }

  static int probe(void* context, int tag, int* found, int* from, int* its_tag, std::int64_t* size) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    *found = 0;
    for (const Message& message : of(context).came) {
      if (tag != kWeftMpiAnyTag && message.tag != tag) continue;
      *found = 1;
      *from = message.from;
      *its_tag = message.tag;
      *size = message.size;
      break;
    }
    return 0;
  }

  static int barrier(void* context, WeftMpiRequest* request) {
    FakeMpi& mpi = *of(context).mpi;
    const std::scoped_lock lock(mpi.mutex_);
    *request = mpi.make_request();
    mpi.waiting_.push_back(request->handle);
    if (mpi.waiting_.size() == mpi.nodes_.size()) {
      for (const std::uint64_t waiting : mpi.waiting_) mpi.requests_[waiting] = {true, 0};
      mpi.waiting_.clear();
    }
    return 0;
  }

  std::mutex mutex_;
  std::vector<Node> nodes_;
  std::map<std::uint64_t, State> requests_;
  std::uint64_t last_request_ = 0;
  std::vector<std::uint64_t> waiting_;  // in the barrier
  int most_tag_ = 32767;
  bool flipping_ = false, refusing_ = false;
};

}  // namespace weft::transport::mpi
