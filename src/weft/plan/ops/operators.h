// weft/plan/ops/operators.h -- every operator by name, and the set of them all.
#pragma once
#include "weft/plan/graph/operator.h"
#include "weft/plan/ops/operator.h"

namespace weft::ops {

// Sources: values that come from outside the plan, or from nothing.
const Operator& input();
const Operator& parameter();
const Operator& state();
const Operator& constant();
const Operator& position();
// Input, parameter or state: a source that has a name and is given its value.
bool is_source(const plan::Operator& op);
// What its attribute `layout` says, "" where it says nothing. REQUIRES: is_source(source.op())
std::string_view layout_of(const plan::NodeView& source);

// Sums of products, and other reductions.
const Operator& contract();
const Operator& reduce();

// The same elements under other names, in another place, or in part.
const Operator& broadcast();
const Operator& transpose();
const Operator& rename();
const Operator& split();
const Operator& merge();
const Operator& slice();
const Operator& pad();
const Operator& concat();
const Operator& cast();
const Operator& stop_gradient();

// Pointwise, all in pointwise.cpp. The words `and`, `or`, `not` are taken in C++.
const Operator& add();
const Operator& sub();
const Operator& mul();
const Operator& div();
const Operator& mod();
const Operator& pow();
const Operator& maximum();
const Operator& minimum();
const Operator& neg();
const Operator& abs();
const Operator& equal();
const Operator& not_equal();
const Operator& less();
const Operator& less_equal();
const Operator& greater();
const Operator& greater_equal();
const Operator& logical_and();
const Operator& logical_or();
const Operator& logical_not();
const Operator& select();
const Operator& exp();
const Operator& log();
const Operator& sqrt();
const Operator& rsqrt();
const Operator& sin();
const Operator& cos();
const Operator& tanh();
const Operator& erf();
const Operator& sigmoid();
const Operator& relu();
const Operator& gelu();
const Operator& gelu_tanh();

// Windows: functions of whole rows.
const Operator& softmax();
const Operator& layer_norm();
const Operator& rms_norm();
const Operator& batch_norm();
const Operator& cross_entropy();
const Operator& cross_entropy_gradient();
const Operator& linear_cross_entropy();
const Operator& labelled();

// Joins on a value, and routing.
const Operator& gather();
const Operator& scatter_add();
const Operator& top_k();
const Operator& slot();

// Images.
const Operator& conv2d();
const Operator& conv2d_input_gradient();
const Operator& conv2d_weight_gradient();
const Operator& max_pool();
const Operator& max_pool_gradient();
const Operator& avg_pool();
const Operator& avg_pool_gradient();

// Sequences and noise.
const Operator& attention();
const Operator& attention_gradient();
const Operator& attention_merge();
const Operator& rotary();
const Operator& recurrence();
const Operator& dropout();

// Optimizers.
const Operator& sgd();
const Operator& momentum();
const Operator& adam();
const Operator& adamw();

// Between the ranks of a mesh: the identity in the global view (communication.h).
const Operator& all_reduce();
const Operator& reduce_scatter();
const Operator& all_gather();
const Operator& all_to_all();
const Operator& slice_across();
const Operator& addends();
const Operator& halo();
const Operator& broadcast_from();
const Operator& permute_ranks();
// One rank's side of any of these, in the plan of that rank alone (local_exchange.h).
const Operator& local_exchange();

// Numbers made small for the wire, and back (codec.h).
const Operator& encode();
const Operator& decode();

// All of the above, in the order of this file: what a reader of plan text knows.
const plan::OperatorSet& all();

}  // namespace weft::ops
