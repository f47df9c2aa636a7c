// weft/runtime/exec/call_types.h -- converts plan dtypes and monoids to communicator types.
#pragma once
#include "weft/base/check.h"
#include "weft/communication/comm/call.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/layout.h"

namespace weft::exec {

inline comm::ElementType element_type_of(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::f32: return comm::ElementType::f32;
    case plan::DType::f64: return comm::ElementType::f64;
    case plan::DType::bf16: return comm::ElementType::bf16;
    case plan::DType::f16: return comm::ElementType::f16;
    case plan::DType::i32: return comm::ElementType::i32;
    case plan::DType::i64: return comm::ElementType::i64;
    case plan::DType::boolean:
    case plan::DType::f8e4m3:  // sent as bytes, never reduced
    case plan::DType::f8e5m2: return comm::ElementType::u8;
  }
  WEFT_CHECK(false, "an element type that does not exist");
  return comm::ElementType::f32;
}

inline comm::ReduceOp reduce_op_of(plan::Monoid monoid) {
  switch (monoid) {
    case plan::Monoid::max: return comm::ReduceOp::max;
    case plan::Monoid::min: return comm::ReduceOp::min;
    default: return comm::ReduceOp::sum;
  }
}

}  // namespace weft::exec
