#include "weft/runtime/run/complaints.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace weft::run {

struct Complaints::Board {
  std::atomic<std::int32_t> next{0};
};

// New shared memory is zero, which means an empty slot.
struct Complaints::Slot {
  std::atomic<std::int32_t> place{0};  // order of failure, from 1; 0: none
  Fault fault = Fault::world;
  std::array<char, 2048> message = {};
  std::array<char, 512> hint = {};
};

namespace {

static_assert(std::atomic<std::int32_t>::is_always_lock_free, "shared between processes");

template <std::size_t N>
void copy_text(const std::string& from, std::array<char, N>& to) {
  const std::size_t bytes = std::min(from.size(), N - 1);
  std::memcpy(to.data(), from.data(), bytes);
  to[bytes] = '\0';
}

}  // namespace

std::size_t Complaints::bytes_for(std::int32_t ranks) {
  static_assert(sizeof(Board) % alignof(Slot) == 0);
  return sizeof(Board) + sizeof(Slot) * static_cast<std::size_t>(ranks);
}

Status Complaints::map(int descriptor) {
  void* const found = mmap(nullptr, bytes_for(ranks_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (found == MAP_FAILED)
    return environment_error(fmt::format("cannot create shared memory for ranks: {}", std::strerror(errno)));
  board_ = static_cast<Board*>(found);
  return {};
}

Result<Complaints> Complaints::make(std::int32_t ranks) {
  Complaints made;
  made.ranks_ = ranks;
  made.descriptor_ = memfd_create("weft complaints", MFD_CLOEXEC);
  if (made.descriptor_ < 0 || ftruncate(made.descriptor_, static_cast<off_t>(bytes_for(ranks))) != 0)
    return environment_error(fmt::format("cannot create shared memory for ranks: {}", std::strerror(errno)));
  WEFT_TRY_STATUS(made.map(made.descriptor_));
  return made;
}

Result<Complaints> Complaints::open(int descriptor, std::int32_t ranks) {
  Complaints opened;
  opened.ranks_ = ranks;
  WEFT_TRY_STATUS(opened.map(descriptor));
  return opened;
}

Complaints::Complaints(Complaints&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      ranks_(other.ranks_),
      board_(std::exchange(other.board_, nullptr)) {}

Complaints::~Complaints() {
  if (board_ != nullptr) munmap(board_, bytes_for(ranks_));
  if (descriptor_ >= 0) close(descriptor_);
}

Complaints::Slot& Complaints::slot(std::int32_t rank) const {
  return reinterpret_cast<Slot*>(board_ + 1)[rank];
}

void Complaints::write(std::int32_t rank, const Error& error) {
  Slot& mine = slot(rank);
  mine.fault = error.fault;
  copy_text(error.message, mine.message);
  copy_text(error.hint, mine.hint);
  mine.place.store(board_->next.fetch_add(1) + 1, std::memory_order_release);
}

bool Complaints::has(std::int32_t rank) const {
  return slot(rank).place.load(std::memory_order_acquire) != 0;
}

std::optional<RankFailure> Complaints::first() const {
  std::optional<RankFailure> found;
  std::int32_t earliest = 0;
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    const Slot& each = slot(rank);
    const std::int32_t place = each.place.load(std::memory_order_acquire);
    if (place == 0 || (found && place > earliest)) continue;
    earliest = place;
    found =
        RankFailure{.rank = rank, .error = {each.fault, each.message.data(), each.hint.data(), {}, nullptr}};
  }
  return found;
}

}  // namespace weft::run
