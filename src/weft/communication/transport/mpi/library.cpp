#include "weft/communication/transport/mpi/library.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/transport/mpi/plugin.h"

namespace weft::transport::mpi {

Result<std::shared_ptr<Library>> Library::load() {
  static std::mutex mutex;
  static std::shared_ptr<Library> loaded;
  const std::scoped_lock only_one(mutex);
  if (loaded) return loaded;
  WEFT_TRY(table, load_plugin());
  WEFT_TRY(library, start(*table));
  loaded = library;
  // Registered after MPI's own exit handlers, so it runs before them.
  std::atexit([] { loaded.reset(); });
  return library;
}

Result<std::shared_ptr<Library>> Library::start(const WeftMpiTable& table) {
  std::shared_ptr<Library> library(new Library(table));
  if (const int code = table.start(table.context, &library->rank_, &library->ranks_, &library->most_tag_)) {
    return environment_error(
        fmt::format("{} cannot be used: {}", table.library, library->explain(code)),
        "a program that initializes MPI itself must ask for MPI_THREAD_SERIALIZED or more");
  }
  library->mover_ = std::jthread([&moved = *library](std::stop_token stop) { moved.progress_loop(stop); });
  return library;
}

// MPI requires every message to be received before it finalizes, but a rank that leaves in the
// middle, and goodbyes, leave some behind. A send completes when it is received. So: receive
// everything; once this rank's sends are complete, enter a barrier; when the barrier completes, no
// message is left anywhere.
Library::~Library() {
  if (!mover_.joinable()) return;  // never started
  mover_.request_stop();
  mover_.join();
  std::optional<WeftMpiRequest> barrier;
  for (auto nap = std::chrono::microseconds(10);; nap = std::min(2 * nap, std::chrono::microseconds(1000))) {
    discard_unexpected();
    reap_orphans();
    if (barrier && test(*barrier).done) break;
    if (!barrier && orphans_.empty()) {
      if (table_.barrier(table_.context, &barrier.emplace()) != 0) break;
    }
    std::this_thread::sleep_for(nap);
  }
  table_.finish(table_.context);
}

std::string Library::explain(int code) const {
  std::array<char, 512> text{};
  table_.describe(table_.context, code, text.data(), text.size());
  return text[0] != '\0' ? text.data() : fmt::format("error {}", code);
}

std::string Library::send(const void* bytes, std::size_t size, std::int32_t to, std::int32_t tag,
                          WeftMpiRequest& request) {
  const int code = table_.send(table_.context, bytes, static_cast<std::int64_t>(size), to, tag, &request);
  return code == 0 ? std::string() : explain(code);
}

std::string Library::receive(void* bytes, std::size_t room, std::int32_t from, std::int32_t tag,
                             WeftMpiRequest& request) {
  const int code =
      table_.receive(table_.context, bytes, static_cast<std::int64_t>(room), from, tag, &request);
  return code == 0 ? std::string() : explain(code);
}

void Library::cancel(WeftMpiRequest& request) { table_.cancel(table_.context, &request); }

Library::Outcome Library::test(WeftMpiRequest& request) {
  int done = 0;
  std::int64_t bytes = 0;
  if (const int code = table_.test(table_.context, &request, &done, &bytes)) return {true, 0, explain(code)};
  return {done != 0, static_cast<std::size_t>(bytes), {}};
}

Library::Arrival Library::probe(std::int32_t tag) {
  int found = 0;
  Arrival arrival;
  std::int64_t bytes = 0;
  if (table_.probe(table_.context, tag, &found, &arrival.from, &arrival.tag, &bytes) != 0 || found == 0)
    return {};
  arrival.bytes = static_cast<std::size_t>(bytes);
  return arrival;
}

Result<std::int32_t> Library::reserve_tags(std::int32_t count) {
  if (count > most_tag_ - next_tag_) {
    return environment_error(
        fmt::format("{} has no tags left for connections: {} of {} are used, {} more are needed", name(),
                    next_tag_, most_tag_, count),
        "create fewer communicators, or reuse existing ones");
  }
  return std::exchange(next_tag_, next_tag_ + count);
}

void Library::outlive(WeftMpiRequest request, std::unique_ptr<std::byte[]> memory) {
  orphans_.push_back({request, std::move(memory)});
}

void Library::progress_loop(std::stop_token stop) {
  constexpr auto kNap = std::chrono::milliseconds(1);
  std::unique_lock held(mutex_);
  while (!stopping_.wait_for(held, stop, kNap, [&] { return stop.stop_requested(); })) {
    reap_orphans();
    static_cast<void>(probe(kJobTag));
  }
}

void Library::discard_unexpected() {
  for (;;) {
    if (unwanted_ && !test(unwanted_->request).done) return;
    unwanted_.reset();
    const Arrival arrival = probe(kWeftMpiAnyTag);
    if (arrival.from < 0) return;
    Orphan unwanted{{}, std::make_unique_for_overwrite<std::byte[]>(arrival.bytes)};
    if (!receive(unwanted.memory.get(), arrival.bytes, arrival.from, arrival.tag, unwanted.request).empty())
      return;
    unwanted_ = std::move(unwanted);
  }
}

void Library::reap_orphans() {
  std::erase_if(orphans_, [this](Orphan& orphan) { return test(orphan.request).done; });
}

}  // namespace weft::transport::mpi
