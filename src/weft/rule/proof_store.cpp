#include "weft/rule/proof_store.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/rule/behaviour.h"
#include "weft/rule/library.h"
#include "weft/rule/proof_text.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestProof = 1 << 22;

}  // namespace

Digest proof_key(const Rule& rule, const ProveOptions& options) {
  return Hasher()
      .text(print(rule))
      .digest_of(behaviour(rule))
      .number(kProverVersion)
      .number(static_cast<std::uint64_t>(options.shapes))
      .number(static_cast<std::uint64_t>(options.draws))
      .number(static_cast<std::uint64_t>(options.most_order_runs))
      .real(options.order_error)
      .number(options.seed)
      .digest();
}

std::string ProofStore::path(const Digest& key) const {
  return fmt::format("{}/{}.proof", folder_, key.hex());
}

std::optional<RuleProof> ProofStore::find(const Digest& key, const Rule& rule) const {
  const auto text = read_file(path(key), kLargestProof);
  if (!text.ok()) return std::nullopt;
  return read_proof(*text, key, rule);
}

Status ProofStore::keep(const Digest& key, const RuleProof& proof) const {
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure) return world_error(fmt::format("cannot make the folder {}: {}", folder_, failure.message()));
  return write_file_atomically(path(key), print_proof(key, proof));
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
  (void)store->keep(key, proof);  // a proof that cannot be kept counts all the same
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
    const Judgement judgement = proof->verdict.judgement;
    if (judgement != Judgement::proven && judgement != Judgement::guarded) {
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
