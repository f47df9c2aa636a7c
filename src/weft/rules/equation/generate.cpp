#include "weft/rules/equation/generate.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "weft/rules/equation/enumerate.h"
#include "weft/rules/equation/fingerprint_table.h"
#include "weft/rules/equation/meaning.h"
#include "weft/rules/equation/rank.h"
#include "weft/rules/equation/sieve.h"
#include "weft/rules/equation/term.h"
#include "weft/rules/equation/term_rules.h"

namespace weft::equation {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

std::vector<TypeId> input_types(const OperatorSet& set, Meaning& meaning) {
  std::vector<TypeId> types;
  for (const InputKind& kind : set.inputs) types.push_back(meaning.type_of(kind));
  return types;
}

class Generator final : public TermSink {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options),
        set_(options.operators),
        meaning_(set_),
        types_(input_types(set_, meaning_)),
        terms_(set_, types_),
        draw_(terms_, meaning_, options.seed),
        rewritings_(terms_, meaning_, types_),
        shelf_(terms_, meaning_),
        judge_(options, terms_, rewritings_, generated_) {
    for (std::uint64_t k = 1; k <= kMoreDraws; ++k)
      more_draws_.emplace_back(terms_, meaning_, options.seed + k);
    for (TermId input = 0; input < terms_.inputs(); ++input)
      fingerprints_.push_back(fingerprint(draw_.value(input)));
  }

  Result<Generated> run() {
    WEFT_TRY_STATUS(judge_.prove_commutative());
    for (level_ = 1; level_ <= options_.most_operators; ++level_) {
      last_ = level_ == options_.most_operators;
      table_.start_level();
      run_level();
      for (; table_.has_next_part() && !interrupted(); run_level()) table_.next_part();
      generated_.counts.passes = table_.parts();
      if (interrupted()) return user_error("interrupted");
    }
    judge_.drop_implied_rules();
    for (GeneratedRule& rule : generated_.rules) rule.gain = gain(rule.equation);
    return std::move(generated_);
  }

  void take(std::uint16_t head, std::array<TermId, 2> operands, const Signature& signature) override {
    GenerateCounts& counts = generated_.counts;
    const std::int64_t first_pass = table_.part() == 0;
    counts.graphs += first_pass;
    Term term = terms_.make(head, 0, operands);
    const std::size_t results = signature.results[1] == kNoType ? 1 : 2;
    std::array<TermRules::Effect, 2> effects{};
    bool needed = false;
    for (std::size_t k = 0; k < results; ++k) {
      term.result = static_cast<std::uint8_t>(k);
      term.type = signature.results[k];
      effects[k] = rewritings_.effect(term);
      needed = needed || effects[k] != TermRules::Effect::everywhere;
    }
    if (!needed) {
      counts.pruned_rewritten += first_pass;
      return;
    }
    counts.evaluated += first_pass;
    term.result = 0;
    const auto values = draw_.run(term, signature);
    const std::uint64_t print = fingerprint(values[0]);
    if (results > 1 && first_pass) splits_.push_back({print, head, operands});
    const bool single = results == 1 && terms_.is_closed(term);
    if (single && effects[0] == TermRules::Effect::none && table_.wants(print))
      table_.enter({print, head, term.operands});
    if (!last_) store(term, signature, values);
  }

  void progress(double done) override { tell("enumerate", done); }

 private:
  // Draws beyond the first on which a candidate must agree before it is proven. With a single
  // element under relu, the sides agree by chance in every other draw.
  static constexpr std::uint64_t kMoreDraws = 5;
  // The number of terms per run that are compared with later ones.
  static constexpr std::size_t kMostKept = 8;

  using Entry = FingerprintTable::Entry;
  using Run = FingerprintTable::Run;

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  void tell(std::string_view phase, double done) const {
    if (options_.progress) options_.progress({phase, level_, done});
  }

  std::int64_t bytes() const {
    std::int64_t bytes = terms_.bytes() + draw_.bytes() + table_.bytes();
    for (const Draw& draw : more_draws_) bytes += draw.bytes();
    return bytes;
  }

  void run_level() {
    GenerateCounts& counts = generated_.counts;
    splits_.clear();
    fresh_.clear();
    table_.clear(last_ ? std::max<std::int64_t>(options_.most_bytes - bytes() + table_.bytes(), 0) : -1);
    {
      const Stopwatch watch(counts.enumerate_seconds);
      shelf_.enumerate(level_, last_, *this);
    }
    std::vector<Run> runs;
    {
      const Stopwatch watch(counts.pair_seconds);
      tell("pair", 0);
      for (std::int32_t k = 0; k < level_; ++k)
        for (const TermId id : shelf_.level(static_cast<std::size_t>(k)))
          if (table_.wants(fingerprints_[id]) && terms_.is_closed(id))
            table_.enter({fingerprints_[id], FingerprintTable::kStored, {id, kNoTerm}});
      runs = table_.runs(terms_);
      counts.table_bytes = std::max(counts.table_bytes, bytes());
      tell("pair", 1);
    }
    const Stopwatch watch(counts.prove_seconds);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (k % 16 == 0) tell("prove", static_cast<double>(k) / static_cast<double>(runs.size()));
      if (interrupted()) return;
      judge_run(runs[k]);
    }
    judge_splits();
    tell("prove", 1);
    // Terms of this level that no rule rewrites are the building blocks of the next.
    for (const TermId id : fresh_)
      if (rewritings_.effect(terms_[id]) != TermRules::Effect::everywhere) shelf_.put(id);
  }

  void store(const Term& term, const Signature& signature, std::span<const Lanes> values) {
    TermId id = terms_.add(term, signature.results);
    for (const Lanes& value : values) {
      draw_.keep(id, value);
      fingerprints_.resize(std::max<std::size_t>(fingerprints_.size(), id + 1));
      fingerprints_[id] = fingerprint(value);
      fresh_.push_back(id++);
    }
  }

  // The term of an entry, stored temporarily until forget().
  TermId recall(const Entry& entry) {
    if (entry.head == FingerprintTable::kStored) return entry.operands[0];
    Term term;
    std::array<TypeId, 2> types{};
    build(terms_, meaning_, entry.head, 0, entry.operands, term, types);
    return terms_.add(term, types);
  }
  void forget(std::size_t from) {
    draw_.forget(static_cast<TermId>(from));
    for (Draw& draw : more_draws_) draw.forget(static_cast<TermId>(from));
    terms_.shrink(from);
  }

  void judge_run(const Run& run) {
    const std::size_t mark = terms_.size();
    std::vector<TermId> members;
    for (const Entry& entry : table_.entries(run)) {
      const TermId id = recall(entry);
      if (terms_.is_input(terms_[id].head) || rewritings_.effect(terms_[id]) == TermRules::Effect::none)
        members.push_back(id);
      else
        ++generated_.counts.pruned_rewritten;
    }
    std::sort(members.begin(), members.end(), [&](TermId a, TermId b) { return terms_.compare(a, b) < 0; });
    std::vector<TermId> kept;  // pairwise not known to be equal
    for (const TermId id : members) {
      if (kept.size() >= kMostKept) break;
      if (!equals_one_of(kept, id)) kept.push_back(id);
    }
    forget(mark);
  }

  bool equals_one_of(std::span<const TermId> kept, TermId id) {
    for (const TermId smaller : kept) {
      if (terms_[id].reached < level_ && terms_[smaller].reached < level_) continue;  // already judged
      if (!terms_.in_order(terms_[id].inputs | terms_[smaller].inputs)) continue;
      if (same_context(id, smaller)) {
        ++generated_.counts.pruned_same_context;
        return true;
      }
      if (!agree(id, smaller)) {
        ++generated_.counts.pruned_by_chance;
        continue;
      }
      const std::array<TermId, 2> output = {id, smaller};
      if (judge_.judge({&output, 1}) == Sieve::Outcome::equal) return true;
    }
    return false;
  }

  bool agree(TermId a, TermId b) {
    return std::all_of(more_draws_.begin(), more_draws_.end(),
                       [&](Draw& draw) { return fingerprint(draw.value(a)) == fingerprint(draw.value(b)); });
  }

  // The same operation on operands that are themselves equal: follows by congruence.
  bool same_context(TermId a, TermId b) const {
    const Term &left = terms_[a], &right = terms_[b];
    if (left.head != right.head || left.result != right.result) return false;
    const auto same = [&](std::size_t i, std::size_t j) {
      const TermId x = left.operands[i], y = right.operands[j];
      return x == y || (x != kNoTerm && y != kNoTerm && fingerprints_[x] == fingerprints_[y]);
    };
    return (same(0, 0) && same(1, 1)) ||
           (terms_.operation(left.head).commutative && same(0, 1) && same(1, 0));
  }

  // Judges operations whose two results equal two smaller terms: a rule with two outputs.
  void judge_splits() {
    std::unordered_map<std::uint64_t, TermId> smallest;
    for (std::int32_t k = 0; k < level_; ++k)
      for (const TermId id : shelf_.level(static_cast<std::size_t>(k))) {
        if (!terms_.is_closed(id)) continue;
        const auto [found, fresh] = smallest.emplace(fingerprints_[id], id);
        if (!fresh && terms_.compare(id, found->second) < 0) found->second = id;
      }
    for (const Entry& entry : splits_) {
      const std::size_t mark = terms_.size();
      judge_split(recall(entry), smallest);
      forget(mark);
    }
  }

  void judge_split(TermId id, const std::unordered_map<std::uint64_t, TermId>& smallest) {
    if (!terms_.in_order(terms_[id].inputs)) return;
    std::array<std::array<TermId, 2>, 2> outputs{};
    bool rewritten = true;
    for (TermId k = 0; k < 2; ++k) {
      const auto found = smallest.find(fingerprint(draw_.value(id + k)));
      if (found == smallest.end() || !agree(id + k, found->second)) return;
      outputs[k] = {id + k, found->second};
      rewritten = rewritten && rewritings_.effect(terms_[id + k]) != TermRules::Effect::none;
    }
    if (rewritten) return;
    if (reached_together(terms_[outputs[0][1]], terms_[outputs[1][1]]) > options_.most_operators) return;
    judge_.judge(outputs);
  }

  const GenerateOptions& options_;
  const OperatorSet& set_;
  Meaning meaning_;
  std::vector<TypeId> types_;
  TermTable terms_;
  Draw draw_;
  std::vector<Draw> more_draws_;
  TermRules rewritings_;
  Shelf shelf_;
  Generated generated_;
  Sieve judge_;

  std::int32_t level_ = 0;
  bool last_ = false;
  std::vector<std::uint64_t> fingerprints_;  // of stored terms
  FingerprintTable table_;
  std::vector<Entry> splits_;  // of this level
  std::vector<TermId> fresh_;  // stored at this level
};

}  // namespace

Result<Generated> generate(const GenerateOptions& options) {
  WEFT_TRY_STATUS(check(options.operators));
  if (options.most_operators < 1 || options.most_operators > kMostOperators)
    return user_error(fmt::format("expected 1 to {} operators in a graph, found {}", kMostOperators,
                                  options.most_operators));
  return Generator(options).run();
}

}  // namespace weft::equation
