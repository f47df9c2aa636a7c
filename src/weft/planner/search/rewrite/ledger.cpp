#include "weft/planner/search/rewrite/ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"

namespace weft::search {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr int kDeepestView = 16;    // nested views followed; deeper ones count as unchanged
constexpr double kRounding = 1e-9;  // well above the error of summing costs in another order

}  // namespace

bool Price::is_below(const Price& other) const {
  const double tolerance = kRounding * std::max(seconds, other.seconds);
  if (seconds < other.seconds - tolerance) return true;
  return seconds <= other.seconds + tolerance && nodes < other.nodes;
}

Ledger::Ledger(const rule::Draft& draft, const Pricing& pricing, std::int64_t& priced)
    : draft_(draft), pricing_(pricing), priced_(priced), to_scratch_(draft.graph(), scratch_) {
  // Topological order, so each node is evaluated once.
  entries_.resize(draft_.graph().node_count());
  for (const plan::NodeId node : draft.nodes()) set(node, judge(node));
}

void Ledger::follow(const rule::Change& change) {
  marks_.push_back({journal_.size(), price_, sum_of_marks_});
  std::vector<plan::NodeId> waiting = change.removed;
  waiting.insert(waiting.end(), change.added.begin(), change.added.end());
  waiting.insert(waiting.end(), change.touched.begin(), change.touched.end());
  settle(std::move(waiting));
}

void Ledger::back() {
  const Mark mark = marks_.back();
  marks_.pop_back();
  while (journal_.size() > mark.journal) {
    entries_[journal_.back().node.value] = journal_.back().entry;
    journal_.pop_back();
  }
  price_ = mark.price;
  sum_of_marks_ = mark.marks;
}

std::uint64_t Ledger::fingerprint() const {
  Hasher hasher;
  hasher.number(sum_of_marks_);
  for (const plan::Output& output : draft_.outputs()) hasher.number(output.value.value);
  return hasher.digest().high;
}

void Ledger::set(plan::NodeId node, const Entry& after) {
  Entry& entry = entries_[node.value];
  price_.seconds += after.seconds - entry.seconds;
  price_.nodes += static_cast<std::int64_t>(after.runs) - static_cast<std::int64_t>(entry.runs);
  sum_of_marks_ += after.mark - entry.mark;
  entry = after;
}

// Propagates changes to readers until nothing changes. The plan is acyclic, so this terminates.
void Ledger::settle(std::vector<plan::NodeId> waiting) {
  if (entries_.size() < draft_.graph().node_count()) entries_.resize(draft_.graph().node_count());
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const plan::NodeId node = waiting[next];
    const Entry before = entries_[node.value];
    const Entry after = judge(node);
    if (before != after) {
      journal_.push_back({node, before});
      set(node, after);
    }
    const plan::Node& about = draft_.graph().node(node);
    if (!draft_.alive(node) || (before.runs == after.runs && !is_seen_through(*about.op))) continue;
    for (std::size_t k = 0; k < about.result_count; ++k)
      for (const plan::NodeId reader : draft_.readers(draft_.graph().result(node, k)))
        waiting.push_back(reader);
  }
}

Ledger::Entry Ledger::judge(plan::NodeId node) {
  if (!draft_.alive(node)) return {};
  const bool runs = draft_.graph().node(node).op == &ops::input() ||
                    std::ranges::any_of(draft_.inputs(node), [&](plan::ValueId input) {
                      return entries_[draft_.graph().value(input).producer.value].runs;
                    });
  Hasher hasher;
  hasher.number(node.value);
  for (const plan::ValueId input : draft_.inputs(node)) hasher.number(input.value);
  return {runs ? seconds_now(node) : 0, runs, hasher.digest().high};
}

double Ledger::seconds_now(plan::NodeId node) {
  if (!reads_as_made(node)) return seconds_rewired(node);
  if (as_made_.size() <= node.value) as_made_.resize(draft_.graph().node_count(), kUnknown);
  double& known = as_made_[node.value];
  if (std::isnan(known)) {
    known = pricing_.seconds(draft_.graph().view(node));
    ++priced_;
  }
  return known;
}

// Whether the node, and the views it reads through, still have their original operands.
bool Ledger::reads_as_made(plan::NodeId node, int depth) const {
  if (depth > kDeepestView) return true;
  const plan::Node& made = draft_.graph().node(node);
  const std::span<const plan::ValueId> inputs = draft_.inputs(node);
  if (!std::ranges::equal(inputs, made.inputs)) return false;
  return std::ranges::all_of(inputs, [&](plan::ValueId input) {
    const plan::NodeId producer = draft_.graph().value(input).producer;
    return !is_seen_through(*draft_.graph().node(producer).op) || reads_as_made(producer, depth + 1);
  });
}

double Ledger::seconds_rewired(plan::NodeId node) {
  Hasher hasher;
  feed_operands(hasher, node, 0);
  const auto [known, is_new] = rewired_.try_emplace(hasher.digest(), 0.0);
  if (!is_new) return known->second;
  std::vector<plan::ValueId> inputs;
  for (const plan::ValueId input : draft_.inputs(node)) inputs.push_back(rebuilt(input, 0));
  const plan::NodeId copy = to_scratch_.node(node, inputs).value();
  ++priced_;
  return known->second = pricing_.seconds(scratch_.view(copy));
}

// Hashes the node and, through views, its operands.
void Ledger::feed_operands(Hasher& hasher, plan::NodeId node, int depth) const {
  hasher.number(node.value);
  for (const plan::ValueId input : draft_.inputs(node)) {
    const plan::Value& value = draft_.graph().value(input);
    if (depth < kDeepestView && is_seen_through(*draft_.graph().node(value.producer).op)) {
      feed_operands(hasher, value.producer, depth + 1);
    } else {
      hasher.number(std::numeric_limits<std::uint64_t>::max() - value.type.value);
    }
  }
}

plan::ValueId Ledger::rebuilt(plan::ValueId value, int depth) {
  const plan::Value& source = draft_.graph().value(value);
  if (depth < kDeepestView && is_seen_through(*draft_.graph().node(source.producer).op)) {
    std::vector<plan::ValueId> inputs;
    for (const plan::ValueId input : draft_.inputs(source.producer))
      inputs.push_back(rebuilt(input, depth + 1));
    return scratch_.result(to_scratch_.node(source.producer, inputs).value(), source.result);
  }
  const auto [leaf, is_new] = leaves_.try_emplace(source.type.value);
  if (is_new) leaf->second = ops::add_input(scratch_, "operand", to_scratch_.type(source.type)).value();
  return leaf->second;
}

}  // namespace weft::search
