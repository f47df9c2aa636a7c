#include "weft/rules/rule/proof_store.h"

#include <cstdlib>

#include <fmt/format.h>

#include "weft/base/private_folder.h"
#include "weft/plan/ops/number.h"
#include "weft/rules/rule/behaviour.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/proof_text.h"
#include "weft/rules/rule/real_draws.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestProof = 1 << 22;

// Instances run again before a stored proof is accepted. A rule that is always wrong fails the
// first; one that needs a guard usually fails one of these.
constexpr int kInstancesRunAgain = 8;

std::string file_of(const Digest& key) { return fmt::format("{}.proof", key.hex()); }

// Whether the rule holds on a few instances under the proof's guard. A forged proof that forbids
// the rule to fire is harmless.
bool survives_a_few_instances(const Rule& rule, const RuleProof& proof, const Digest& key) {
  if (!holds(proof.verdict)) return true;
  Rule guarded = rule;
  guarded.when.insert(guarded.when.end(), proof.guard.begin(), proof.guard.end());
  Random random(key.low, key.high);
  for (int k = 0; k < kInstancesRunAgain; ++k) {
    const auto instance = draw_instance(guarded, random);
    if (!instance.ok()) return k > 0;  // instances of some rules are rare; the prover accepts that too
    if (instance->refusal) return false;
    // On real numbers: a rule proven up to rounding need not hold over the field.
    RealDraws draws = draws_for(*instance);
    draws.begin(k, random);
    const auto run = run_real(*instance, draws, random);
    if (!run.ok() || run->difference) return false;
  }
  return true;
}

}  // namespace

Digest proof_key(const Rule& rule, const ProveOptions& options) {
  return Hasher()
      .text(print(rule))
      .digest_of(behaviour(rule))
      .number(kProverVersion)
      .number(ops::Field::kPrime)
      .number(static_cast<std::uint64_t>(options.shapes))
      .number(static_cast<std::uint64_t>(options.draws))
      .number(static_cast<std::uint64_t>(options.max_order_runs))
      .real(options.order_error)
      .real(options.max_error)
      .number(static_cast<std::uint64_t>(options.min_real_runs))
      .number(options.seed)
      .digest();
}

Status ProofStore::check() const { return PrivateFolder::check(folder_); }

std::optional<RuleProof> ProofStore::find(const Digest& key, const Rule& rule) const {
  const auto folder = PrivateFolder::open(folder_);
  if (!folder.ok()) return std::nullopt;
  const auto text = folder->read(file_of(key), kLargestProof);
  if (!text.ok() || !*text) return std::nullopt;
  std::optional<RuleProof> proof = read_proof(**text, key, rule);
  return proof && survives_a_few_instances(rule, *proof, key) ? std::move(proof) : std::nullopt;
}

Status ProofStore::keep(const Digest& key, const RuleProof& proof) const {
  WEFT_TRY(folder, PrivateFolder::make(folder_));
  return folder.write(file_of(key), print_proof(key, proof));
}

std::string default_proof_folder() {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/weft/proofs";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/weft/proofs";
  return {};
}

RuleProof proof_of(const Rule& rule, const ProofStore* store, const ProveOptions& options) {
  if (store == nullptr) return prove(rule, options);
  const Digest key = proof_key(rule, options);
  if (auto found = store->find(key, rule)) return std::move(*found);
  RuleProof proof = prove(rule, options);
  (void)store->keep(key, proof);  // a proof that cannot be stored is still valid
  return proof;
}

Result<RuleSet> load_proven(std::vector<Rule> rules, const ProofStore* store, const ProveOptions& options) {
  WEFT_TRY_STATUS(check_names(rules));
  RuleSet set;
  for (Rule& rule : rules) {
    const Digest key = store != nullptr ? proof_key(rule, options) : Digest();
    std::optional<RuleProof> proof = store != nullptr ? store->find(key, rule) : std::nullopt;
    if (proof) {
      ++set.reused;
    } else {
      proof = prove(rule, options);
      ++set.made;
      if (store != nullptr)
        if (Status kept = store->keep(key, *proof); !kept.ok()) set.not_stored = std::move(kept).error();
    }
    if (!holds(proof->verdict)) {
      set.refused.push_back({std::move(rule), std::move(proof->verdict)});
      continue;
    }
    rule.when.insert(rule.when.end(), proof->guard.begin(), proof->guard.end());
    set.rules.push_back(std::move(rule));
    set.verdicts.push_back(std::move(proof->verdict));
  }
  return set;
}

}  // namespace weft::rule
