// weft/rules/rule/proof_text.h -- reads and writes the text of a proof file.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/hash.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {

// The first line is a hash of the second, which is JSON. It detects corruption, not forgery.
std::string print_proof(const Digest& key, const RuleProof& proof);

// nullopt if the text is corrupt or the key differs. `rule` resolves the names in the guard.
std::optional<RuleProof> read_proof(std::string_view text, const Digest& key, const Rule& rule);

}  // namespace weft::rule
