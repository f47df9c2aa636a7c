// weft/rules/rule/proof_store.h -- proofs kept on disk, by the content of what they prove.
//
//   ~/.cache/weft/proofs/3f2a..9c.proof        the name is the proof's key:
//
//   hash( the rule's text as printed            a changed rule has another key
//         what its operators do                 ... and so has a rule whose operators changed: both sides
//                                               are run over the field on a few fixed instances
//         the field, the prover's version, its options and its seed )
//
// Whoever finds a file under the key has the proof; nobody ever changes one. Files are written whole or not
// at all, so any number of processes may share a folder and be killed at any moment. A file that does not
// read back to what was written is as good as none.
//
// A proof lets a rule fire, so nobody else may have written it: the folder is private to the user
// (base/private_folder.h), and a few instances of the rule are run again before a proof that was read counts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/rules/rule/prove_rule.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Of a rule at the given options, on this build's operators.
Digest proof_key(const Rule& rule, const ProveOptions& options = {});

class ProofStore {
 public:
  explicit ProofStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  Status check() const;  // fails where the folder is there and not private: then nothing is found or kept
  std::optional<RuleProof> find(const Digest& key, const Rule& rule) const;
  Status keep(const Digest& key, const RuleProof& proof) const;  // makes the folder where it is missing

 private:
  std::string folder_;
};

// Where the proofs of this user are kept: $XDG_CACHE_HOME/weft/proofs, or ~/.cache/weft/proofs; empty when
// the environment names neither.
std::string default_proof_folder();

// The proof that `store` has, or a new one, which it then keeps if it can; null: a new one in any case.
RuleProof proof_of(const Rule& rule, const ProofStore* store, const ProveOptions& options = {});

// Rules that may fire, and why the others may not.
struct RuleSet {
  std::vector<Rule> rules;        // proven; one that needed a guard has it in its `when`
  std::vector<Verdict> verdicts;  // of `rules`, in order
  struct Refused {
    Rule rule;
    Verdict verdict;
  };
  std::vector<Refused> refused;
  std::int64_t reused = 0;  // proofs that were found
  std::int64_t made = 0;
  std::optional<Error> not_stored;  // why a proof could not be kept; it counts all the same
};

// Proves what `store` has no proof of; null: everything. Fails when two rules have one name.
Result<RuleSet> load_proven(std::vector<Rule> rules, const ProofStore* store,
                            const ProveOptions& options = {});

}  // namespace weft::rule
