// weft/rule/verdict.h -- what the prover says of a rule.
//
//   proven      equal at every legal shape tried, whatever the values; a false rule would have got
//               through with at most the stated probability
//   guarded     so under a guard that the prover found, stated in the rule language
//   refuted     not equal: here is the smallest case found
//   ill_typed   one side never makes sense, or the two never have the same shape
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rule {

enum class Judgement : std::uint8_t { proven, guarded, refuted, ill_typed };

std::string_view name(Judgement judgement);  // "ill-typed"

// How floating point fares where real numbers agree: the same operations on the same numbers, sums and
// products in another order, or other roundings altogether (x/y becomes x*(1/y), a bias folded in weights).
enum class Rounding : std::uint8_t { exact, reassociates, changes };

std::string_view name(Rounding rounding);

struct Counterexample {
  struct Input {
    std::string name;
    std::vector<std::int64_t> sizes;
    std::vector<double> values;  // small whole numbers; of all ranks in turn on a mesh
  };
  std::vector<Input> inputs;
  std::int32_t ranks = 0;        // 0: no mesh
  std::int32_t output = 0;       // which output differs
  std::vector<std::int64_t> at;  // where
  std::string left, right;       // what each side has there, or why it has nothing
  std::vector<std::int64_t> left_sizes, right_sizes;
};

struct Verdict {
  Judgement judgement = Judgement::ill_typed;
  std::string guard;  // of a guarded rule: "groups(w) = 1"
  std::vector<Counterexample>
      counterexamples;           // of a refuted rule one; of a guarded one a case outside its guard
  double error_probability = 1;  // that a false rule got here
  Rounding rounding = Rounding::reassociates;
  std::int32_t shapes = 0;  // distinct shapes at which both sides were run
  std::string reason;       // of an ill-typed rule: what is wrong
};

}  // namespace weft::rule
