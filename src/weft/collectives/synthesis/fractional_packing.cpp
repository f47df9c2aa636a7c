#include "weft/collectives/synthesis/fractional_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/random.h"
#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

constexpr double kTiny = 1e-9;           // smaller reduced costs and pivots are rounding errors
constexpr double kRounding = 1e-6;       // smallest relative gain, given the perturbation
constexpr double kSpread = 1e-7;         // relative perturbation of right-hand sides, against degeneracy
constexpr std::int32_t kRefactor = 120;  // pivots between two inversions of the basis
constexpr std::int32_t kWarmPhases = 24;
constexpr double kWarmStep = 0.4;
constexpr std::int32_t kMostPivots = 200'000;
constexpr std::int32_t kMostNear = 12;
constexpr std::size_t kMostColumns = 6;  // kept, per row

// Rows: capacities, then groups. Variables: slacks of the capacities, the congestion, then columns.
//
//   load - congestion * capacity + slack = (nearly) 0
//   shares of a group                    = 1
class Simplex {
 public:
  Simplex(const std::vector<double>& capacities, std::int32_t groups)
      : limits_(capacities), links_(static_cast<std::int32_t>(capacities.size())), groups_(groups) {
    rows_ = links_ + groups_;
    Random random(1);
    const double most = *std::ranges::max_element(capacities);
    for (double& limit : limits_) limit /= most;  // scales numbers to about 1
    scale_ = most;
    right_.assign(at(rows_), 1);
    for (std::int32_t l = 0; l < links_; ++l)
      right_[at(l)] = kSpread * (1 + random.uniform()) * limits_[at(l)];
  }

  // Returns the gain of a full share of the column at the prices of the last solve().
  double add(PackedColumn column) {
    columns_.push_back(std::move(column));
    return duals_.empty() ? 0 : -reduced_cost(links_ + static_cast<std::int32_t>(columns_.size())) / scale_;
  }
  std::int32_t pivots() const { return pivots_; }

  // Initial basis: the first column of every group, and the congestion in the row of the link that
  // they load most.
  void start() {
    std::vector<double> load(at(links_), 0);
    std::vector<std::int32_t> first(at(groups_), -1);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::int32_t& mine = first[at(columns_[c].group)];
      if (mine >= 0) continue;
      mine = static_cast<std::int32_t>(c);
      for (const std::int32_t use : columns_[c].uses) load[at(use)] += 1;
    }
    std::int32_t worst = 0;
    for (std::int32_t l = 0; l < links_; ++l)
      if ((load[at(l)] - right_[at(l)]) / limits_[at(l)] >
          (load[at(worst)] - right_[at(worst)]) / limits_[at(worst)])
        worst = l;
    basis_.clear();
    for (std::int32_t l = 0; l < links_; ++l) basis_.push_back(l == worst ? links_ : l);
    for (std::int32_t g = 0; g < groups_; ++g) basis_.push_back(links_ + 1 + first[at(g)]);
    invert();
  }

  // Pivots until no slack or known column improves. Drops old non-basic columns first; useful ones
  // are generated again.
  void solve(const Deadline& deadline) {
    if (columns_.size() > kMostColumns * at(rows_)) forget_old();
    while (pivots_ < kMostPivots) {
      if (pivots_ % 16 == 0 && deadline.over()) return;
      find_duals();
      const std::int32_t enters = entering();
      if (enters < 0 || !pivot(enters)) return;
    }
  }

  double congestion() const {
    double value = 0;
    for (std::int32_t r = 0; r < rows_; ++r)
      if (basis_[at(r)] == links_) value = values_[at(r)];
    return value / scale_;
  }
  // Nonnegative prices of capacities, normalized so that prices * capacities add up to 1.
  std::vector<double> prices() const {
    std::vector<double> prices(at(links_));
    double sum = 0;
    for (std::int32_t l = 0; l < links_; ++l) {
      prices[at(l)] = std::max(0.0, -duals_[at(l)]);
      sum += prices[at(l)] * limits_[at(l)] * scale_;
    }
    for (double& price : prices) price /= sum;
    return prices;
  }

  std::vector<PackedColumn> shares() const {
    std::vector<PackedColumn> used;
    std::vector<double> sum(at(groups_), 0);
    for (std::int32_t r = 0; r < rows_; ++r) {
      if (basis_[at(r)] <= links_ || values_[at(r)] <= kTiny) continue;
      used.push_back(columns_[at(basis_[at(r)] - links_ - 1)]);
      used.back().share = values_[at(r)];
      sum[at(used.back().group)] += values_[at(r)];
    }
    for (PackedColumn& column : used) column.share /= sum[at(column.group)];
    std::ranges::stable_sort(used, {}, &PackedColumn::group);
    return used;
  }

 private:
  void forget_old() {
    std::vector<PackedColumn> kept;
    std::vector<std::int32_t> number(columns_.size(), -1);
    std::vector<bool> basic(columns_.size(), false);
    for (const std::int32_t variable : basis_)
      if (variable > links_) basic[at(variable - links_ - 1)] = true;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (basic[c] || c > columns_.size() / 2) {
        number[c] = static_cast<std::int32_t>(kept.size());
        kept.push_back(std::move(columns_[c]));
      }
    for (std::int32_t& variable : basis_)
      if (variable > links_) variable = links_ + 1 + number[at(variable - links_ - 1)];
    columns_ = std::move(kept);
  }

  double* row(std::int32_t r) { return inverse_.data() + at(r) * at(rows_); }

  template <class Visit>
  void each_entry(std::int32_t variable, Visit visit) const {
    if (variable < links_) return visit(variable, 1.0);
    if (variable == links_) {
      for (std::int32_t l = 0; l < links_; ++l) visit(l, -limits_[at(l)]);
      return;
    }
    const PackedColumn& column = columns_[at(variable - links_ - 1)];
    for (const std::int32_t use : column.uses) visit(use, 1.0);
    visit(links_ + column.group, 1.0);
  }

  // Gauss-Jordan elimination with partial pivoting.
  void invert() {
    const auto size = at(rows_);
    std::vector<double> matrix(size * size, 0);
    for (std::int32_t c = 0; c < rows_; ++c)
      each_entry(basis_[at(c)], [&](std::int32_t r, double value) { matrix[at(r) * size + at(c)] += value; });
    inverse_.assign(size * size, 0);
    for (std::size_t i = 0; i < size; ++i) inverse_[i * size + i] = 1;
    for (std::size_t c = 0; c < size; ++c) {
      std::size_t best = c;
      for (std::size_t r = c + 1; r < size; ++r)
        if (std::abs(matrix[r * size + c]) > std::abs(matrix[best * size + c])) best = r;
      if (best != c)
        for (std::size_t k = 0; k < size; ++k) {
          std::swap(matrix[best * size + k], matrix[c * size + k]);
          std::swap(inverse_[best * size + k], inverse_[c * size + k]);
        }
      const double factor = 1 / matrix[c * size + c];
      for (std::size_t k = 0; k < size; ++k) matrix[c * size + k] *= factor, inverse_[c * size + k] *= factor;
      for (std::size_t r = 0; r < size; ++r) {
        const double times = matrix[r * size + c];
        if (r == c || times == 0) continue;
        for (std::size_t k = c; k < size; ++k) matrix[r * size + k] -= times * matrix[c * size + k];
        for (std::size_t k = 0; k < size; ++k) inverse_[r * size + k] -= times * inverse_[c * size + k];
      }
    }
    values_.assign(size, 0);
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t k = 0; k < size; ++k) values_[r] += inverse_[r * size + k] * right_[k];
    since_ = 0;
  }

  double cost_of(std::int32_t variable) const {
    if (variable <= links_) return variable == links_ ? 1 : 0;
    return columns_[at(variable - links_ - 1)].cost * scale_;
  }

  void find_duals() {
    duals_.assign(at(rows_), 0);
    for (std::int32_t r = 0; r < rows_; ++r)
      if (const double cost = cost_of(basis_[at(r)]); cost != 0)
        for (std::int32_t k = 0; k < rows_; ++k) duals_[at(k)] += cost * row(r)[k];
  }

  double reduced_cost(std::int32_t variable) const {
    double cost = cost_of(variable);
    each_entry(variable, [&](std::int32_t r, double value) { cost -= duals_[at(r)] * value; });
    return cost;
  }

  std::int32_t entering() const {
    std::int32_t best = -1;
    double least = -kTiny;
    const auto consider = [&](std::int32_t variable) {
      const double cost = reduced_cost(variable);
      if (cost < least) least = cost, best = variable;
    };
    for (std::int32_t l = 0; l < links_; ++l) consider(l);
    for (std::size_t c = 0; c < columns_.size(); ++c) consider(links_ + 1 + static_cast<std::int32_t>(c));
    return best;
  }

  // Returns whether the variable could enter the basis.
  bool pivot(std::int32_t enters) {
    const auto size = at(rows_);
    std::vector<double> along(size, 0);
    each_entry(enters, [&](std::int32_t k, double value) {
      for (std::size_t r = 0; r < size; ++r) along[r] += inverse_[r * size + at(k)] * value;
    });
    std::int32_t leaves = -1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < size; ++r) {
      if (along[r] <= kTiny) continue;
      const double ratio = std::max(0.0, values_[r]) / along[r];
      if (ratio > least * (1 + 1e-12) || (ratio >= least && leaves >= 0 && along[r] <= along[at(leaves)]))
        continue;
      least = ratio;
      leaves = static_cast<std::int32_t>(r);
    }
    if (leaves < 0 || basis_[at(leaves)] == links_) return false;
    const double factor = 1 / along[at(leaves)];
    double* const to = row(leaves);
    for (std::size_t k = 0; k < size; ++k) to[k] *= factor;
    values_[at(leaves)] = least;
    for (std::size_t r = 0; r < size; ++r) {
      if (static_cast<std::int32_t>(r) == leaves || along[r] == 0) continue;
      double* const from = inverse_.data() + r * size;
      for (std::size_t k = 0; k < size; ++k) from[k] -= along[r] * to[k];
      values_[r] -= along[r] * least;
    }
    basis_[at(leaves)] = enters;
    ++pivots_;
    if (++since_ >= kRefactor) invert();
    return true;
  }

  std::vector<double> limits_;
  double scale_ = 1;
  std::int32_t links_, groups_, rows_ = 0;
  std::vector<PackedColumn> columns_;
  std::vector<double> right_, values_, duals_;  // per row
  std::vector<std::int32_t> basis_;             // per row: its basic variable
  std::vector<double> inverse_;                 // of the basis
  std::int32_t pivots_ = 0, since_ = 0;
};

}  // namespace

FractionalPacking pack_fractionally(const std::vector<double>& capacities, std::int32_t groups,
                                    const CheapestColumns& cheapest, double gap, const Deadline& deadline,
                                    double known) {
  FractionalPacking made;
  made.bound = known;
  Simplex simplex(capacities, groups);
  const auto price_of = [](const PackedColumn& column, const std::vector<double>& prices) {
    double sum = 0;
    for (const std::int32_t use : column.uses) sum += prices[at(use)];
    return sum;
  };
  // Adds the cheapest columns; the sum of their prices is a bound. Returns an upper bound on their
  // gain.
  std::vector<double> load;
  const auto generate = [&](const std::vector<double>& prices) {
    std::vector<double> least(at(groups), std::numeric_limits<double>::infinity()), gain(at(groups), 0);
    load.assign(prices.size(), 0);
    for (PackedColumn& column : cheapest(prices)) {
      const std::size_t group = at(column.group);
      least[group] = std::min(least[group], price_of(column, prices));
      for (const std::int32_t use : column.uses) load[at(use)] += 1 / capacities[at(use)];
      gain[group] = std::max(gain[group], simplex.add(std::move(column)));
    }
    made.bound = std::max(made.bound, std::accumulate(least.begin(), least.end(), 0.0));
    return std::accumulate(gain.begin(), gain.end(), 0.0);
  };
  const auto normalized = [&](std::vector<double> prices) {
    double sum = 0;
    for (std::size_t l = 0; l < prices.size(); ++l) sum += prices[l] * capacities[l];
    for (double& price : prices) price /= sum;
    return prices;
  };
  // Warm start: prices that rise with the load (Garg and Koenemann 1998) generate the first
  // columns.
  std::vector<double> prices(capacities.size());
  for (std::size_t l = 0; l < prices.size(); ++l) prices[l] = 1 / capacities[l];
  for (std::int32_t phase = 0; phase < kWarmPhases; ++phase) {
    if (deadline.over()) return made;
    prices = normalized(std::move(prices));
    generate(prices);
    const double most = *std::ranges::max_element(load);
    for (std::size_t l = 0; l < load.size(); ++l) prices[l] *= 1 + kWarmStep * load[l] / most;
  }
  simplex.start();
  std::int32_t near = 0;  // rounds within the gap, which only reduce the columns' cost
  for (std::int32_t before = -1; near < kMostNear; before = simplex.pivots()) {
    simplex.solve(deadline);
    made.congestion = simplex.congestion();
    if (deadline.over() || simplex.pivots() == before) break;
    const double gain = generate(simplex.prices());
    const bool is_near = made.congestion <= made.bound * (1 + gap);
    if (gain <= made.congestion * (is_near ? gap : kRounding)) break;
    near += is_near ? 1 : 0;
  }
  made.columns = simplex.shares();
  // The actual load, without the perturbation of the right-hand sides.
  load.assign(capacities.size(), 0);
  for (const PackedColumn& column : made.columns)
    for (const std::int32_t use : column.uses) load[at(use)] += column.share / capacities[at(use)];
  made.congestion = *std::ranges::max_element(load);
  return made;
}

}  // namespace weft::synthesis
