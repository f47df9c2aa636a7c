// weft/plan/ops/attention_geometry.h -- shared by attention and its gradient: index roles, masks and scores.
//
//   q[b,h,g,s,e]  k[b,h,t,e]  v[b,h,t,f]      over t, along s, inner e
//
//   rows    [b,h,g,s]   q's indices without the inner ones; k and v may lack some: shared heads
//   values  [f]         the indices that v adds, last in the result; may reuse an inner name
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {

// Attributes of both operators.
extern const std::array<plan::AttributeSpec, 9> kAttentionAttributes;
constexpr std::size_t kAttentionOver = 0, kAttentionAlong = 1, kAttentionInner = 2, kAttentionScale = 3,
                      kAttentionDivisor = 4, kAttentionCausal = 5, kAttentionWindow = 6, kAttentionBegin = 7,
                      kAttentionKeys = 8;
// Operands of both: queries, keys, values.
constexpr std::size_t kAttentionQ = 0, kAttentionK = 1, kAttentionV = 2;

struct AttentionGeometry {
  plan::Dim over, along;
  DimList rows, inner, values;
  double scale = 1, divisor = 1;
  bool causal = false;
  double window = 0;       // a query sees keys less than this far before it; infinite: all of them
  std::int64_t begin = 0;  // position of the first query minus that of the first key
  std::int64_t keys = 0;   // position of the first key, since these may be a block of all keys

  std::int64_t row_count() const { return points_of(rows); }
  bool has_window() const { return window < std::numeric_limits<double>::infinity(); }
  bool has_places() const { return causal || has_window(); }  // whether queries need their positions
  // Pairs of a query and a key that are not masked by position.
  double pairs() const;
  // Query s sees the keys [first_key(s), end_key(s)).
  std::int64_t first_key(std::int64_t query) const;
  std::int64_t end_key(std::int64_t query) const;

 private:
  std::int64_t reach() const;  // the window, in keys
};

// REQUIRES: the node's types were inferred.
AttentionGeometry attending(const plan::NodeView& node);

// Attention or its gradient.
bool is_attention_operator(const plan::Operator& op);

// The operand number of the mask, if there is one. REQUIRES: is_attention_operator(op)
std::size_t mask_of(const plan::Operator& op);

// Fails unless q, k and v (operands 0, 1, 2) and the mask (operand `mask`, if present) have
// matching types.
Result<AttentionGeometry> check_attention_geometry(const plan::NodeView& node, std::size_t mask);

// The dims of the result, rows and then values; and the dtype of the rows' log-sum-exp, at least 32
// bits.
DimList attention_result_dims(const AttentionGeometry& of);
plan::DType log_sum_dtype(plan::DType dtype);

// The scores of one row against all keys, computed as the definitions state.
template <class T>
class Scores {
 public:
  // `mask`: the operand number of the mask; the node may have fewer operands.
  Scores(const Evaluation<T>& at, const AttentionGeometry& of, std::size_t mask);

  // Computes a row: one score per key, and which keys are masked.
  void find(std::size_t row);
  const std::vector<T>& scores() const { return scores_; }
  const std::vector<char>& masked() const { return masked_; }
  // Replaces the scores by their softmax and returns their log-sum-exp. Over the field, where log
  // does not invert exp, returns the sum itself; only the attention operators read it.
  T share();
  // The softmax of a score, given that log-sum-exp.
  T probability(T score, T log_sum) const;
  T scaled(T score) const;  // applies the scale and the divisor

  const std::vector<std::int64_t> q_rows, k_rows, v_rows;    // start of each row
  const std::vector<std::int64_t> q_inner, k_inner;          // offsets of the summed elements
  const std::vector<std::int64_t> k_keys, v_keys, v_values;  // offsets of keys in k and v, and within a value

 private:
  const Evaluation<T>& at_;
  const AttentionGeometry& of_;
  std::vector<std::int64_t> mask_rows_, mask_keys_, positions_;
  std::size_t mask_;
  std::vector<T> scores_;
  std::vector<char> masked_;
};

template <class T>
Scores<T>::Scores(const Evaluation<T>& at, const AttentionGeometry& of, std::size_t mask)
    : q_rows(offsets_along(at.node().input_type(0), of.rows)),
      k_rows(offsets_along(at.node().input_type(1), of.rows)),
      v_rows(offsets_along(at.node().input_type(2), of.rows)),
      q_inner(offsets_along(at.node().input_type(0), of.inner)),
      k_inner(offsets_along(at.node().input_type(1), of.inner)),
      k_keys(offsets_along(at.node().input_type(1), {&of.over, 1})),
      v_keys(offsets_along(at.node().input_type(2), {&of.over, 1})),
      v_values(offsets_along(at.node().input_type(2), of.values)),
      at_(at),
      of_(of),
      mask_(mask),
      scores_(k_keys.size()),
      masked_(k_keys.size()) {
  if (mask < at.input_count()) {
    mask_rows_ = offsets_along(at.node().input_type(mask), of.rows);
    mask_keys_ = offsets_along(at.node().input_type(mask), {&of.over, 1});
  }
  // The query's position in each row: its offset in a value that has only that index.
  const plan::Type alone{plan::DType::i32, {&of.along, 1}};
  positions_ = offsets_along(alone, of.rows);
}

template <class T>
T Scores<T>::scaled(T score) const {
  if (of_.scale != 1) score *= at_.numbers.from(of_.scale);
  return of_.divisor != 1 ? at_.numbers.divide(score, at_.numbers.from(of_.divisor)) : score;
}

// Masked scores are -inf, which is an ordinary element of the field. So proofs hold for the same
// computation written with select and softmax. Positions are compared as pointwise operators do.
template <class T>
void Scores<T>::find(std::size_t row) {
  const auto& n = at_.numbers;
  const T* q = at_.input(0).data.data() + q_rows[row];
  const T place = n.from_integer(of_.keys + of_.begin + positions_[row]);
  for (std::size_t t = 0; t < scores_.size(); ++t) {
    const T* k = at_.input(1).data.data() + k_rows[row] + k_keys[t];
    T score = T();
    for (std::size_t e = 0; e < q_inner.size(); ++e) score += q[q_inner[e]] * k[k_inner[e]];
    const T key = n.from_integer(of_.keys + static_cast<std::int64_t>(t));
    bool hidden = of_.causal && n.less(place, key);
    if (of_.has_window()) hidden |= !n.less(place - key, n.from(of_.window));
    if (mask_ < at_.input_count())
      hidden |= at_.input(mask_).data[static_cast<std::size_t>(mask_rows_[row] + mask_keys_[t])] == n.from(0);
    masked_[t] = hidden ? 1 : 0;
    scores_[t] = hidden ? n.from(-std::numeric_limits<double>::infinity()) : scaled(score);
  }
}

template <class T>
T Scores<T>::share() {
  const auto& n = at_.numbers;
  T shift = T(), total = T();
  if constexpr (!std::is_same_v<T, Field>) {
    shift = scores_[0];
    for (const T& score : scores_) shift = n.max(shift, score);
    if (shift == n.least()) {  // all scores are -inf: zeros, as in softmax
      std::fill(scores_.begin(), scores_.end(), T());
      return n.least();
    }
  }
  for (T& score : scores_) total += score = n.apply(Function::exp, score - shift);
  for (T& score : scores_) score = n.divide(score, total);
  if constexpr (std::is_same_v<T, Field>) return total;
  return shift + n.apply(Function::log, total);
}

template <class T>
T Scores<T>::probability(T score, T log_sum) const {
  const auto& n = at_.numbers;
  if constexpr (std::is_same_v<T, Field>) return n.divide(n.apply(Function::exp, score), log_sum);
  return n.apply(Function::exp, score - log_sum);
}

}  // namespace weft::ops
