// weft/parallel/distribute/choices.h -- where a number decides which of two values a plan takes.
//
//   %9 = minimum(%one, %ratio)         a norm that is clipped: one, or the ratio
//   %12 = select(%7, %10, %11)         %7 compares two numbers: a step that is taken, or skipped
//   %14 = relu(%13)                    %13 and zero are compared, element by element
//
// One draw of values shows some sides of these decisions, and an error on another side stays hidden. So plans are
// compared until every decision was seen on both sides and every pair of decisions in all four combinations. A tensor
// shows both sides in one draw where some of its elements lie on either. What no draw showed is not proven. Flags are
// nested three deep (a scale grows after enough finite steps, where gradients are complete), so draws are searched for
// the eight combinations of three single numbers too.
//
// A decision that repeats another is that one: greater(b, a) is less(a, b), and equal(minimum(a, b), b) says what the
// minimum decided. Two that compare the same two numbers are not crossed.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::distribute {

class Choices {
 public:
  using Values = std::vector<ops::Tensor<ops::Field>>;

  Choices() = default;  // none
  // A number that another plan has in the place of a constant: 1000 steps for 2000.
  struct Bound {
    double number = 0;
    bool is_whole = false;  // of an integer type
  };

  // Of the nodes that an output depends on and that depend on a source themselves. `bounds`: draws are to show single
  // numbers of which the plan's own bound and these decide differently.
  static Result<Choices> of(const plan::Graph& graph, std::span<const Bound> bounds = {});
  // Of single numbers, and of real numbers that are asked to be equal, as random ones never are; of these nodes alone.
  // Each must be seen on both sides, and single numbers on both sides of another plan's, but where they repeat those.
  static Result<Choices> of_own(const plan::Graph& graph, const std::vector<bool>& own);

  bool none() const { return decisions_.empty(); }

  // The plan with what decides as further outputs, behind its own.
  const plan::Graph& asked() const { return asked_; }

  // Whether this draw of `asked()` shows a side, a pair or a tie that was not seen yet.
  bool shows_more(const Values& outputs) const;
  void see(const Values& outputs);
  // Beside what `other` saw last.
  void see_beside(const Values& outputs, const Choices& other);

  // Draws in search of what is left were in vain.
  void give_up() { gave_up_ = true; }
  // Ties are looked for in a few draws more: deep plans have many comparisons.
  bool is_done() const { return gave_up_ || (all_crossed() && (ties_seen() || for_ties_ >= kMostForTies)); }

  bool any_seen() const { return !pairs_.empty() && pairs_.front() != 0; }
  bool all_seen() const;
  // And all combinations of three.
  bool all_crossed() const;
  // Whether two numbers that are compared were equal somewhere, for each tensor of them; in some draws, as one may hide
  // what a tie decides behind a zero.
  bool ties_seen() const;
  // Ties are drawn with tensors of zeros in every other draw.
  bool next_ties_have_zeros() { return asked_for_ties_++ % 2 == 1; }

  // Neither ties nor combinations of three are wanted.
  void want_pairs_alone();

  // "%12 (less) was never seen to hold"; empty where all was seen.
  std::string unseen() const;

 private:
  struct Decision {
    plan::ValueId less = {};   // of asked(); invalid: `equal` decides alone
    plan::ValueId equal = {};  // invalid: `less` is a flag of the plan
    bool is_tensor = false;
    bool takes_one = false;   // a minimum or maximum: of two that are equal it takes neither
    bool is_bound = false;    // whether another bound would decide otherwise
    std::string text = {};    // "%12 (less)"
    std::size_t numbers = 0;  // which two are compared
    std::size_t first_output = 0;

    bool orders() const { return less.valid() && equal.valid(); }
  };
  class Finder;

  bool are_crossed(std::size_t a, std::size_t b) const {
    return crossed_ && decisions_[a].numbers != decisions_[b].numbers;
  }

  // By decision: 1 where it failed somewhere, 2 where it held, 4 where the two numbers were equal.
  std::vector<std::uint8_t> sides(const Values& outputs) const;
  bool lacks_ties(std::size_t decision) const {
    return wants_ties_ && decisions_[decision].is_tensor && decisions_[decision].orders() &&
           ties_[decision] < kDrawsWithTies;
  }
  std::uint8_t& pair(std::size_t a, std::size_t b) { return pairs_[a * decisions_.size() + b]; }
  std::uint8_t pair(std::size_t a, std::size_t b) const { return pairs_[a * decisions_.size() + b]; }

  plan::Graph asked_;
  std::vector<Decision> decisions_;
  std::vector<std::uint8_t> last_;    // sides of the last that was seen
  std::vector<std::uint8_t> beside_;  // of each and each of the other plan's, the four combinations
  std::vector<std::string> others_;   // by decision of the other plan; empty: it is not crossed
  std::vector<std::uint8_t> pairs_;   // of each two, the four combinations; of one with itself, its sides
  bool crossed_ = true, gave_up_ = false, wants_ties_ = true;
  static constexpr int kDrawsWithTies = 3, kMostForTies = 3;
  std::vector<int> ties_;                           // by decision: draws that showed one
  int asked_for_ties_ = 0;                          // draws
  int for_ties_ = 0;                                // draws since all choices were crossed
  std::vector<std::array<std::size_t, 3>> threes_;  // of single numbers
  std::vector<std::uint8_t> seen_threes_;           // the eight combinations of each
};

// Constants of `graph` that `original` has not: a bound that was changed is one of them.
std::vector<Choices::Bound> new_constants(const plan::Graph& original, const plan::Graph& graph);

}  // namespace weft::distribute
