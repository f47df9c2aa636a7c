// weft/rules/rule/proof_text.h -- a proof as the text of a file, and back.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/hash.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {

// The first line is a hash of the second, which is JSON. It finds accidents, not forgers.
std::string print_proof(const Digest& key, const RuleProof& proof);

// None when a byte is not as it was written, or the proof is another's. `rule` gives the names in the guard
// their meaning.
std::optional<RuleProof> read_proof(std::string_view text, const Digest& key, const Rule& rule);

}  // namespace weft::rule
