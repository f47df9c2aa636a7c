#include "weft/rules/rule/float_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/rounded_constants.h"
#include "weft/rules/rule/stored_run.h"

namespace weft::rule {
namespace {

using ops::Rounded;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLeastExponent = -126,
                 kMostExponent = 128;     // of f32's normal numbers; kMostExponent is exclusive
constexpr double kOrdinaryExponent = 32;  // 2e-10 to 4e9

bool is_f32_alone(const plan::Graph& graph) {
  bool any = false;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const plan::DType dtype = node.result_type(k).dtype;
      any = any || dtype == plan::DType::f32;
      if (plan::is_real(dtype) && dtype != plan::DType::f32) return false;
    }
  }
  return any;
}

constexpr double kDigits = 0x1p-20;  // relative accuracy of a result within the range

// The sign, fraction and exponent of one real input element.
struct Sample {
  double sign = 1, fraction = 1, exponent = 0;
};

// Whether a result is within the range of f32.
bool is_within(Rounded f32, Rounded unbounded) {
  if (f32.is_known() && unbounded.is_known())
    return f32.value == unbounded.value ||
           std::abs(f32.value - unbounded.value) <= kDigits * std::abs(unbounded.value);
  if (f32.is_known() || unbounded.is_known()) return false;
  return std::isnan(f32.value) == std::isnan(unbounded.value) &&
         (std::isnan(f32.value) || f32.value == unbounded.value) && !f32.is_overrun();
}

constexpr double kAlmostNothing = 0x1p-120;  // smaller differences come from underflow

// Whether the sides differ only in the lost digits of numbers that are nearly 0.
bool is_almost_nothing(Rounded a, Rounded b) { return std::abs(a.value - b.value) <= kAlmostNothing; }

// Whether no digit is correct, as after adding a far larger number or a wrong comparison.
bool is_far_off(Rounded f32, Rounded real) {
  return std::abs(f32.value - real.value) > 0.5 * std::abs(real.value);
}

// The more accurate of two values of the same number.
Rounded surer(Rounded a, Rounded b) { return !a.is_known() || (b.is_known() && b.error < a.error) ? b : a; }

bool is_same_beyond(Rounded a, Rounded b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return std::isnan(a.value) == std::isnan(b.value);
  if (a.value == b.value) return true;
  return std::abs(a.value - b.value) <=
         std::max(kAlmostNothing, 1e-3 * std::max(std::abs(a.value), std::abs(b.value)));
}

class RangeSearch {
 public:
  RangeSearch(const RuleInstance& instance, Random& random)
      : instance_(instance), random_(random), draws_({}) {
    for (std::size_t id = 0; id < instance.graph.node_count(); ++id) {
      const plan::NodeView node = instance.graph.view(plan::NodeId(id));
      if (&node.op() == &ops::input()) real_.push_back(plan::is_real(node.result_type(0).dtype));
    }
  }

  // Shrinks the range of exponents until `draws` consecutive draws agree.
  void shrink(double& least, double& most, int draws) {
    constexpr int kMostShrinks = 24;
    int shrinks = 0;
    for (int quiet = 0; quiet < draws && shrinks < kMostShrinks && most >= 1 && least <= -1; ++quiet) {
      if (draw(least, most)) continue;
      reduce(least, most);
      quiet = -1;
      ++shrinks;
    }
    // If the edge depends on more than magnitudes, it is slightly inside the last edge found.
    constexpr double kInside = 0.95;
    if (shrinks == kMostShrinks) least *= kInside, most *= kInside;
  }

  // Draws infinities and NaN among ordinary numbers.
  bool agrees_beyond_numbers(int draws) {
    constexpr std::array kBeyond = {kInfinite, -kInfinite, std::numeric_limits<double>::quiet_NaN(), 0.0, 1.0,
                                    -1.0,      2.5};
    for (int k = 0; k < draws; ++k) {
      fill(0, 1);
      for (std::size_t input = 0; input < real_.size(); ++input)
        for (Rounded& element : inputs_[input].data)
          if (real_[input]) element = {kBeyond[random_.below(kBeyond.size())], 0};
      const StoredRun run = run_stored(instance_, inputs_, Exponents::of_dtype, random_.next());
      for (std::size_t output = 0; output < run.left.size(); ++output)
        for (std::size_t i = 0; i < run.left[output].data.size(); ++i) {
          const Rounded a = run.left[output].data[i], b = run.right[output].data[i];
          if (a.is_lost() || b.is_lost()) continue;
          if (std::isnan(a.value) != std::isnan(b.value) || std::isinf(a.value) != std::isinf(b.value))
            return false;
          if (!run.doubt && a.is_known() && b.is_known() && is_far_off(a, b)) return false;
        }
    }
    return true;
  }

 private:
  double exponent_between(double least, double most) {
    const std::uint64_t roll = random_.below(8);
    if (roll == 0) return most;
    if (roll == 1) return least;
    if (roll == 2) return most - random_.uniform();
    if (roll == 3) return least + random_.uniform();
    return least + (most - least) * random_.uniform();
  }

  void fill(double least, double most) {
    draws_.begin(5, random_);
    inputs_ = draw_inputs(instance_, draws_, random_);
    samples_.clear();
    const bool alike = random_.below(3) == 0;  // all elements have the same magnitude
    const double one = exponent_between(least, most);
    for (std::size_t input = 0; input < real_.size(); ++input)
      for (std::size_t i = 0; real_[input] && i < inputs_[input].data.size(); ++i)
        samples_.push_back({random_.below(2) == 0 ? -1.0 : 1.0, 1 + random_.uniform() / 8,
                            alike ? one : exponent_between(least, most)});
  }

  bool draw(double least, double most) {
    fill(least, most);
    return at(least, most);
  }

  // Whether the sides agree on the samples with their exponents clamped to this range.
  bool at(double least, double most) {
    place(least, most, [](const Sample& sample) { return sample.fraction; });
    const std::uint64_t key = random_.next();
    const StoredRun f32 = run_stored(instance_, inputs_, Exponents::of_dtype, key),
                    unbounded = run_stored(instance_, inputs_, Exponents::unbounded, key);
    for (std::size_t output = 0; !unbounded.doubt && output < f32.left.size(); ++output)
      for (std::size_t i = 0; i < f32.left[output].data.size(); ++i) {
        const Rounded a = f32.left[output].data[i], b = f32.right[output].data[i];
        const bool left = is_within(a, unbounded.left[output].data[i]),
                   right = is_within(b, unbounded.right[output].data[i]);
        if (left && right) continue;
        if (left == right ? !is_same_beyond(a, b) : !is_almost_nothing(a, b)) return false;
      }
    return !loses_all_digits(f32, key) || !keeps_losing(least, most);
  }

  template <class Fraction>
  void place(double least, double most, const Fraction& fraction) {
    std::size_t next = 0;
    for (std::size_t input = 0; input < real_.size(); ++input)
      for (Rounded& element : inputs_[input].data) {
        if (!real_[input]) continue;
        const Sample& sample = samples_[next++];
        const double magnitude =
            std::min(fraction(sample) * std::exp2(std::clamp(sample.exponent, least, most)),
                     std::exp2(most) * (1 - 0x1p-24));
        element = {round_to_dtype(plan::DType::f32, sample.sign * magnitude), 0};
      }
  }

  // Whether exactly one side is far off the real number.
  bool loses_all_digits(const StoredRun& f32, std::uint64_t key) const {
    ops::RoundedNotes notes;
    const auto real = evaluate_all(instance_.run_graph(), inputs_, {.notes = &notes, .key = key});
    for (std::size_t output = 0; !notes.doubt && output < f32.left.size(); ++output)
      for (std::size_t i = 0; i < f32.left[output].data.size(); ++i) {
        const Rounded a = f32.left[output].data[i], b = f32.right[output].data[i];
        const Rounded exact = surer(real[output].data[i], real[output + f32.left.size()].data[i]);
        if (!a.is_known() || !b.is_known() || !exact.is_known() ||
            exact.error > kDigits * std::abs(exact.value))
          continue;
        if (is_far_off(a, exact) != is_far_off(b, exact)) return true;
      }
    return false;
  }

  // Whether it also happens with other fractions, so that it is not accidental cancellation.
  bool keeps_losing(double least, double most) {
    constexpr int kTimes = 3;
    for (int k = 0; k < kTimes; ++k) {
      place(least, most, [&](const Sample&) { return 0.75 + random_.uniform() / 4; });
      const std::uint64_t key = random_.next();
      if (!loses_all_digits(run_stored(instance_, inputs_, Exponents::of_dtype, key), key)) return false;
    }
    return true;
  }

  // Narrows only the upper or only the lower end, whichever costs less; if neither suffices, both.
  void reduce(double& least, double& most) {
    const double large = share_that_agrees([&](double share) { return at(least, share * most); }),
                 small = share_that_agrees([&](double share) { return at(share * least, most); });
    if (large == 0 && small == 0) {
      const double both = share_that_agrees([&](double share) { return at(share * least, share * most); });
      least *= both;
      most *= both;
    } else if (large >= small) {
      most *= large;
    } else {
      least *= small;
    }
  }

  template <class Agrees>
  static double share_that_agrees(const Agrees& agrees_at) {
    constexpr int kHalvings = 12;
    double within = 0, beyond = 1;
    if (!agrees_at(0.0)) return 0;
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = (within + beyond) / 2;
      (agrees_at(middle) ? within : beyond) = middle;
    }
    return within;
  }

  const RuleInstance& instance_;
  Random& random_;
  RealDraws draws_;
  std::vector<bool> real_;  // by input
  RealInputs inputs_;
  std::vector<Sample> samples_;
};

bool is_none(double least, double most) { return FloatRange{std::exp2(least), std::exp2(most)}.is_none(); }

}  // namespace

FloatRange find_float_range(std::span<const RuleInstance* const> instances, int draws, Random& random) {
  constexpr std::size_t kMostSearched = 4;
  double least = kLeastExponent, most = kMostExponent;
  FloatRange range;
  std::vector<const RuleInstance*> f32;
  for (const RuleInstance* instance : instances)
    if (!instance->refusal && is_f32_alone(instance->graph)) f32.push_back(instance);
  // The smallest instances up to medium-sized ones.
  const std::size_t apart = std::max<std::size_t>(1, f32.size() / (2 * kMostSearched));
  for (std::size_t k = 0; k < std::min(f32.size(), apart * kMostSearched); k += apart) {
    RangeSearch search(*f32[k], random);
    const double least_before = least, most_before = most;
    search.shrink(least, most, draws);
    // Narrowing both ends may have missed an existing range: search again among ordinary numbers.
    if (is_none(least, most)) {
      least = std::max(least_before, -kOrdinaryExponent);
      most = std::min(most_before, kOrdinaryExponent);
      search.shrink(least, most, draws);
    }
    if (is_none(least, most)) break;
    range.finite_only = range.finite_only || !search.agrees_beyond_numbers(draws);
  }
  if (least > kLeastExponent) range.least = std::exp2(least);
  if (most < kMostExponent) range.most = std::exp2(most);
  return range;
}

}  // namespace weft::rule
