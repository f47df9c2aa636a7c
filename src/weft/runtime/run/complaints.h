// weft/runtime/run/complaints.h -- the errors of ranks on this machine, in memory that all of them can write.
//
//   starter    Complaints::make(4) ──fd──▶ each rank    Complaints::open(fd, 4)      one slot per rank
//
// Included by the files of run/ only.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::run {

class Complaints {
 public:
  static Result<Complaints> make(std::int32_t ranks);
  // Opens memory made by the starter process; the descriptor stays with the calling code.
  static Result<Complaints> open(int descriptor, std::int32_t ranks);

  Complaints(Complaints&& other) noexcept;
  Complaints& operator=(Complaints&&) = delete;
  ~Complaints();

  int descriptor() const { return descriptor_; }  // to pass to ranks; closes on exec

  void write(std::int32_t rank, const Error& error);
  bool has(std::int32_t rank) const;
  std::optional<RankFailure> first() const;  // the earliest

 private:
  struct Board;
  struct Slot;

  Complaints() = default;
  static std::size_t bytes_for(std::int32_t ranks);
  Status map(int descriptor);
  Slot& slot(std::int32_t rank) const;

  int descriptor_ = -1;  // if this process owns it
  std::int32_t ranks_ = 0;
  Board* board_ = nullptr;
};

}  // namespace weft::run
