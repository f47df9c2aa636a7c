// weft/rules/rule/proof_store.h -- a cache of proofs on disk, keyed by content.
//
//   ~/.cache/weft/proofs/3f2a..9c.proof        the name is the proof's key:
//
//   hash( the rule's text as printed            a changed rule has another key
//         the behaviour of its operators        ... and so has a rule whose operators changed: both sides
//                                               are run over the field on a few fixed instances
//         the field, the prover's version, its options and its seed )
//
// A file with the key is the proof; files are never modified. They are written atomically, so any
// number of processes may share a folder and be killed at any time. A corrupt file is ignored.
//
// A proof lets a rule fire, so no other user may write one: the folder is private to the user
// (base/private_folder.h), and a few instances of the rule are run again before a stored proof is
// accepted.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/rules/rule/prove_rule.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The key of a rule with the given options and this build's operators.
Digest proof_key(const Rule& rule, const ProveOptions& options = {});

class ProofStore {
 public:
  explicit ProofStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  Status check() const;  // fails if the folder exists and is not private; it is then not used
  std::optional<RuleProof> find(const Digest& key, const Rule& rule) const;
  Status keep(const Digest& key, const RuleProof& proof) const;  // creates the folder if missing

 private:
  std::string folder_;
};

// The user's proof folder: $XDG_CACHE_HOME/weft/proofs, or ~/.cache/weft/proofs; empty if the
// environment defines neither.
std::string default_proof_folder();

// The proof in `store`, or a new one, which it stores if possible. With a null store, always a new
// one.
RuleProof proof_of(const Rule& rule, const ProofStore* store, const ProveOptions& options = {});

// Rules that may fire, and why the others may not.
struct RuleSet {
  std::vector<Rule> rules;        // proven; a guard that was needed is added to `when`
  std::vector<Verdict> verdicts;  // of `rules`, in order
  struct Refused {
    Rule rule;
    Verdict verdict;
  };
  std::vector<Refused> refused;
  std::int64_t reused = 0;  // proofs found in the store
  std::int64_t made = 0;
  std::optional<Error> not_stored;  // why a proof could not be stored; it is still valid
};

// Proves the rules that have no proof in `store`, or all if it is null. Fails if two rules have the
// same name.
Result<RuleSet> load_proven(std::vector<Rule> rules, const ProofStore* store,
                            const ProveOptions& options = {});

}  // namespace weft::rule
