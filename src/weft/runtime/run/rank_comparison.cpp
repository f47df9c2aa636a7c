#include "weft/runtime/run/rank_comparison.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/communication/transport/rank_names.h"
#include "weft/runtime/run/json_number.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::run {
namespace {

using nlohmann::json;

constexpr std::uint64_t kComparisons = 0x636f6d7061726521;  // a topic group used only here
constexpr std::size_t kMostShown = 200;                     // characters per value

std::string print_word(const RankMessage& word) {
  json made = {{"at", word.at}, {"claims", json::array()}};
  for (const Claim& claim : word.claims)
    made["claims"].push_back({claim.what, claim.value, claim.shown, claim.hint});
  if (word.error)
    made["error"] = {static_cast<int>(word.error->fault), word.error->message, word.error->hint};
  return made.dump(-1, ' ', false, json::error_handler_t::replace);
}

RankMessage read_word(const std::string& text) {
  const json read = json::parse(text);
  RankMessage word;
  word.at = read.at("at");
  for (const json& claim : read.at("claims"))
    word.claims.push_back({claim.at(0), claim.at(1), claim.at(2), claim.at(3)});
  if (read.contains("error")) {
    const json& error = read["error"];
    word.error = Error{read_fault(error.at(0)), error.at(1), error.at(2), {}, nullptr};
  }
  return word;
}

std::string cut(const std::string& value) {
  return value.size() <= kMostShown ? value : value.substr(0, kMostShown) + "...";
}

std::string_view has(const std::vector<std::int32_t>& ranks) { return ranks.size() == 1 ? "has" : "have"; }

}  // namespace

Sides split_by_majority(const std::vector<RankValue>& values) {
  std::map<std::string_view, std::vector<std::int32_t>> groups;
  for (const RankValue& each : values) groups[each.value].push_back(each.rank);
  const auto larger = [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), -a.second.front()) < std::pair(b.second.size(), -b.second.front());
  };
  Sides sides;
  if (groups.empty()) return sides;
  sides.alike = std::ranges::max_element(groups, larger)->second;
  for (const RankValue& each : values)
    if (std::ranges::find(sides.alike, each.rank) == sides.alike.end()) sides.odd.push_back(each.rank);
  return sides;
}

Status compare_messages(const std::vector<RankMessage>& words, std::int32_t rank) {
  using transport::name_ranks;
  const RankMessage& mine = words[static_cast<std::size_t>(rank)];
  if (mine.error) return *mine.error;
  for (const RankMessage& word : words) {
    if (!word.error) continue;
    std::vector<std::int32_t> alike;  // ranks with the same error
    for (std::size_t other = 0; other < words.size(); ++other)
      if (words[other].error && words[other].error->message == word.error->message)
        alike.push_back(static_cast<std::int32_t>(other));
    Error error = *word.error;
    error.message = fmt::format("{}: {}", name_ranks(alike), error.message);
    return error;
  }
  const auto differ = [&](auto value) -> std::optional<Sides> {
    std::vector<RankValue> values;
    for (const RankMessage& word : words)
      values.push_back({static_cast<std::int32_t>(values.size()), value(word)});
    Sides sides = split_by_majority(values);
    if (sides.odd.empty()) return std::nullopt;
    return sides;
  };
  const auto word_of = [&](std::int32_t which) -> const RankMessage& {
    return words[static_cast<std::size_t>(which)];
  };
  if (const auto sides = differ([](const RankMessage& word) { return word.at; }))
    return user_error(fmt::format("{} {} another statement than {}: {}, not {}", name_ranks(sides->odd),
                                  sides->odd.size() == 1 ? "runs" : "run", name_ranks(sides->alike),
                                  cut(word_of(sides->odd.front()).at), cut(word_of(sides->alike.front()).at)),
                      "run the same statements on all ranks of a launcher");
  for (const Claim& claim : mine.claims) {
    const auto value_of = [&](const RankMessage& word) {
      const auto found = std::ranges::find(word.claims, claim.what, &Claim::what);
      return found == word.claims.end() ? std::string() : found->value;
    };
    const auto sides = differ(value_of);
    if (!sides) continue;
    std::string message = fmt::format("{} {} other {} than {}", name_ranks(sides->odd), has(sides->odd),
                                      claim.what, name_ranks(sides->alike));
    if (claim.shown)
      message += fmt::format(": '{}', not '{}'", cut(value_of(word_of(sides->odd.front()))),
                             cut(value_of(word_of(sides->alike.front()))));
    return environment_error(std::move(message), claim.hint);
  }
  return {};
}

RankComparison::RankComparison(std::string at, When when) : at_(std::move(at)) {
  static std::atomic<std::uint64_t> made{0};
  if (when == When::not_at_all || (when == When::joined && !has_joined())) return;
  auto job = launched_job();
  if (!job.ok()) {
    outcome_ = std::move(job).error();
    return;
  }
  if (*job == nullptr) return;
  job_ = *job;
  number_ = made.fetch_add(1) << 32;
  talker_ = std::jthread([this] { talk(); });
}

void RankComparison::talk() {
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job_->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  // An exchange times out with the job, so ranks that are still working report that in time.
  const auto round = std::clamp<std::chrono::milliseconds>(job_->timeout() / 8, std::chrono::milliseconds(20),
                                                           std::chrono::seconds(2));
  for (;;) {
    transport::Parcel mine;
    {
      std::unique_lock lock(mutex_);
      done_.wait_for(lock, round, [&] { return word_.has_value(); });
      mine.bytes = word_.value_or(std::string());
    }
    auto all = job_->exchange(everyone, {kComparisons, number_++}, std::move(mine));
    if (!all.ok()) {
      outcome_ = std::move(all).error();
      return;
    }
    if (std::ranges::any_of(*all, [](const transport::Parcel& parcel) { return parcel.bytes.empty(); }))
      continue;
    try {
      for (const transport::Parcel& parcel : *all) words_.push_back(read_word(parcel.bytes));
    } catch (const json::exception&) {
      outcome_ =
          environment_error("cannot read a message from another rank", "run the same weft on all hosts");
    }
    return;
  }
}

Status RankComparison::end(const Status& mine, std::vector<Claim> claims) {
  if (job_ == nullptr) return mine.ok() ? std::exchange(outcome_, {}) : mine;
  {
    const std::lock_guard lock(mutex_);
    RankMessage word{at_, std::nullopt, std::move(claims)};
    if (!mine.ok()) word.error = mine.error();
    word_ = print_word(word);
  }
  done_.notify_all();
  talker_.join();
  const std::int32_t rank = std::exchange(job_, nullptr)->rank();
  if (!mine.ok()) return mine;
  if (!outcome_.ok()) return std::move(outcome_);
  return compare_messages(words_, rank);
}

RankComparison::~RankComparison() {
  if (job_ != nullptr) (void)end(environment_error("it stopped"));
}

void notify_other_ranks(const Error& error) {
  if (launched_ranks() <= 1 || has_joined()) return;
  (void)RankComparison("no more statements").end(error);
}

}  // namespace weft::run
