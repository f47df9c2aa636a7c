#include "weft/plan/ops/all.h"

#include <vector>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::ops {

namespace {

std::vector<const plan::Operator*> listed() {
  std::vector<const plan::Operator*> list = {// sources
                                             &input(), &parameter(), &state(), &constant(), &position(),
                                             // sums of products
                                             &contract(), &reduce(),
                                             // views and moves
                                             &broadcast(), &transpose(), &rename(), &split(), &merge(),
                                             &slice(), &pad(), &concat(), &cast(), &stop_gradient()};
  for (std::size_t row = 0; row < pointwise_rows().size(); ++row) list.push_back(&pointwise_operator(row));
  const std::initializer_list<const plan::Operator*> others = {
      // windows
      &softmax(), &layer_norm(), &rms_norm(), &batch_norm(), &cross_entropy(), &cross_entropy_gradient(),
      &linear_cross_entropy(), &labelled(),
      // joins on a value, and routing
      &gather(), &scatter_add(), &top_k(), &slot(),
      // images
      &conv2d(), &conv2d_input_gradient(), &conv2d_weight_gradient(), &max_pool(), &max_pool_gradient(),
      &avg_pool(), &avg_pool_gradient(),
      // sequences and noise
      &attention(), &attention_gradient(), &attention_merge(), &rotary(), &recurrence(), &dropout(),
      // optimizers
      &sgd(), &momentum(), &adam(), &adamw(),
      // communication between ranks
      &all_reduce(), &reduce_scatter(), &all_gather(), &all_to_all(), &slice_across(), &addends(), &halo(),
      &broadcast_from(), &permute_ranks(), &local_exchange(),
      // codecs
      &encode(), &decode()};
  list.insert(list.end(), others);
  return list;
}

}  // namespace

const plan::OperatorSet& all() {
  static const plan::OperatorSet kSet(listed());
  return kSet;
}

}  // namespace weft::ops
