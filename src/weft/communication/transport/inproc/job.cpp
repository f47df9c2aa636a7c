#include "weft/communication/transport/inproc/job.h"

#include <thread>
#include <utility>

#include "weft/communication/transport/inproc/room.h"

namespace weft::transport {
namespace inproc {
namespace {

// The room and its watcher thread, which exits with the last job.
class ThreadJobHub {
 public:
  ThreadJobHub(std::int32_t ranks, std::chrono::milliseconds timeout)
      : room_(std::make_shared<Room>(ranks, timeout)), watcher_([room = room_] { room->watch(); }) {}
  ~ThreadJobHub() {
    room_->stop();
    // A handler may release the last job.
    if (watcher_.get_id() == std::this_thread::get_id())
      watcher_.detach();
    else
      watcher_.join();
  }
  ThreadJobHub(const ThreadJobHub&) = delete;
  ThreadJobHub& operator=(const ThreadJobHub&) = delete;

  Room& room() const { return *room_; }

 private:
  std::shared_ptr<Room> room_;
  std::thread watcher_;
};

class ThreadJob final : public Job {
 public:
  ThreadJob(std::shared_ptr<ThreadJobHub> house, std::int32_t rank) : house_(std::move(house)), rank_(rank) {}
  ~ThreadJob() override { leave(); }

  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return room().ranks(); }
  const Member& member(std::int32_t rank) const override { return room().member(rank); }
  std::chrono::milliseconds timeout() const override { return room().timeout(); }

  Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                       Parcel mine) override {
    return room().exchange(rank_, members, topic, std::move(mine));
  }
  void send(std::int32_t to, Topic topic, std::string_view bytes) override {
    room().send(rank_, to, topic, bytes);
  }
  void handle(std::uint64_t group, Handler handler) override {
    room().handle(rank_, group, std::move(handler));
  }

  std::vector<Death> deaths() const override { return room().deaths(rank_); }
  std::uint64_t on_death(DeathListener listener) override {
    return room().on_death(rank_, std::move(listener));
  }
  void forget(std::uint64_t listener) override { room().forget(listener); }

  Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                       Topic topic) override {
    return room().agree(rank_, members, topic);
  }

  void on_doctor_query(std::function<std::string()>) override {}  // threads are inspected with a debugger

  void leave() override { room().end({.rank = rank_, .how = "it said goodbye", .left = true}); }
  void die() { room().end({.rank = rank_, .how = "its thread was killed", .left = false}); }

 private:
  Room& room() const { return house_->room(); }

  std::shared_ptr<ThreadJobHub> house_;
  std::int32_t rank_;
};

}  // namespace

void kill_thread_rank(Job& job) {
  auto* const thread = dynamic_cast<ThreadJob*>(&job);
  WEFT_CHECK(thread != nullptr);
  thread->die();
}

}  // namespace inproc

std::vector<std::unique_ptr<Job>> make_thread_jobs(std::int32_t ranks, std::chrono::milliseconds timeout) {
  const auto house = std::make_shared<inproc::ThreadJobHub>(ranks, timeout);
  std::vector<std::unique_ptr<Job>> jobs;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    jobs.push_back(std::make_unique<inproc::ThreadJob>(house, rank));
  return jobs;
}

}  // namespace weft::transport
