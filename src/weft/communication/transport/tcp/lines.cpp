#include "weft/communication/transport/tcp/lines.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft::transport::tcp {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr nanoseconds kLooking{50'000};  // spinning on the sockets, a system call each time
constexpr nanoseconds kAlone{10'000};    // how long a spinning thread keeps its core
// Spinning that did not pay is retried now and then.
constexpr std::int32_t kMostLuck = 8, kWaitsPerTry = 16;
// Most waits are short, and polling many connections costs more than a few: those without a pending
// request are added later.
constexpr nanoseconds kFewAtFirst{100'000};
constexpr nanoseconds kLeftoverGrace{1'000'000};  // before the thread does what callers usually do
constexpr std::chrono::seconds kLeftoverFarewell{1};

template <class Line>
void take_off(std::vector<std::shared_ptr<Line>>& lines, const std::shared_ptr<Line>& line) {
  std::erase(lines, line);
}

int poll_for(std::vector<pollfd>& polled, nanoseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
  return ::ppoll(polled.data(), polled.size(), &time, nullptr);
}

}  // namespace

// A poll set. It owns what it polls: a connection closed meanwhile keeps its descriptor until the
// poll is over.
struct Lines::Watch {
  std::vector<pollfd> polled;
  std::vector<std::shared_ptr<Sender>> senders;      // the first entries of `polled`
  std::vector<std::shared_ptr<Receiver>> receivers;  // the next entries; the bell is last, if present
  std::vector<std::shared_ptr<Receiver>> near;       // not polled: reading is as cheap as polling
  bool whole = true;                                 // Scope::all would add nothing
};

class Lines::Out final : public Outgoing {
 public:
  Out(std::shared_ptr<Lines> lines, std::shared_ptr<Sender> sender)
      : lines_(std::move(lines)), sender_(std::move(sender)) {}
  ~Out() override {
    const std::lock_guard lock(lines_->mutex_);
    take_off(lines_->senders_, sender_);
  }

  void set_label(std::uint64_t label) override {
    const std::lock_guard lock(lines_->mutex_);
    sender_->set_label(label);
  }
  std::byte* room(std::size_t bytes) override {
    const std::lock_guard lock(lines_->mutex_);
    std::byte* const place = sender_->room(bytes);
    lines_->note(sender_->fault());
    return place;
  }
  void send() override {
    const std::lock_guard lock(lines_->mutex_);
    sender_->send();
    lines_->note(sender_->fault());
    if (sender_->has_leftover()) lines_->note_leftover(sender_);
  }
  bool send_from(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(lines_->mutex_);
    const bool sent = sender_->send_from(bytes);
    lines_->note(sender_->fault());
    return sent;
  }

 private:
  const std::shared_ptr<Lines> lines_;
  const std::shared_ptr<Sender> sender_;
};

class Lines::In final : public Incoming {
 public:
  In(std::shared_ptr<Lines> lines, std::shared_ptr<Receiver> receiver)
      : lines_(std::move(lines)), receiver_(std::move(receiver)) {}
  ~In() override {
    const std::lock_guard lock(lines_->mutex_);
    take_off(lines_->receivers_, receiver_);
  }

  void set_label(std::uint64_t label) override {
    const std::lock_guard lock(lines_->mutex_);
    receiver_->set_label(label);
  }
  const std::byte* front(std::size_t bytes) override {
    const std::lock_guard lock(lines_->mutex_);
    const std::byte* const message = receiver_->front(bytes);
    lines_->note(receiver_->fault());
    return message;
  }
  void pop() override {
    const std::lock_guard lock(lines_->mutex_);
    receiver_->pop();
  }
  bool receive_into(std::span<std::byte> target) override {
    const std::lock_guard lock(lines_->mutex_);
    const bool received = receiver_->receive_into(target);
    lines_->note(receiver_->fault());
    return received;
  }

 private:
  const std::shared_ptr<Lines> lines_;
  const std::shared_ptr<Receiver> receiver_;
};

Result<std::shared_ptr<Lines>> Lines::create(const Patience& patience, Socket bell) {
  if (!bell) bell = Socket(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return socket_error("cannot make an event descriptor", errno);
  return std::shared_ptr<Lines>(new Lines(patience, std::move(bell)));
}

Lines::~Lines() {
  if (!leftover_thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    give_up_ = Clock::now() + kLeftoverFarewell;
  }
  leftover_work_.notify_all();
  leftover_thread_.join();
}

std::unique_ptr<Outgoing> Lines::add(std::unique_ptr<Sender> sender) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<Out>(shared_from_this(), senders_.emplace_back(std::move(sender)));
}

std::unique_ptr<Incoming> Lines::add(std::unique_ptr<Receiver> receiver) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<In>(shared_from_this(), receivers_.emplace_back(std::move(receiver)));
}

Lines::Watch Lines::watch(Scope scope) {
  Watch watch;
  const bool unasked = scope == Scope::look_all || scope == Scope::all;
  const std::lock_guard lock(mutex_);
  for (const auto& sender : senders_)
    if (sender->armed() || sender->has_leftover()) {
      watch.polled.push_back({sender->descriptor(), POLLOUT, 0});
      watch.senders.push_back(sender);
    }
  for (const auto& receiver : receivers_)
    if (scope == Scope::look && receiver->reads_ahead()) {
      watch.near.push_back(receiver);
    } else if (receiver->armed() || (unasked && receiver->can_drain())) {
      watch.polled.push_back({receiver->descriptor(), POLLIN, 0});
      watch.receivers.push_back(receiver);
    } else if (receiver->can_drain()) {
      watch.whole = false;
    }
  if (scope == Scope::armed || scope == Scope::all) watch.polled.push_back({bell_.descriptor(), POLLIN, 0});
  return watch;
}

bool Lines::look(Watch& watch, std::uint32_t seen, nanoseconds limit) {
  if (signal() != seen) return true;
  if (!watch.near.empty()) read_ahead(watch);
  if (!watch.polled.empty() && poll_for(watch.polled, limit) > 0) handle(watch);
  return signal() != seen;
}

void Lines::read_ahead(const Watch& watch) {
  const std::lock_guard lock(mutex_);
  for (const auto& receiver : watch.near) {
    if (!receiver->reads_ahead() || !receiver->read_ahead()) continue;
    receiver->disarm();
    signal_.fetch_add(1);
  }
}

void Lines::handle(const Watch& watch) {
  const std::lock_guard lock(mutex_);
  bool happened = false;
  for (std::size_t i = 0; i < watch.senders.size(); ++i) {
    if (watch.polled[i].revents == 0) continue;
    Sender& sender = *watch.senders[i];
    happened |= sender.armed();
    sender.flush();
    sender.disarm();
    note(sender.fault());
  }
  for (std::size_t i = 0; i < watch.receivers.size(); ++i) {
    if (watch.polled[watch.senders.size() + i].revents == 0) continue;
    Receiver& receiver = *watch.receivers[i];
    happened |= receiver.armed();
    receiver.disarm();
    receiver.drain();
    note(receiver.fault());
  }
  // The last sleeper resets the bell. An earlier one must not: it would take the ring from the
  // others. A left-over ring wakes the next sleeper, which finds nothing and resets it.
  if (watch.polled.size() > watch.senders.size() + watch.receivers.size() &&
      watch.polled.back().revents != 0) {
    happened = true;
    if (sleepers_.load() == 1) silence();
  }
  if (happened) signal_.fetch_add(1);
}

// Ranks with a core each spin; with fewer cores they yield. A rank that spins in vain yields too:
// the awaited rank may need this very core. The kernel places threads that wake each other on one
// core, and separates them only while both run.
void Lines::wait(std::uint32_t seen, nanoseconds patience) {
  const auto begin = Clock::now();
  const auto until = begin + std::clamp(patience, nanoseconds(0), nanoseconds(std::chrono::hours(24)));
  const bool yields = patience_.spins == 0;
  const auto end = std::min(until, begin + (yields ? patience_.yields : kLooking));
  const std::int32_t luck = luck_.load(std::memory_order_relaxed);
  if (begin < end && yields_return(begin) &&
      (yields || luck > 0 || vain_spins_.fetch_add(1, std::memory_order_relaxed) % kWaitsPerTry == 0)) {
    Watch watched = watch(Scope::look);
    bool few = true;
    for (auto now = begin; now < end && yields_return(now); now = Clock::now()) {
      if (few && now - begin > kFewAtFirst) {
        watched = watch(Scope::look_all);
        few = false;
      }
      if (yields || now - begin > kAlone) yield_core();
      if (look(watched, seen, nanoseconds(0))) {
        luck_.store(std::min(luck + 1, kMostLuck), std::memory_order_relaxed);
        return;
      }
    }
    luck_.store(std::max(luck - 1, 0), std::memory_order_relaxed);
  }
  sleep(seen, until);
}

void Lines::sleep(std::uint32_t seen, Clock::time_point until) {
  {
    const std::lock_guard lock(mutex_);
    sleepers_.fetch_add(1);
  }
  // If there is no time to sleep, poll all connections.
  auto now = Clock::now();
  bool woken = false;
  for (auto scope = until - now > kFewAtFirst ? Scope::armed : Scope::all; !woken; scope = Scope::all) {
    Watch lines = watch(scope);
    woken = look(lines, seen, lines.whole ? std::max<nanoseconds>(until - now, nanoseconds(0)) : kFewAtFirst);
    now = Clock::now();
    if (lines.whole && now >= until) break;
  }
  const std::lock_guard lock(mutex_);
  // The last sleeper resets a ring meant for threads that had already seen the signal.
  if (sleepers_.fetch_sub(1) == 1 && rung_.exchange(false)) silence();
}

void Lines::wake() {
  // Either the sleeper sees the new signal before it sleeps, or this thread sees the sleeper.
  signal_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  rung_.store(true);
  ::eventfd_write(bell_.descriptor(), 1);
}

void Lines::silence() {
  eventfd_t rings;
  ::eventfd_read(bell_.descriptor(), &rings);
}

std::optional<WireFault> Lines::fault() {
  if (!faulty_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Lines::note(const std::optional<WireFault>& fault) {
  if (!fault || fault_) return;
  fault_ = fault;
  faulty_.store(true, std::memory_order_release);
  wake();
}

void Lines::note_leftover(const std::shared_ptr<Sender>& sender) {
  if (std::ranges::find(leftovers_, sender) == leftovers_.end()) leftovers_.push_back(sender);
  any_leftover_.store(true, std::memory_order_relaxed);
  if (!leftover_thread_.joinable()) leftover_thread_ = std::thread([this] { send_leftovers(); });
  leftover_work_.notify_all();
}

bool Lines::progress() {
  if (!any_leftover_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  return flush_leftovers();
}

bool Lines::flush_leftovers() {
  const auto is_done = [this](const std::shared_ptr<Sender>& sender) {
    sender->flush();
    note(sender->fault());
    return !sender->has_leftover();
  };
  const bool moved = std::erase_if(leftovers_, is_done) > 0;
  any_leftover_.store(!leftovers_.empty(), std::memory_order_relaxed);
  return moved;
}

void Lines::send_leftovers() {
  std::unique_lock lock(mutex_);
  for (;;) {
    leftover_work_.wait(lock, [this] { return give_up_ || !leftovers_.empty(); });
    leftover_work_.wait_for(lock, kLeftoverGrace, [this] { return give_up_.has_value(); });
    flush_leftovers();
    if (give_up_ && (leftovers_.empty() || Clock::now() >= *give_up_)) return;
    if (leftovers_.empty()) continue;
    Watch watch;
    for (const auto& sender : leftovers_) {
      watch.polled.push_back({sender->descriptor(), POLLOUT, 0});
      watch.senders.push_back(sender);
    }
    lock.unlock();
    if (poll_for(watch.polled, std::chrono::milliseconds(20)) > 0) handle(watch);
    lock.lock();
  }
}

}  // namespace weft::transport::tcp
