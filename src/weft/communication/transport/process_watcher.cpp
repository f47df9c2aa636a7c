#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "weft/communication/transport/doctor.h"
#include "weft/communication/transport/process_job_state.h"
#include "weft/communication/transport/rank_names.h"

namespace weft::transport {
namespace {

std::string how_it_ended(ControlLink::State state, std::chrono::milliseconds timeout) {
  switch (state) {
    case ControlLink::State::silent: return fmt::format("no heartbeat for {}", print_time(timeout));
    case ControlLink::State::damaged: return "its messages are corrupted";
    case ControlLink::State::overfull: return "it does not read its messages";
    case ControlLink::State::open:
    case ControlLink::State::ended:
    case ControlLink::State::reset: break;
  }
  return "its process ended";
}

}  // namespace

void ProcessJob::watch() {
  sigset_t all;
  ::sigfillset(&all);  // signals go to the application's threads
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);

  Lock lock(mutex_);
  std::vector<pollfd> wanted;
  std::vector<std::int32_t> whose;
  for (;;) {
    call_back(lock);
    if (leaving_ && may_stop()) break;
    wanted.assign({{wake_.descriptor(), POLLIN, 0}, {doctor_.descriptor(), POLLIN, 0}, {launcher_, 0, 0}});
    whose.clear();
    for (std::int32_t rank = 0; rank < ranks(); ++rank) {
      const ControlLink& line = peer(rank).line;
      if (!line) continue;
      wanted.push_back(
          {line.descriptor(), static_cast<short>(line.has_queued() ? POLLIN | POLLOUT : POLLIN), 0});
      whose.push_back(rank);
    }
    const int limit = patience();
    lock.unlock();
    ::poll(wanted.data(), wanted.size(), limit);
    lock.lock();

    // No process would reap or kill this rank any more, and the next job may need its cores.
    if ((wanted[2].revents & (POLLHUP | POLLERR)) != 0) ::kill(::getpid(), SIGKILL);
    std::uint64_t count = 0;
    if (wanted[0].revents != 0) [[maybe_unused]]
      const auto read = ::read(wake_.descriptor(), &count, sizeof count);
    if (wanted[1].revents != 0) answer_doctor(lock);
    // All of them, not only those that poll reported: a link may have broken during a send.
    for (const std::int32_t rank : whose) look_after(rank);
    if (Clock::now() >= say_alive_at_) {
      say_alive_at_ = Clock::now() + timeout_ / 8;
      for (Peer& each : peers_) {
        if (each.line && !each.line.local()) each.line.send(FrameKind::alive, 0, 0, {});
      }
    }
  }
  for (Peer& each : peers_) each.line.close();
  doctor_.close();
}

int ProcessJob::patience() const {
  if (leaving_)
    return tcp::milliseconds_until(std::min(leave_by_, Clock::now() + std::chrono::milliseconds(50)));
  const bool remote =
      std::ranges::any_of(peers_, [](const Peer& each) { return each.line && !each.line.local(); });
  return remote ? tcp::milliseconds_until(say_alive_at_) : -1;
}

// Within a host no sent data is lost. Between hosts a socket that is closed too early may lose its
// last bytes, the goodbye: the other side closes first.
bool ProcessJob::may_stop() {
  if (Clock::now() >= leave_by_) return true;
  bool done = true;
  for (Peer& each : peers_) {
    if (!each.line) continue;
    if (each.line.has_queued()) {
      done = false;
    } else if (!each.line.local()) {
      ::shutdown(each.line.descriptor(), SHUT_WR);
      done = false;
    }
  }
  return done;
}

template <class Call>
void ProcessJob::without_lock(Lock& lock, Call call) {
  ++calls_;
  lock.unlock();
  call();
  lock.lock();
  ++calls_;
  changed_.notify_all();
}

void ProcessJob::call_back(Lock& lock) {
  while (!leaving_ && announced_ < deaths_.size()) {
    const Death death = deaths_[announced_];
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, listener] : listeners_) {
      if (listener.from <= announced_) numbers.push_back(number);
    }
    ++announced_;
    for (const std::uint64_t number : numbers) {
      const auto listener = listeners_.find(number);  // may have been removed meanwhile
      if (listener == listeners_.end()) continue;
      without_lock(lock, [call = listener->second.call, &death] { (*call)(death); });
    }
  }
  while (!leaving_) {
    const auto next = inbox_.next([this](std::uint64_t group) { return handlers_.contains(group); });
    if (!next) return;
    const Inbox::Message& message = next->second;
    without_lock(lock, [call = handlers_.at(next->first), &message] {
      (*call)(message.from, message.number, message.bytes);
    });
  }
}

void ProcessJob::look_after(std::int32_t rank) {
  ControlLink& line = peer(rank).line;
  line.flush();
  for (Frame& frame : line.receive()) {
    take(rank, std::move(frame));
    if (!line) return;  // goodbye received, or this rank was dropped
  }
  if (line.state() == ControlLink::State::open) return;
  // A peer hangs up after it has received our goodbye.
  if (leaving_) return line.close();
  const bool ended = line.state() == ControlLink::State::ended || line.state() == ControlLink::State::reset;
  record_failure({rank, how_it_ended(line.state(), timeout_), false, !ended});
}

void ProcessJob::take(std::int32_t from, Frame frame) {
  const Topic topic{frame.group, frame.number};
  switch (frame.kind) {
    case FrameKind::parcel:
    case FrameKind::message:
      if (!inbox_.put(from, std::move(frame)))
        record_failure({from, "it sends more than the receiver accepts", false, true});
      break;
    case FrameKind::goodbye: record_failure({from, "it left", true}); break;
    case FrameKind::death:
      if (frame.number == static_cast<std::uint64_t>(rank_)) {
        if (!given_up_) given_up_ = frame.bytes;
        for (std::int32_t rank = 0; rank < ranks(); ++rank) {
          if (rank != rank_)
            record_failure({rank, fmt::format("it dropped this rank: {}", *given_up_), false, true});
        }
      } else if (frame.number < static_cast<std::uint64_t>(ranks())) {
        record_failure(
            {static_cast<std::int32_t>(frame.number), std::move(frame.bytes), false, frame.group != 0});
      }
      break;
    case FrameKind::agreement:
      if (auto heard = unpack_agreement(frame.bytes);
          heard && (heard->second.empty() || heard->second.back() < ranks())) {
        post(topic, agreement(topic).hear(from, heard->first, std::move(heard->second)));
      }
      break;
    default: break;  // a heartbeat
  }
  changed_.notify_all();
}

void ProcessJob::record_failure(Death death) {
  Peer& gone = peer(death.rank);
  if (gone.death != nullptr) return;
  // The rank may still be alive: notify it, so that it gives up too. A rank that was itself dropped
  // reports no failures.
  const bool tell = !death.left && !given_up_;
  const Topic topic{death.presumed ? 1U : 0U, static_cast<std::uint64_t>(death.rank)};
  if (tell) gone.line.send(FrameKind::death, topic.group, topic.number, death.how);
  gone.line.close();
  gone.death = &deaths_.emplace_back(std::move(death));
  for (std::int32_t other = 0; other < ranks() && tell; ++other)
    post(other, FrameKind::death, topic, gone.death->how);
  for (auto& [key, agreement] : agreements_)
    post({key.first, key.second}, agreement.note_failure(gone.death->rank));
  changed_.notify_all();
}

std::string ProcessJob::report() const {
  std::string out = fmt::format("rank {} of {}, process {}\n", rank_, ranks(), ::getpid());
  for (const Death& death : deaths_) {
    out += death.left ? fmt::format("  rank {} has left\n", death.rank)
                      : fmt::format("  rank {} is lost: {}\n", death.rank, death.how);
  }
  for (const Waiting& each : waiting_) {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - each.since);
    out += fmt::format("  waits for {} in an exchange for {} (group {}, number {})\n",
                       name_ranks(inbox_.missing(each.members, rank_, each.topic)), print_time(since),
                       each.topic.group, each.topic.number);
  }
  return out;
}

void ProcessJob::answer_doctor(Lock& lock) {
  Result<tcp::Socket> asker = accept_doctor_query(doctor_);
  if (!asker.ok()) doctor_.close();  // otherwise poll would return at once forever
  if (!asker.ok() || !*asker) return;
  std::string text = report();
  if (const auto answer = answer_) without_lock(lock, [&] { text += (*answer)(); });
  answer_doctor_query(std::move(*asker), text);
}

}  // namespace weft::transport
