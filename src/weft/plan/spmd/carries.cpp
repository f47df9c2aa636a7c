#include "weft/plan/spmd/carries.h"

#include <algorithm>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::spmd {
namespace {

using plan::Monoid;
using plan::NodeView;

bool is_one_of(const plan::Operator& op, std::initializer_list<const plan::Operator*> list) {
  return std::ranges::find(list, &op) != list.end();
}

bool all_of(const std::vector<bool>& addends) { return std::ranges::find(addends, false) == addends.end(); }

bool one_of(const std::vector<bool>& addends) { return std::ranges::count(addends, true) == 1; }

bool just(const std::vector<bool>& addends, std::initializer_list<std::size_t> operands) {
  for (std::size_t i = 0; i < addends.size(); ++i)
    if (addends[i] != (std::ranges::find(operands, i) != operands.end())) return false;
  return true;
}

// Moves, repeats or drops elements and may insert zeros. If all operands are addends, this works
// for any monoid, since combining zeros gives zero.
bool moves_elements(const plan::Operator& op) {
  return is_one_of(op, {&ops::transpose(), &ops::rename(), &ops::split(), &ops::merge(), &ops::slice(),
                        &ops::pad(), &ops::concat(), &ops::broadcast(), &ops::stop_gradient()});
}

// Whether the cast is linear. Dropping a fraction and converting to bool are not, and 8-bit floats
// must be scaled as a whole.
bool keeps_numbers(const NodeView& cast) {
  const plan::DType from = cast.input_type(0).dtype, to = cast.result_type(0).dtype;
  return to != plan::DType::boolean && !plan::is_f8(to) && !(is_integer(to) && is_real(from));
}

bool carries_sum(const NodeView& node, const std::vector<bool>& addends) {
  const plan::Operator& op = node.op();
  const bool real = node.result_count() > 0 && is_real(node.result_type(0).dtype);
  if (is_one_of(op, {&ops::add(), &ops::sub(), &ops::neg(), &ops::avg_pool(), &ops::avg_pool_gradient()}))
    return all_of(addends);
  if (&op == &ops::reduce()) return node.word(0) == "sum" || node.word(0) == "mean";
  if (&op == &ops::cast()) return keeps_numbers(node);
  if (is_one_of(op, {&ops::mul(), &ops::contract(), &ops::conv2d(), &ops::conv2d_input_gradient(),
                     &ops::conv2d_weight_gradient()}))
    return one_of(addends);
  if (&op == &ops::div()) return real && just(addends, {0});
  const ops::Pointwise* const row = ops::find_pointwise(op);
  if ((row != nullptr && row->is_slope) ||
      is_one_of(op, {&ops::rotary(), &ops::dropout(), &ops::max_pool_gradient()}))
    return just(addends, {0});
  if (is_one_of(op, {&ops::scatter_add(), &ops::recurrence()})) return just(addends, {1});
  if (&op == &ops::cross_entropy_gradient()) return just(addends, {2});
  return false;
}

bool carries_extreme(const NodeView& node, Monoid monoid) {
  const plan::Operator& op = node.op();
  if (&op == &ops::reduce()) return node.word(0) == plan::name(monoid);
  // An extreme is idempotent, so every rank may also use a whole operand.
  return &op == (monoid == Monoid::max ? &ops::maximum() : &ops::minimum());
}

}  // namespace

bool carries(const NodeView& node, Monoid monoid, const std::vector<bool>& addends) {
  const plan::Operator& op = node.op();
  if (moves_elements(op)) return all_of(addends);
  if (&op == &ops::select()) return just(addends, {1, 2});
  if (&op == &ops::gather()) return just(addends, {1});
  return monoid == Monoid::sum ? carries_sum(node, addends) : carries_extreme(node, monoid);
}

}  // namespace weft::spmd
