#include "weft/runtime/measure/bench_round.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/runtime/measure/bench_batch.h"

namespace weft::measure {
namespace {

using measure::BenchRow;
using measure::BenchSample;

constexpr int kMostStarts = 2;            // failed restarts of a group
constexpr int kMostEnds = 2;              // crashes of a group caused by one variant
constexpr std::size_t kMostVariants = 3;  // kept after probing
constexpr double kNearBest = 1.5;         // if at most this much slower than the best
constexpr double kFirstLook = 0.002;      // seconds of a probing batch
// Warm-up before the first batch. Libraries initialize in their first calls: Open MPI and MPICH
// connect and register memory, Weft tries copy methods.
constexpr double kSettlingSeconds = 0.4;
constexpr std::int64_t kSettlingCalls = 100;
constexpr std::int64_t kWarmUps = 2;  // before each batch, because caches hold another library's data
// A variant may hang, as Gloo's blocking sockets do when two ranks send each other more than their
// buffers hold. Once another variant has finished, the timeout is kFarBehind times its time, but at
// least kShortestLimit seconds.
constexpr double kFarBehind = 100;
constexpr std::int64_t kShortestLimit = 3;

std::int64_t settling_calls(double seconds) {
  const double fit = kSettlingSeconds / std::max(seconds, 1e-7);
  return std::clamp(static_cast<std::int64_t>(fit), kWarmUps, kSettlingCalls);
}

// The names that nccl-tests uses.
std::string field_name(device::ElementType type) {
  switch (type) {
    case device::ElementType::f64: return "double";
    case device::ElementType::f32: return "float";
    case device::ElementType::f16: return "half";
    case device::ElementType::bf16: return "bfloat16";
    case device::ElementType::i8: return "int8";
    case device::ElementType::i32: return "int32";
    case device::ElementType::i64: return "int64";
    case device::ElementType::u8: return "uint8";
    case device::ElementType::i16: return "int16";
    case device::ElementType::u16: return "uint16";
    case device::ElementType::u32: return "uint32";
    case device::ElementType::u64: return "uint64";
  }
  return {};
}

std::string key(const BenchContender& contender, const BenchTurn& turn, std::string_view variant) {
  return fmt::format("{} {} {} {}", contender.peer, contender.setting, collective::name(turn.kind), variant);
}

}  // namespace

BenchRound::BenchRound(BenchContenders who, std::int32_t ranks)
    : who_(std::move(who)), ranks_(ranks), failed_starts_(who_.groups.size(), 0) {
  std::vector<std::string> failures(who_.groups.size());
  for (std::size_t i = 0; i < who_.groups.size(); ++i) {
    auto started = BenchGroup::start(who_.groups[i], ranks);
    if (!started.ok()) failures[i] = started.error().message;
    groups_.push_back(started.ok() ? std::move(started).value() : nullptr);
  }
  std::erase_if(who_.contenders, [&](const BenchContender& contender) {
    const std::string& failure = failures[contender.group];
    if (!failure.empty())
      who_.left_out.push_back(fmt::format("{} {}: {}", contender.peer, contender.setting, failure));
    return !failure.empty();
  });
}

std::vector<std::pair<std::string, std::string>> BenchRound::versions() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const BenchContender& contender : who_.contenders)
    all.emplace_back(contender.peer, groups_[contender.group]->version());
  return all;
}

void BenchRound::revive(std::size_t group) {
  if (groups_[group]->alive() || failed_starts_[group] >= kMostStarts) return;
  auto started = BenchGroup::start(who_.groups[group], ranks_);
  if (started.ok())
    groups_[group] = std::move(started).value();
  else
    ++failed_starts_[group];
}

Result<BenchAnswer> BenchRound::take_turn(const BenchContender& contender, BenchTurn turn) {
  turn.allocated = contender.allocated;
  BenchGroup& group = *groups_[contender.group];
  Result<BenchAnswer> answer = group.turn(turn);
  if (!group.alive()) ++ends_[key(contender, turn, turn.variant)];
  return answer;
}

Result<double> BenchRound::estimate(const BenchContender& contender, const BenchTurn& like,
                                    const std::string& variant) {
  BenchTurn turn = like;
  turn.variant = variant;
  turn.iterations = 1;
  turn.warmup = kWarmUps;
  WEFT_TRY(first, take_turn(contender, turn));
  if (first.wrong > 0)
    return environment_error(fmt::format("{} gave {} wrong elements", variant, first.wrong));
  if (first.seconds >= kFirstLook) return first.seconds;
  turn.iterations =
      std::max<std::int64_t>(2, static_cast<std::int64_t>(kFirstLook / std::max(first.seconds, 1e-7)));
  WEFT_TRY(second, take_turn(contender, turn));
  return second.seconds;
}

// Estimates every variant and keeps the best.
BenchRound::Entry BenchRound::probe(const BenchContender& contender, const BenchTurn& like) {
  Entry entry;
  revive(contender.group);
  const auto variants = groups_[contender.group]->variants(like.kind);
  if (!variants.ok()) {
    entry.failure = variants.error().message;
    return entry;
  }
  BenchTurn look = like;
  for (const std::string& variant : *variants) {
    if (ends_[key(contender, like, variant)] >= kMostEnds) continue;
    revive(contender.group);
    const Result<double> seconds = estimate(contender, look, variant);
    if (!seconds.ok()) {
      entry.failure = seconds.error().message;
      continue;
    }
    entry.attempts.push_back({variant, calls_per_batch(*seconds), *seconds});
    const auto enough = static_cast<std::int64_t>(std::min(*seconds * kFarBehind, 1e6));
    look.limit = std::min(look.limit, std::max(enough, kShortestLimit));
  }
  revive(contender.group);  // the last variant may have crashed it
  if (entry.attempts.empty()) {
    if (entry.failure.empty()) entry.failure = "it failed too often";
    return entry;
  }
  entry.failure.clear();
  std::ranges::sort(entry.attempts, {}, &Attempt::estimate);
  const double near = entry.attempts.front().estimate * kNearBest;
  std::erase_if(entry.attempts, [&](const Attempt& one) { return one.estimate > near; });
  if (entry.attempts.size() > kMostVariants) entry.attempts.resize(kMostVariants);
  return entry;
}

std::vector<BenchRow> BenchRound::measure(const BenchTurn& like, std::int32_t repeats) {
  BenchTurn turn = like;
  turn.warmup = kWarmUps;
  // Keeps buffers between turns unless those of all libraries together would fill the memory.
  const double held =
      2.0 * static_cast<double>(turn.bytes) * ranks_ * static_cast<double>(who_.contenders.size());
  const auto available = static_cast<double>(available_memory());
  turn.keep = available <= 0 || held < available / 2;

  std::vector<Entry> entries;
  for (const BenchContender& contender : who_.contenders) entries.push_back(probe(contender, turn));
  const std::size_t sides = entries.size();
  for (std::int32_t repeat = 0; repeat < repeats; ++repeat) {
    // Rotates the order, so that no library always follows the same one.
    for (std::size_t k = 0; k < sides; ++k) {
      const std::size_t i = (k + static_cast<std::size_t>(repeat)) % sides;
      for (Attempt& attempt : entries[i].attempts) {
        turn.variant = attempt.variant;
        turn.iterations = attempt.iterations;
        turn.warmup = repeat == 0 ? settling_calls(attempt.estimate) : kWarmUps;
        const Result<BenchAnswer> answer = take_turn(who_.contenders[i], turn);
        if (!answer.ok()) {
          entries[i].failure = answer.error().message;
          break;
        }
        attempt.samples.push_back({answer->seconds, answer->processor_seconds, answer->wrong});
        // Corrects a disturbed estimate, but limits the change so that one fast batch does not make
        // the next too long.
        attempt.iterations =
            std::clamp(calls_per_batch(answer->seconds), std::max<std::int64_t>(attempt.iterations / 4, 1),
                       attempt.iterations * 4);
      }
      if (!entries[i].failure.empty()) entries[i].attempts.clear();
    }
  }
  std::vector<BenchRow> rows;
  for (std::size_t i = 0; i < sides; ++i) rows.push_back(row_of(who_.contenders[i], entries[i], turn));
  return rows;
}

BenchRow BenchRound::row_of(const BenchContender& contender, const Entry& entry,
                            const BenchTurn& like) const {
  BenchRow plain;
  plain.kind = like.kind;
  plain.ranks = ranks_;
  plain.bytes = message_bytes(like, ranks_);
  plain.count = block_elements(like, ranks_);
  plain.type = field_name(like.type);
  plain.in_place = like.in_place;
  plain.peer = contender.peer;
  plain.setting = contender.setting;
  plain.failure = entry.failure;
  // The fastest variant with correct results; a wrong one only if all are wrong.
  std::optional<BenchRow> best;
  for (const Attempt& attempt : entry.attempts) {
    BenchRow row = plain;
    measure::summarize(attempt.samples, row);
    if (attempt.variant != "plain")
      row.setting += fmt::format("{}{}", row.setting.empty() ? "" : " ", attempt.variant);
    const auto rank = [](const BenchRow& one) { return std::pair(one.wrong > 0, one.seconds); };
    if (!best || rank(row) < rank(*best)) best = std::move(row);
  }
  return best.value_or(plain);
}

}  // namespace weft::measure
