// weft/parallel/distribute/choices.h -- coverage of the decisions that a plan makes on its data.
//
//   %9 = minimum(%one, %ratio)         gradient clipping: one, or the ratio
//   %12 = select(%7, %10, %11)         %7 compares two numbers: the step is applied or skipped
//   %14 = relu(%13)                    compares %13 with zero, element by element
//
// One random sample covers only some outcomes of these decisions, and an error behind another
// outcome stays hidden. So plans are compared until every decision was seen with both outcomes and
// every pair of decisions with all four combinations. A tensor can show both outcomes in one
// sample, in different elements. An outcome that no sample showed is not proven. Flags nest three
// deep: a scale grows after enough finite steps, at steps whose gradients are complete. So samples
// are also searched for the eight combinations of three scalar decisions.
//
// A decision that repeats another counts as the same one: greater(b, a) is less(a, b), and
// equal(minimum(a, b), b) repeats the minimum. Two decisions on the same two numbers are not
// combined.
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

  Choices() = default;  // no decisions
  // A number that another plan has in place of a constant: 1000 steps instead of 2000.
  struct Bound {
    double number = 0;
    bool is_whole = false;  // integer type
  };

  // The decisions of nodes that an output depends on and that themselves depend on a source.
  // `bounds`: samples must also include scalars for which the plan's own bound and one of these
  // decide differently.
  static Result<Choices> of(const plan::Graph& graph, std::span<const Bound> bounds = {});
  // The decisions of the nodes marked in `own` only: scalar ones, and equality tests of reals,
  // which random reals never pass. Each must be seen with both outcomes. A scalar one must also be
  // seen with both outcomes of every scalar decision of the other plan (see_beside), unless it
  // repeats that decision.
  static Result<Choices> of_own(const plan::Graph& graph, const std::vector<bool>& own);

  bool none() const { return decisions_.empty(); }

  // The plan with the deciding values as further outputs, after its own.
  const plan::Graph& asked() const { return asked_; }

  // Whether this sample of `asked()` shows an outcome, a combination or a tie that was not seen
  // yet.
  bool shows_more(const Values& outputs) const;
  void see(const Values& outputs);
  // Also records the combinations with what `other` saw last.
  void see_beside(const Values& outputs, const Choices& other);

  // Further samples found nothing new.
  void give_up() { gave_up_ = true; }
  // Ties get only a few extra samples, since deep plans have many comparisons.
  bool is_done() const { return gave_up_ || (all_crossed() && (ties_seen() || for_ties_ >= kMostForTies)); }

  bool any_seen() const { return !pairs_.empty() && pairs_.front() != 0; }
  bool all_seen() const;
  // Like all_seen(), and all combinations of three.
  bool all_crossed() const;
  // Whether the operands of every tensor comparison were equal somewhere. Several samples are
  // needed, because a zero factor in one may hide the effect of a tie.
  bool ties_seen() const;
  // Every other sample with ties has all-zero tensors.
  bool next_ties_have_zeros() { return asked_for_ties_++ % 2 == 1; }

  // Requires neither ties nor combinations of three.
  void want_pairs_alone();

  // "%12 (less) was never seen to hold"; empty if everything was seen.
  std::string unseen() const;

 private:
  struct Decision {
    plan::ValueId less = {};   // in asked(); invalid: `equal` decides alone
    plan::ValueId equal = {};  // invalid: `less` is a flag of the plan
    bool is_tensor = false;
    bool takes_one = false;   // a minimum or maximum: a tie gives no outcome
    bool is_bound = false;    // whether another bound would decide differently
    std::string text = {};    // "%12 (less)"
    std::size_t numbers = 0;  // identifies the two compared numbers
    std::size_t first_output = 0;

    bool orders() const { return less.valid() && equal.valid(); }
  };
  class Finder;

  bool are_crossed(std::size_t a, std::size_t b) const {
    return crossed_ && decisions_[a].numbers != decisions_[b].numbers;
  }

  // By decision, bits: 1 if it was false somewhere, 2 if true, 4 if the two numbers were equal.
  std::vector<std::uint8_t> sides(const Values& outputs) const;
  bool lacks_ties(std::size_t decision) const {
    return wants_ties_ && decisions_[decision].is_tensor && decisions_[decision].orders() &&
           ties_[decision] < kDrawsWithTies;
  }
  std::uint8_t& pair(std::size_t a, std::size_t b) { return pairs_[a * decisions_.size() + b]; }
  std::uint8_t pair(std::size_t a, std::size_t b) const { return pairs_[a * decisions_.size() + b]; }

  plan::Graph asked_;
  std::vector<Decision> decisions_;
  std::vector<std::uint8_t> last_;    // outcomes in the last sample
  std::vector<std::uint8_t> beside_;  // combinations with each decision of the other plan
  std::vector<std::string> others_;   // by decision of the other plan; empty: not combined
  std::vector<std::uint8_t> pairs_;   // combinations per pair; on the diagonal, outcomes
  bool crossed_ = true, gave_up_ = false, wants_ties_ = true;
  static constexpr int kDrawsWithTies = 3, kMostForTies = 3;
  std::vector<int> ties_;                           // by decision: samples with a tie
  int asked_for_ties_ = 0;                          // samples
  int for_ties_ = 0;                                // samples since all combinations were seen
  std::vector<std::array<std::size_t, 3>> threes_;  // scalar decisions
  std::vector<std::uint8_t> seen_threes_;           // the eight combinations of each
};

// Constants of `graph` that `original` does not have; a changed bound is one of them.
std::vector<Choices::Bound> new_constants(const plan::Graph& original, const plan::Graph& graph);

}  // namespace weft::distribute
