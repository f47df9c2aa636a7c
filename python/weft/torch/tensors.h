// weft/torch/tensors.h -- tensors as Weft sees them: memory, a count, a type, an operation.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "text.h"
#include "weft_comm.h"

namespace weft_torch {

using Tensors = std::vector<at::Tensor>;

// The type of weft_comm.h, or -1.
inline int native_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return WEFT_F64;
    case at::kFloat: return WEFT_F32;
    case at::kHalf: return WEFT_F16;
    case at::kBFloat16: return WEFT_BF16;
    case at::kChar: return WEFT_I8;
    case at::kInt: return WEFT_I32;
    case at::kLong: return WEFT_I64;
    case at::kByte: return WEFT_U8;
    case at::kShort: return WEFT_I16;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case at::ScalarType::UInt16: return WEFT_U16;
    case at::ScalarType::UInt32: return WEFT_U32;
    case at::ScalarType::UInt64: return WEFT_U64;
#endif
    default: return -1;
  }
}

// How a collective that only moves data sees a tensor: other types are sequences of bytes.
struct Element {
  int type = WEFT_U8;
  int64_t per_item = 1;  // elements per item of the tensor
};

inline Element element_of(const at::Tensor& tensor) {
  const int type = native_type(tensor.scalar_type());
  if (type >= 0) return {type, 1};
  return {WEFT_U8, static_cast<int64_t>(tensor.element_size())};
}

inline void check_tensor(const char* call, const at::Tensor& tensor) {
  require(tensor.layout() == at::kStrided, "weft ", call, ": expected a dense tensor, found ",
          tensor.is_sparse() ? "a sparse one" : "another layout");
  require(tensor.device().is_cpu(), "weft ", call, ": expected a CPU tensor, found one on ", tensor.device(),
          "; use the backend \"cpu:weft,cuda:nccl\" for both");
}

inline void check_tensors(const char* call, const Tensors& tensors) {
  require(!tensors.empty(), "weft ", call, ": expected at least one tensor");
  for (const at::Tensor& each : tensors) {
    check_tensor(call, each);
    require(each.scalar_type() == tensors.front().scalar_type(), "weft ", call,
            ": expected tensors of one type, found ", tensors.front().scalar_type(), " and ",
            each.scalar_type());
  }
}

inline at::Tensor& check_one(const char* call, Tensors& tensors) {
  require(tensors.size() == 1, "weft ", call, ": expected one tensor, found ", tensors.size());
  check_tensor(call, tensors.front());
  return tensors.front();
}

// A list with one tensor per rank, each with the type and size of `like`.
inline void check_list(const char* call, const Tensors& list, int ranks, const at::Tensor& like) {
  require(list.size() == static_cast<size_t>(ranks), "weft ", call, ": expected a tensor for each of ", ranks,
          " ranks, found ", list.size());
  for (size_t rank = 0; rank < list.size(); ++rank) {
    check_tensor(call, list[rank]);
    require(list[rank].scalar_type() == like.scalar_type() && list[rank].numel() == like.numel(), "weft ",
            call, ": the tensor for rank ", rank, " has ", list[rank].numel(), " x ",
            list[rank].scalar_type(), ", expected ", like.numel(), " x ", like.scalar_type());
  }
}

// A tensor's elements in logical order: its own memory if it is contiguous, otherwise a copy.
class Dense {
 public:
  explicit Dense(const at::Tensor& tensor) : tensor_(tensor) {
    is_copy_ = !tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg();
    memory_ = is_copy_ ? tensor.resolve_conj().resolve_neg().contiguous() : tensor;
  }
  void* data() const { return memory_.data_ptr(); }
  size_t bytes() const { return memory_.nbytes(); }
  // After the memory has changed.
  void write_back() const {
    if (is_copy_) const_cast<at::Tensor&>(tensor_).copy_(memory_);
  }

 private:
  at::Tensor tensor_, memory_;
  bool is_copy_ = false;
};

inline void copy_in(char* to, const at::Tensor& from) {
  const Dense dense(from);
  if (dense.bytes() > 0) std::memcpy(to, dense.data(), dense.bytes());
}

inline void copy_out(const at::Tensor& to, const char* from) {
  const Dense dense(to);
  if (dense.bytes() > 0) std::memcpy(dense.data(), from, dense.bytes());
  dense.write_back();
}

// The start of the memory if the tensors are contiguous and follow each other in it, otherwise null.
inline char* adjacent(const Tensors& tensors) {
  char* next = static_cast<char*>(tensors.front().data_ptr());
  for (const at::Tensor& each : tensors) {
    if (!each.is_contiguous() || each.is_conj() || each.is_neg() || each.data_ptr() != next) return nullptr;
    next += each.nbytes();
  }
  return static_cast<char*>(tensors.front().data_ptr());
}

// A reduction: type and operation of weft_comm.h, and the factor of PREMUL_SUM.
struct Reduction {
  int type = WEFT_F32, op = WEFT_SUM;
  bool scales = false;
  double factor = 1;
};

// torch 1.13 has a list of factors, later versions one.
template <class Supplement>
auto tensor_factor(const Supplement& supplement, int) -> decltype(supplement.tensor_factors.front()) {
  return supplement.tensor_factors.front();
}
template <class Supplement>
auto tensor_factor(const Supplement& supplement, long) -> decltype((supplement.tensor_factor)) {
  return supplement.tensor_factor;
}
template <class Supplement>
auto has_tensor_factor(const Supplement& supplement, int) -> decltype(supplement.tensor_factors.empty()) {
  return !supplement.tensor_factors.empty();
}
template <class Supplement>
auto has_tensor_factor(const Supplement& supplement, long) -> decltype(supplement.tensor_factor.defined()) {
  return supplement.tensor_factor.defined();
}

inline double premultiplied_by(const c10d::ReduceOp& op) {
  const auto* const supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  require(supplement != nullptr, "weft: PREMUL_SUM needs a factor");
  if (!has_tensor_factor(*supplement, 0)) return supplement->double_factor;
  const at::Tensor factor = tensor_factor(*supplement, 0);
  require(factor.numel() == 1, "weft: PREMUL_SUM needs one factor, found ", factor.numel());
  return factor.item<double>();
}

inline Reduction reduction_of(const char* call, const c10d::ReduceOp& op, const at::Tensor& tensor) {
  using Op = c10d::ReduceOp;
  static const char* const names[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                      "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  static const int ops[] = {WEFT_SUM, WEFT_AVG, WEFT_PRODUCT, WEFT_MIN, WEFT_MAX,
                            WEFT_AND, WEFT_OR,  WEFT_XOR,     WEFT_SUM};
  const auto which = static_cast<size_t>(op.op_);
  require(which <= static_cast<size_t>(Op::PREMUL_SUM), "weft ", call, ": unknown reduction ", which);
  const at::ScalarType type = tensor.scalar_type();
  const char* const name = names[which];
  const bool is_bitwise = op.op_ == Op::BAND || op.op_ == Op::BOR || op.op_ == Op::BXOR;
  const auto refuse = [&](const char* types) {
    require(false, "weft ", call, ": Cannot use ReduceOp.", name, " with tensors of ", type, "; it needs ",
            types);
  };
  Reduction made;
  made.op = ops[which];
  if (type == at::kBool) {  // one byte of 0 or 1; a sum is "any", as with NCCL
    made.type = WEFT_U8;
    if (op.op_ == Op::AVG || op.op_ == Op::PREMUL_SUM) refuse("numbers");
    if (op.op_ == Op::SUM) made.op = WEFT_MAX;
    if (op.op_ == Op::PRODUCT) made.op = WEFT_MIN;
    return made;
  }
  made.type = native_type(type);
  if (made.type < 0) refuse("f64, f32, f16, bf16 or integers");
  if (is_bitwise && !at::isIntegralType(type, true)) refuse("integers");
  if (op.op_ == Op::PREMUL_SUM) {
    if (!at::isFloatingType(type)) refuse("floating-point numbers");
    made.scales = true;
    made.factor = premultiplied_by(op);
  }
  return made;
}

}  // namespace weft_torch
