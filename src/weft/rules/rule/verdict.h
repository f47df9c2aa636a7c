// weft/rules/rule/verdict.h -- what the prover says of a rule.
//
//   proven      equal at every legal shape tried, whatever the values: as polynomials over a prime field, where
//               a false rule would have got through with at most the stated probability, and on real numbers
//               that were chosen to tell the sides apart
//   rounded     proven up to rounding: equal as real numbers as often as tried, but by a law of functions or of
//               order that the field does not know, or by rounding values to short dtypes in other places
//   guarded     one of these under a guard that the prover found, stated in the rule language: `groups(w) = 1`, or
//               `size(x, n) <= 256` where rows are counted in bf16
//   refuted     not equal: here is the smallest case found
//   ill_typed   one side never makes sense, or the two never have the same shape
//   undecided   no difference was found, but the bound on a false verdict is too large to call it proven
//
// Only the first three may fire.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rule {

enum class Judgement : std::uint8_t { proven, rounded, guarded, refuted, ill_typed, undecided };

std::string_view name(Judgement judgement);  // "proven up to rounding", "ill-typed"

// How floating point fares where real numbers agree: the same operations on the same numbers, sums and
// products in another order, or other roundings altogether (x/y becomes x*(1/y), a bias folded in weights).
enum class Rounding : std::uint8_t { exact, reassociates, changes };

std::string_view name(Rounding rounding);

struct Counterexample {
  struct Input {
    std::string name;
    std::vector<std::int64_t> sizes;
    std::vector<double> values;  // small numbers where they will do; of all ranks in turn on a mesh
  };
  std::vector<Input> inputs;
  std::int32_t ranks = 0;        // 0: no mesh
  std::int32_t output = 0;       // which output differs
  std::vector<std::int64_t> at;  // where
  std::string left, right;       // what each side has there, or why it has nothing
  std::vector<std::int64_t> left_sizes, right_sizes;
};

// Real numbers have no end, f32 has: the magnitudes between which it computes both sides alike (float_range.h).
struct FloatRange {
  double least = 0, most = std::numeric_limits<double>::infinity();  // 0 itself is within it
  bool finite_only = false;  // an infinity or NaN among the inputs makes a difference

  bool is_all() const { return least == 0 && most == std::numeric_limits<double>::infinity(); }
  bool is_none() const { return least > 0.5 || most < 2; }  // not even numbers about 1
};

// "f32: magnitudes 1.1e-19 to 1.8e+19"; empty where there is nothing to say.
std::string print(const FloatRange& range);

struct Verdict {
  Judgement judgement = Judgement::ill_typed;
  std::string guard;  // of a guarded rule: "groups(w) = 1"
  std::vector<Counterexample>
      counterexamples;           // of a refuted rule one; of a guarded one a case outside its guard
  double error_probability = 1;  // that a false rule got here, over values: shapes and attributes are sampled
  double unseen_share = 1;       // of the cases drawn: what fails this often would have shown, at 99 %
  Rounding rounding = Rounding::reassociates;
  double rounding_bound = 0;  // the largest difference that rounding made, of the numbers' size
  FloatRange range;
  std::int32_t shapes = 0;     // distinct shapes and attributes at which both sides were run
  std::int64_t real_runs = 0;  // on real numbers, in which rounding left no question open
  std::string reason;          // of an ill-typed or undecided rule: what is wrong
};

// Whether a rule of this verdict may fire: proven, up to rounding or not, or guarded.
bool holds(const Verdict& verdict);
bool holds_everywhere(const Verdict& verdict);  // the same without a guard

}  // namespace weft::rule
