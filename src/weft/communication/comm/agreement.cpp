#include "weft/communication/comm/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/communication/comm/engine.h"
#include "weft/communication/transport/doorbell.h"

namespace weft::comm {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

// A message is three numbers followed by text.
using Numbers = std::array<std::uint64_t, 3>;

std::string pack(std::span<const std::uint64_t> numbers, std::string_view text) {
  Numbers all = {};
  std::copy(numbers.begin(), numbers.end(), all.begin());
  std::string bytes(sizeof(all), '\0');
  std::memcpy(bytes.data(), all.data(), sizeof(all));
  bytes += text;
  return bytes;
}

// A rank without the program would send messages that no rank expects.
Result<std::shared_ptr<const collective::Program>> read_program(std::string_view text, std::size_t ranks) {
  WEFT_TRY(program, collective::parse_program(text));
  if (program.ranks.size() != ranks) {
    return user_error(
        fmt::format("the program is for {} ranks, the group has {}", program.ranks.size(), ranks));
  }
  const collective::Report report = collective::check(program);
  if (report.finding)
    return user_error(fmt::format("the program is incorrect: {}", collective::print(*report.finding)));
  return std::make_shared<const collective::Program>(std::move(program));
}

}  // namespace

Agreement::Agreement(std::shared_ptr<transport::Job> job, std::vector<std::int32_t> members,
                     std::int32_t rank, std::uint64_t group, const FlightRecorder& recorder)
    : job_(std::move(job)), members_(std::move(members)), rank_(rank), group_(group), recorder_(recorder) {}

std::shared_ptr<Agreement> Agreement::create(std::shared_ptr<transport::Job> job,
                                             std::vector<std::int32_t> members, std::int32_t rank,
                                             std::uint64_t group, const FlightRecorder& recorder) {
  return std::shared_ptr<Agreement>(new Agreement(std::move(job), std::move(members), rank, group, recorder));
}

void Agreement::begin(std::shared_ptr<Engine> engine) {
  engine_ = std::move(engine);
  job_->handle(group_,
               [weak = weak_from_this()](std::int32_t from, std::uint64_t number, std::string_view bytes) {
                 if (const auto self = weak.lock()) self->receive(from, static_cast<Message>(number), bytes);
               });
}

void Agreement::end() { job_->handle(group_, nullptr); }

void Agreement::tell(std::int32_t rank, Message message, std::span<const std::uint64_t> numbers,
                     std::string_view text) {
  const std::string bytes = pack(numbers, text);
  if (rank == rank_) {
    receive(members_[static_cast<std::size_t>(rank)], message, bytes);
  } else {
    job_->send(members_[static_cast<std::size_t>(rank)], {group_, static_cast<std::uint64_t>(message)},
               bytes);
  }
}

void Agreement::tell_all(Message message, std::span<const std::uint64_t> numbers, std::string_view text) {
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(members_.size()); ++rank) {
    tell(rank, message, numbers, text);
  }
}

void Agreement::receive(std::int32_t from, Message message, std::string_view bytes) {
  Numbers numbers;
  const auto sender = std::find(members_.begin(), members_.end(), from);
  if (bytes.size() < sizeof(numbers) || sender == members_.end()) return;
  std::memcpy(numbers.data(), bytes.data(), sizeof(numbers));
  const std::string_view text = bytes.substr(sizeof(numbers));
  const auto rank = static_cast<std::int32_t>(sender - members_.begin());
  switch (message) {
    case Message::stuck: answer_stuck(rank, numbers[0], numbers[1], text); break;
    case Message::broken:
      engine_->fail(environment_error(std::string(text)),
                    static_cast<Cause>(std::min<std::uint64_t>(numbers[0], 4)));
      break;
    case Message::prepare: prepare(rank, numbers[0], text); break;
    case Message::commit: commit(numbers[0], numbers[1]); break;
    case Message::abandon: release(numbers[0]); break;
    case Message::ready:
    case Message::can_cancel: {
      const std::lock_guard lock(mutex_);
      if (!vote_ || vote_->number != numbers[0] || vote_->missing.erase(rank) == 0) break;
      vote_->most = std::max(vote_->most, numbers[1]);
      if (!text.empty() && vote_->refusal.empty()) vote_->refusal = fmt::format("rank {}: {}", rank, text);
      changed_.notify_all();
      break;
    }
    case Message::ask_cancel: {
      // Hold first, then check: a call that starts in between is then seen as started.
      {
        const std::lock_guard lock(mutex_);
        held_.insert(numbers[1]);
        held_count_.store(held_.size());
      }
      const bool can = engine_->is_queued(numbers[1]) || numbers[1] >= calls();
      tell(rank, Message::can_cancel, std::array{numbers[0]}, can ? "" : "it has started");
      break;
    }
    case Message::do_cancel: {
      {
        const std::lock_guard lock(mutex_);
        cancelled_.emplace(numbers[1], rank);
      }
      withdraw_if_cancelled(numbers[1]);
      break;
    }
    case Message::leave_call: {
      const std::lock_guard lock(mutex_);
      held_.erase(numbers[1]);
      held_count_.store(held_.size());
      engine_->look_again();
      break;
    }
  }
}

void Agreement::ask_about(const Call& call, std::uint64_t number) {
  const std::string what = describe(call);
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(members_.size()); ++rank) {
    if (rank != rank_) tell(rank, Message::stuck, std::array{number, fingerprint(call)}, what);
  }
}

void Agreement::answer_stuck(std::int32_t from, std::uint64_t number, std::uint64_t print,
                             std::string_view what) {
  for (const Flight& flight : recorder_.read()) {
    if (flight.group != group_ || flight.call != number || flight.kind == Kind::send) continue;
    const Call own = call_of(flight);
    if ((flight.fingerprint != 0 ? flight.fingerprint : fingerprint(own)) == print) return;
    tell_all(Message::broken, {},
             fmt::format("calls do not match: rank {} called {}, rank {} called {} (call {} of the group)",
                         from, what, rank_, describe(own), number));
    return;
  }
}

void Agreement::tell_broken(const Error& error, Cause cause) {
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(members_.size()); ++rank) {
    if (rank != rank_)
      tell(rank, Message::broken, std::array{static_cast<std::uint64_t>(cause)}, error.message);
  }
}

std::uint64_t Agreement::next_call() {
  // Other ranks must see the count before this rank checks whether to hold. An atomic
  // read-modify-write would guarantee that, but it would also wait until the stores of the previous
  // call have reached the other cores. So the rank that requests the hold issues a process-wide
  // memory barrier instead.
  std::uint64_t number = 0;
  if (transport::kProcessBarriers) {
    number = next_call_.load(std::memory_order_relaxed);
    next_call_.store(number + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    number = next_call_.fetch_add(1);
  }
  if (number >= hold_at_.load()) {
    std::unique_lock lock(mutex_);
    while (number >= hold_at_.load() && !engine_->failure())
      changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return number;
}

void Agreement::prepare(std::int32_t from, std::uint64_t proposal, std::string_view text) {
  const auto program = read_program(text, members_.size());
  std::string refusal = program.ok() ? "" : program.error().message;
  std::uint64_t at = 0;
  {
    const std::lock_guard lock(mutex_);
    if (pending_ != 0) refusal = "another program is being installed";
    if (refusal.empty()) {
      pending_ = proposal;
      pending_program_ = *program;
      // A calling thread is either counted in `at` or sees that it must hold.
      hold_at_.store(0);
      if (transport::kProcessBarriers) transport::barrier_on_all_processors();
      at = next_call_.load();
      hold_at_.store(at + kWindow);
      changed_.notify_all();
    }
  }
  tell(from, Message::ready, std::array{proposal, at}, refusal);
}

void Agreement::commit(std::uint64_t proposal, std::uint64_t from_call) {
  {
    const std::lock_guard lock(mutex_);
    if (pending_ != proposal) return;
    news_.push_back({pending_program_, from_call});
    news_from_.store(std::min(news_from_.load(), from_call));
  }
  release(proposal);
}

void Agreement::release(std::uint64_t proposal) {
  const std::lock_guard lock(mutex_);
  if (pending_ != proposal) return;
  pending_ = 0;
  pending_program_.reset();
  hold_at_.store(kNever);
  changed_.notify_all();
}

std::shared_ptr<Agreement::Vote> Agreement::open_vote() {
  auto vote = std::make_shared<Vote>();
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(members_.size()); ++rank)
    vote->missing.insert(rank);
  const std::lock_guard lock(mutex_);
  if (vote_) return nullptr;
  // Unique across ranks, and never 0.
  vote->number = ++votes_ * members_.size() + static_cast<std::uint64_t>(rank_);
  vote_ = vote;
  return vote;
}

bool Agreement::wait_for_votes(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Vote>& vote) {
  const auto deadline = std::chrono::steady_clock::now() + job_->timeout();
  while (!vote->missing.empty() && !engine_->failure()) {
    if (changed_.wait_until(
            lock, std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(20))) ==
            std::cv_status::timeout &&
        std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
  }
  return vote->missing.empty();
}

Result<std::uint64_t> Agreement::install(const std::string& text) {
  WEFT_TRY(program, read_program(text, members_.size()));
  const auto vote = open_vote();
  if (!vote) return user_error("this rank already has a pending install or cancel");
  const std::uint64_t proposal = vote->number;
  tell_all(Message::prepare, std::array{proposal}, text);
  std::uint64_t from_call = 0;
  std::string refusal;
  {
    std::unique_lock lock(mutex_);
    const bool all = wait_for_votes(lock, vote);
    vote_.reset();
    refusal = all ? vote->refusal : fmt::format("rank {} did not answer", *vote->missing.begin());
    from_call = vote->most + kWindow;
  }
  if (const auto failure = engine_->failure()) return *failure;
  if (!refusal.empty()) {
    tell_all(Message::abandon, std::array{proposal}, "");
    return environment_error(fmt::format("the program was not installed: {}", refusal));
  }
  tell_all(Message::commit, std::array{proposal, from_call}, "");
  return from_call;
}

std::vector<Installed> Agreement::take_installed(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::vector<Installed> due, later;
  for (Installed& installed : news_)
    (installed.from_call <= number ? due : later).push_back(std::move(installed));
  news_ = std::move(later);
  std::uint64_t next = kNever;
  for (const Installed& installed : news_) next = std::min(next, installed.from_call);
  news_from_.store(next);
  return due;
}

bool Agreement::cancel(std::uint64_t number) {
  const auto vote = open_vote();
  if (!vote) return false;
  const std::uint64_t proposal = vote->number;
  tell_all(Message::ask_cancel, std::array{proposal, number}, "");
  bool all = false;
  {
    std::unique_lock lock(mutex_);
    all = wait_for_votes(lock, vote) && vote->refusal.empty();
    vote_.reset();
  }
  tell_all(all ? Message::do_cancel : Message::leave_call, std::array{proposal, number}, "");
  return all;
}

void Agreement::withdraw_if_cancelled(std::uint64_t number) {
  if (!is_held(number)) return;
  std::int32_t by = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = cancelled_.find(number);
    if (found == cancelled_.end()) return;
    by = found->second;
  }
  engine_->withdraw(number, environment_error(fmt::format("cancelled by rank {}: call {}", by, number)));
}

bool Agreement::is_held(std::uint64_t number) const {
  if (held_count_.load() == 0) return false;
  const std::lock_guard lock(mutex_);
  return held_.contains(number);
}

}  // namespace weft::comm
