#include <vector>

#include "weft/plan/ops/operators.h"

namespace weft::ops {

const plan::OperatorSet& all() {
  static const plan::OperatorSet kSet(std::vector<const plan::Operator*>{
      // sources
      &input(), &parameter(), &state(), &constant(), &position(),
      // sums of products
      &contract(), &reduce(),
      // views and moves
      &broadcast(), &transpose(), &rename(), &split(), &merge(), &slice(), &pad(), &concat(), &cast(),
      &stop_gradient(),
      // pointwise
      &add(), &sub(), &mul(), &div(), &mod(), &pow(), &maximum(), &minimum(), &neg(), &abs(), &equal(),
      &not_equal(), &less(), &less_equal(), &greater(), &greater_equal(), &logical_and(), &logical_or(),
      &logical_not(), &select(), &exp(), &log(), &sqrt(), &rsqrt(), &sin(), &cos(), &tanh(), &erf(),
      &sigmoid(), &relu(), &gelu(), &gelu_tanh(), &silu(), &gelu_gradient(), &gelu_tanh_gradient(),
      &silu_gradient(),
      // windows
      &softmax(), &layer_norm(), &rms_norm(), &batch_norm(), &cross_entropy(), &cross_entropy_gradient(),
      &linear_cross_entropy(), &labelled(),
      // joins on a value
      &gather(), &scatter_add(), &top_k(), &slot(),
      // images
      &conv2d(), &conv2d_input_gradient(), &conv2d_weight_gradient(), &max_pool(), &max_pool_gradient(),
      &avg_pool(), &avg_pool_gradient(),
      // sequences and noise
      &attention(), &attention_gradient(), &attention_merge(), &rotary(), &recurrence(), &dropout(),
      // optimizers
      &sgd(), &momentum(), &adam(), &adamw(),
      // between ranks
      &all_reduce(), &reduce_scatter(), &all_gather(), &all_to_all(), &slice_across(), &addends(), &halo(),
      &broadcast_from(), &permute_ranks(), &local_exchange(),
      // made small for the wire
      &encode(), &decode()});
  return kSet;
}

}  // namespace weft::ops
