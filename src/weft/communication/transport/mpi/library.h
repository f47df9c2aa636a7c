// weft/communication/transport/mpi/library.h -- a running MPI: tagged messages, with one thread
// inside MPI at a time.
//
//   auto lock = library.lock();
//   library.receive(memory, size, from, tag, request);     // and later, with the lock again:
//   if (library.test(request).done) ...
//
// One lock serializes all calls, so MPI_THREAD_SERIALIZED suffices: some builds lack
// MPI_THREAD_MULTIPLE, and others become slower with it. A program that initializes MPI itself must
// request at least SERIALIZED, or MULTIPLE if it calls MPI concurrently with Weft.
//
// MPI progresses long messages only inside MPI calls, and a sending rank may compute for a long
// time. So a thread enters MPI once per millisecond.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/mpi/table.h"

namespace weft::transport::mpi {

inline constexpr std::int32_t kJobTag = 0;  // connections use the others

class Library {
 public:
  // The MPI of this process, which is initialized on the first call and finalized at exit (it
  // cannot be restarted). Waits for all launched ranks, as MPI_Init does, and at exit as
  // MPI_Finalize does.
  static Result<std::shared_ptr<Library>> load();
  // Uses the given table.
  static Result<std::shared_ptr<Library>> start(const WeftMpiTable& table);
  ~Library();

  std::string_view name() const { return table_.library; }
  std::int32_t rank() const { return rank_; }
  std::int32_t ranks() const { return ranks_; }

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // REQUIRES for all functions below: the lock is held. A returned string is MPI's error message;
  // empty on success.
  //
  // Synchronous: completes when the receiver has matched the message.
  std::string send(const void* bytes, std::size_t size, std::int32_t to, std::int32_t tag,
                   WeftMpiRequest& request);
  std::string receive(void* bytes, std::size_t room, std::int32_t from, std::int32_t tag,
                      WeftMpiRequest& request);
  void cancel(WeftMpiRequest& request);  // for receives

  struct Outcome {
    bool done = false;
    std::size_t bytes = 0;  // of a received message
    std::string why;        // error message; a failed request is done
  };
  Outcome test(WeftMpiRequest& request);

  struct Arrival {
    std::int32_t from = -1;  // negative: none
    std::int32_t tag = 0;
    std::size_t bytes = 0;
  };
  Arrival probe(std::int32_t tag);

  // Reserves `count` tags for connections into this rank and returns the first. Tags are never
  // reused: a late message of an old connection must not be taken for one of a new. Fails when MPI
  // has no tags left.
  Result<std::int32_t> reserve_tags(std::int32_t count);

  // Keeps the buffer of an abandoned send until MPI no longer reads it.
  void outlive(WeftMpiRequest request, std::unique_ptr<std::byte[]> memory);

 private:
  struct Orphan {
    WeftMpiRequest request;
    std::unique_ptr<std::byte[]> memory;
  };

  explicit Library(const WeftMpiTable& table) : table_(table) {}
  std::string explain(int code) const;
  void reap_orphans();
  void discard_unexpected();
  void progress_loop(std::stop_token stop);

  const WeftMpiTable table_;
  std::int32_t rank_ = 0, ranks_ = 1, most_tag_ = 0, next_tag_ = kJobTag + 1;
  std::mutex mutex_;
  std::vector<Orphan> orphans_;
  std::optional<Orphan> unwanted_;  // a message received only to be discarded
  std::condition_variable_any stopping_;
  std::jthread mover_;
};

}  // namespace weft::transport::mpi
