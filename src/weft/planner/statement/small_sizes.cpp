#include "weft/planner/statement/small_sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "weft/predict/cost/plan_cost.h"

namespace weft::planner {
namespace {

using language::SizeOverride;
using language::syntax::ExpressionKind;

// Candidate sizes. The first is the smallest that three ranks can slice.
constexpr std::int64_t kBecomes[] = {3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 14,
                                     15, 16, 18, 20, 24, 28, 32, 40, 48, 64};
constexpr std::int64_t kMostNodesAsked = 120'000;  // over all models bound during the search
constexpr std::int64_t kNodesUntilRefused = 20;    // charged for a model that is refused
constexpr int kMostRounds = 4;

// Penalties of a choice of sizes, in doublings of its work. Lower is better.
constexpr double kOneElement = 5, kEqualSizes = 2.5, kAllEven = 5, kEven = 0.5, kAsBefore = 6;

class SmallSizes {
 public:
  SmallSizes(const Knowledge& state, const Prepared& prepared, const SmallSizesWanted& wanted)
      : state_(state), prepared_(prepared), wanted_(wanted) {}

  std::optional<std::vector<SizeOverride>> run() {
    find_free();
    if (free_.empty()) return {};
    score_ = ask(chosen_);
    for (int round = 0; round < kMostRounds && asked_ < kMostNodesAsked; ++round) {
      const double before = score_;
      for (std::size_t i = 0; i < free_.size(); ++i) improve(i);
      if (score_ == before) break;
    }
    if (!std::isfinite(score_)) return {};
    std::vector<SizeOverride> sizes;
    for (std::size_t i = 0; i < free_.size(); ++i) sizes.push_back({free_[i], chosen_[i], {}});
    return sizes;
  }

 private:
  // Finds the sizes given as numbers, except those that only set the number of repetitions of a
  // layer.
  void find_free() {
    auto whole = bind_again(state_, prepared_, wanted_.mode);
    if (!whole.ok()) return;
    std::set<std::string, std::less<>> follow;
    const auto model = state_.catalog.models.find(prepared_.run->model.text);
    if (model != state_.catalog.models.end())
      for (const language::syntax::Size& size : model->second.statement->body.sizes)
        if (size.value != nullptr && size.value->kind != ExpressionKind::literal)
          follow.emplace(size.name.text);
    for (const SizeOverride& given : prepared_.overrides) follow.erase(given.name);
    const std::map<std::string_view, std::int64_t> extents = extents_of(whole->graph);
    std::size_t nodes = whole->graph.node_count();
    for (const language::BoundSize& size : prepared_.sizes) {
      if (follow.contains(size.name)) continue;
      if (!extents.contains(size.name)) {
        // One repetition is the minimum; two show whether it is a number of repetitions.
        const bool once = size.size == 1;
        thin_.push_back({size.name, once ? 2 : 1, {}});
        const auto bound = bind_again(state_, prepared_, wanted_.mode, thin_);
        if (bound.ok() && (once ? bound->graph.node_count() > nodes : bound->graph.node_count() < nodes)) {
          if (once)
            thin_.pop_back();
          else
            nodes = bound->graph.node_count();
          continue;
        }
        thin_.pop_back();
      }
      free_.push_back(size.name);
      chosen_.push_back(size.size);
    }
  }

  // By index: its size, or the smallest of several.
  static std::map<std::string_view, std::int64_t> extents_of(const plan::Graph& graph) {
    std::map<std::string_view, std::int64_t> extents;
    for (std::size_t v = 0; v < graph.value_count(); ++v)
      for (const plan::Dim& dim : graph.type(plan::ValueId(v)).dims) {
        const auto [at, is_new] = extents.try_emplace(graph.text(dim.index), dim.size);
        if (!is_new) at->second = std::min(at->second, dim.size);
      }
    return extents;
  }

  // Equal sizes can change the plan: a position table as long as the sequence is not gathered.
  bool is_alike(const plan::Graph& graph) {
    std::vector<const plan::Operator*> operators;
    for (std::size_t n = 0; n < graph.node_count(); ++n) operators.push_back(graph.node(plan::NodeId(n)).op);
    if (operators_.empty()) operators_ = operators;
    return operators == operators_;
  }

  struct Answer {
    double score = std::numeric_limits<double>::infinity();
    std::int64_t nodes = 0;
  };

  // Rounds repeat questions if other sizes have not changed. Cached answers count towards the limit
  // too, so that the result does not depend on the cache.
  double ask(const std::vector<std::int64_t>& sizes) {
    const auto [at, is_new] = heard_.try_emplace(sizes);
    if (is_new) at->second.score = score_of(sizes, at->second.nodes);
    asked_ += at->second.nodes;
    return at->second.score;
  }

  // Infinite if the model refuses the sizes, or becomes another model with them.
  double score_of(const std::vector<std::int64_t>& sizes, std::int64_t& nodes) {
    std::vector<SizeOverride> asked = thin_;
    for (std::size_t i = 0; i < free_.size(); ++i) asked.push_back({free_[i], sizes[i], {}});
    const auto bound = bind_again(state_, prepared_, wanted_.mode, asked);
    nodes = bound.ok() ? static_cast<std::int64_t>(bound->graph.node_count()) : kNodesUntilRefused;
    if (!bound.ok() || !is_alike(bound->graph)) return std::numeric_limits<double>::infinity();
    double work = cost::plan_flops(bound->graph);  // plus memory, for tables that are only looked up in
    for (std::size_t v = 0; v < bound->graph.value_count(); ++v)
      work += static_cast<double>(bound->graph.type(plan::ValueId(v)).elements());
    double score = std::log2(work + 1);
    std::multiset<std::int64_t> seen;
    for (const auto& [index, size] : extents_of(bound->graph)) {
      const auto least = wanted_.at_least.find(std::string(index));
      if (least != wanted_.at_least.end() && size < least->second)
        return std::numeric_limits<double>::infinity();
      if (size == 1) score += kOneElement;
      score += kEqualSizes * static_cast<double>(seen.count(size));
      seen.insert(size);
    }
    if (std::ranges::none_of(sizes, [](std::int64_t size) { return size % 2 != 0 && size % 3 != 0; }))
      score += kAllEven;
    for (const std::int64_t size : sizes)
      if (size % 2 == 0 && size % 3 == 0) score += kEven;
    for (const SizeOverride& before : wanted_.other_than)
      for (std::size_t i = 0; i < free_.size(); ++i)
        if (free_[i] == before.name && sizes[i] == before.size) score += kAsBefore;
    return score;
  }

  void improve(std::size_t i) {
    std::vector<std::int64_t> best = chosen_;
    const auto look_at = [&](const std::vector<std::int64_t>& sizes) {
      if (asked_ >= kMostNodesAsked) return std::numeric_limits<double>::infinity();
      const double score = ask(sizes);
      if (score < score_) {
        score_ = score;
        best = sizes;
      }
      return score;
    };
    for (const std::int64_t becomes : kBecomes) {
      const std::int64_t size =
          wanted_.multiple == 1 ? becomes : (becomes - kBecomes[0] + 1) * wanted_.multiple;
      if (size == chosen_[i]) continue;
      std::vector<std::int64_t> sizes = chosen_;
      sizes[i] = size;
      if (std::isfinite(look_at(sizes))) continue;
      // Refused alone: another size may have to change in proportion.
      for (std::size_t other = 0; other < free_.size(); ++other) {
        if (other == i || chosen_[other] * size % chosen_[i] != 0) continue;
        std::vector<std::int64_t> both = sizes;
        both[other] = chosen_[other] * size / chosen_[i];
        look_at(both);
      }
    }
    chosen_ = std::move(best);
  }

  const Knowledge& state_;
  const Prepared& prepared_;
  const SmallSizesWanted& wanted_;
  std::vector<std::string> free_;
  std::vector<std::int64_t> chosen_;  // one per free size
  std::vector<SizeOverride> thin_;
  std::vector<const plan::Operator*> operators_;  // of the thin model, at its original sizes
  std::map<std::vector<std::int64_t>, Answer> heard_;
  double score_ = std::numeric_limits<double>::infinity();
  std::int64_t asked_ = 0;
};

}  // namespace

std::optional<std::vector<SizeOverride>> find_small_sizes(const Knowledge& state, const Prepared& prepared,
                                                          const SmallSizesWanted& wanted) {
  return SmallSizes(state, prepared, wanted).run();
}

}  // namespace weft::planner
