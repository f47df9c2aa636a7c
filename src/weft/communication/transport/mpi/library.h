// weft/communication/transport/mpi/library.h -- an MPI that runs: messages with tags, one thread inside at a time.
//
//   auto lock = library.lock();
//   library.receive(memory, size, from, tag, request);     // and later, with the lock again:
//   if (library.test(request).done) ...
//
// All calls go through one lock, so MPI_THREAD_SERIALIZED is enough: MPI_THREAD_MULTIPLE is missing in some
// builds and slows down the others. A program that initializes MPI by itself must ask for SERIALIZED at
// least, and for MULTIPLE when it calls MPI while Weft does.
//
// MPI moves long messages only while somebody is inside it, and a rank that sent one may compute for a long
// time: a thread enters MPI once a millisecond.
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

inline constexpr std::int32_t kJobTag = 0;  // wires have the others

class Library {
 public:
  // The MPI of this process, which starts on the first call and ends with the process (it cannot be started
  // twice). Waits, as MPI_Init does, for all ranks that the launcher started; and at the end as MPI_Finalize
  // does.
  static Result<std::shared_ptr<Library>> load();
  // Over a table that the caller has.
  static Result<std::shared_ptr<Library>> start(const WeftMpiTable& table);
  ~Library();

  std::string_view name() const { return table_.library; }
  std::int32_t rank() const { return rank_; }
  std::int32_t ranks() const { return ranks_; }

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // REQUIRES of all that follow: the lock is held. Where a text is answered, it says why MPI refused; empty
  // when it did not.
  //
  // Synchronous: done when the receiver has taken the message.
  std::string send(const void* bytes, std::size_t size, std::int32_t to, std::int32_t tag,
                   WeftMpiRequest& request);
  std::string receive(void* bytes, std::size_t room, std::int32_t from, std::int32_t tag,
                      WeftMpiRequest& request);
  void cancel(WeftMpiRequest& request);  // of a receive

  struct Outcome {
    bool done = false;
    std::size_t bytes = 0;  // of a message received
    std::string why;        // it failed: done as well
  };
  Outcome test(WeftMpiRequest& request);

  struct Arrival {
    std::int32_t from = -1;  // negative: none
    std::int32_t tag = 0;
    std::size_t bytes = 0;
  };
  Arrival probe(std::int32_t tag);

  // The first of `count` tags for wires into this rank. None is given out twice: a late message of an old
  // wire must not be taken for one of a new. Fails when MPI has no more.
  Result<std::int32_t> reserve_tags(std::int32_t count);

  // Keeps the memory of a send whose owner goes until MPI no longer reads it.
  void outlive(WeftMpiRequest request, std::unique_ptr<std::byte[]> memory);

 private:
  struct Orphan {
    WeftMpiRequest request;
    std::unique_ptr<std::byte[]> memory;
  };

  explicit Library(const WeftMpiTable& table) : table_(table) {}
  std::string explain(int code) const;
  void bury_orphans();
  void take_what_nobody_wants();
  void keep_moving(std::stop_token stop);

  const WeftMpiTable table_;
  std::int32_t rank_ = 0, ranks_ = 1, most_tag_ = 0, next_tag_ = kJobTag + 1;
  std::mutex mutex_;
  std::vector<Orphan> orphans_;
  std::optional<Orphan> unwanted_;  // a message that is being received only to be thrown away
  std::condition_variable_any stopping_;
  std::jthread mover_;
};

}  // namespace weft::transport::mpi
