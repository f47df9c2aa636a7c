// weft/rules/rule/verdict.h -- the prover's result for a rule.
//
//   proven      equal at every legal shape tried, for all values: as polynomials over a prime field,
//               where a false rule would pass with at most the stated probability, and on real
//               numbers chosen to distinguish the sides
//   rounded     proven up to rounding: equal in all runs on real numbers, but by a law of functions
//               or order that the field does not satisfy, or with values rounded to low-precision
//               dtypes in other places
//   guarded     one of these under a guard that the prover found, stated in the rule language:
//               `groups(w) = 1`, or `size(x, n) <= 256` if rows are counted in bf16
//   refuted     not equal, with the smallest case found
//   ill_typed   one side is always ill-typed, or the two never have the same shape
//   undecided   no difference was found, but the bound on a false verdict is too large to call it
//               proven
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

// How sides that are equal over the reals differ in floating point: not at all, by the order of
// sums and products, or by other roundings (x/y becomes x*(1/y), a bias folded into weights).
enum class Rounding : std::uint8_t { exact, reassociates, changes };

std::string_view name(Rounding rounding);

struct Counterexample {
  struct Input {
    std::string name;
    std::vector<std::int64_t> sizes;
    std::vector<double> values;  // small if possible; on a mesh, of all ranks in order
  };
  std::vector<Input> inputs;
  std::int32_t ranks = 0;        // 0: no mesh
  std::int32_t output = 0;       // the output that differs
  std::vector<std::int64_t> at;  // coordinates of the element
  std::string left, right;       // each side's value there, or why it has none
  std::vector<std::int64_t> left_sizes, right_sizes;
};

// The magnitudes for which both sides are equal in f32, whose range is limited (float_range.h).
struct FloatRange {
  double least = 0, most = std::numeric_limits<double>::infinity();  // 0 itself is included
  bool finite_only = false;  // the sides differ if an input is infinite or NaN

  bool is_all() const { return least == 0 && most == std::numeric_limits<double>::infinity(); }
  bool is_none() const { return least > 0.5 || most < 2; }  // excludes even numbers near 1
};

// "f32: magnitudes 1.1e-19 to 1.8e+19"; empty if unlimited.
std::string print(const FloatRange& range);

struct Verdict {
  Judgement judgement = Judgement::ill_typed;
  std::string guard;                            // if guarded: "groups(w) = 1"
  std::vector<Counterexample> counterexamples;  // refuted: one; guarded: a case outside its guard
  double error_probability = 1;  // that a false rule passed, over values: shapes and attributes are sampled
  double unseen_share = 1;       // share of cases: failures this frequent would have shown, at 99 %
  Rounding rounding = Rounding::reassociates;
  double rounding_bound = 0;  // the largest relative difference from rounding
  FloatRange range;
  std::int32_t shapes = 0;     // distinct shapes and attributes run
  std::int64_t real_runs = 0;  // conclusive runs on real numbers
  std::string reason;          // if ill-typed or undecided: why
};

// Whether a rule with this verdict may fire: proven, also up to rounding, or guarded.
bool holds(const Verdict& verdict);
bool holds_everywhere(const Verdict& verdict);  // the same without a guard

}  // namespace weft::rule
