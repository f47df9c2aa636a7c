// weft/torch/collectives.h -- the bodies of the collectives: from tensors to calls of weft_comm.h.
// They run on a thread of the group's queue, one at a time.
#pragma once
#include <numeric>

#include "group.h"
#include "tensors.h"

namespace weft_torch {
namespace collective {

inline weft_call make(int kind, const void* input, void* output, int64_t count, int type, Milliseconds timeout) {
  weft_call call{};
  call.kind = kind;
  call.input = input;
  call.output = output;
  call.count = count;
  call.type = type;
  call.priority = WEFT_NORMAL;
  call.timeout_ms = timeout.count();
  return call;
}

inline size_t bytes_of(const Tensors& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), size_t{0},
                         [](size_t sum, const at::Tensor& each) { return sum + each.nbytes(); });
}

inline void flatten(const Tensors& tensors, char* to) {
  for (const at::Tensor& each : tensors) {
    copy_in(to, each);
    to += each.nbytes();
  }
}

inline void unflatten(const char* from, const Tensors& tensors) {
  for (const at::Tensor& each : tensors) {
    copy_out(each, from);
    from += each.nbytes();
  }
}

// The tensors' elements one after the other, in their own memory if they are adjacent.
inline char* flat(Group& group, const Tensors& tensors) {
  if (char* const start = adjacent(tensors)) return start;
  char* const start = group.scratch(bytes_of(tensors));
  flatten(tensors, start);
  return start;
}

// The same as a destination: write_back() distributes it.
class FlatOutput {
 public:
  FlatOutput(Group& group, const Tensors& tensors) : tensors_(tensors), start_(adjacent(tensors)) {
    is_copy_ = start_ == nullptr;
    if (is_copy_) start_ = group.scratch(bytes_of(tensors));
  }
  char* data() const { return start_; }
  void write_back() const {
    if (is_copy_) unflatten(start_, tensors_);
  }

 private:
  const Tensors& tensors_;
  char* start_;
  bool is_copy_ = false;
};

inline void broadcast(Group& group, const at::Tensor& tensor, int root, Milliseconds timeout) {
  const Dense dense(tensor);
  const Element element = element_of(tensor);
  weft_call call = make(WEFT_BROADCAST, dense.data(), dense.data(), tensor.numel() * element.per_item, element.type,
                        timeout);
  call.root = root;
  group.run(call, "broadcast");
  if (group.rank() != root) dense.write_back();
}

inline void scale(const at::Tensor& tensor, const Reduction& reduction) {
  if (reduction.scales) const_cast<at::Tensor&>(tensor).mul_(reduction.factor);
}

inline void all_reduce(Group& group, const at::Tensor& tensor, const Reduction& reduction, Milliseconds timeout) {
  scale(tensor, reduction);
  const Dense dense(tensor);
  weft_call call = make(WEFT_ALL_REDUCE, dense.data(), dense.data(), tensor.numel(), reduction.type, timeout);
  call.op = reduction.op;
  group.run(call, "all_reduce");
  dense.write_back();
}

// Small tensors in one call, large ones without a copy.
inline void all_reduce_coalesced(Group& group, const Tensors& tensors, const Reduction& reduction,
                                 Milliseconds timeout) {
  constexpr size_t kLarge = 1 << 20;
  if (bytes_of(tensors) > kLarge || tensors.size() == 1) {
    for (const at::Tensor& each : tensors) all_reduce(group, each, reduction, timeout);
    return;
  }
  for (const at::Tensor& each : tensors) scale(each, reduction);
  char* const start = group.scratch(bytes_of(tensors));
  flatten(tensors, start);
  const auto count = static_cast<int64_t>(bytes_of(tensors) / tensors.front().element_size());
  weft_call call = make(WEFT_ALL_REDUCE, start, start, count, reduction.type, timeout);
  call.op = reduction.op;
  group.run(call, "all_reduce_coalesced");
  unflatten(start, tensors);
}

// The result is on the root only; other tensors keep their values.
inline void reduce(Group& group, const at::Tensor& tensor, const Reduction& reduction, int root,
                   Milliseconds timeout) {
  const at::Tensor input = reduction.scales ? tensor.mul(reduction.factor) : tensor;
  const Dense dense(input);
  weft_call call = make(WEFT_REDUCE, dense.data(), group.rank() == root ? dense.data() : nullptr, tensor.numel(),
                        reduction.type, timeout);
  call.op = reduction.op;
  call.root = root;
  group.run(call, "reduce");
  if (group.rank() != root) return;
  if (reduction.scales) {
    const_cast<at::Tensor&>(tensor).copy_(input);
  } else {
    dense.write_back();
  }
}

inline void all_gather(Group& group, const Tensors& outputs, const at::Tensor& input, Milliseconds timeout) {
  const Dense dense(input);
  const FlatOutput flat_output(group, outputs);
  const Element element = element_of(input);
  group.run(make(WEFT_ALL_GATHER, dense.data(), flat_output.data(), input.numel() * element.per_item, element.type,
                 timeout),
            "all_gather");
  flat_output.write_back();
}

inline void all_gather_into(Group& group, const at::Tensor& output, const at::Tensor& input, Milliseconds timeout) {
  const Dense dense_input(input), dense_output(output);
  const Element element = element_of(input);
  group.run(make(WEFT_ALL_GATHER, dense_input.data(), dense_output.data(), input.numel() * element.per_item,
                 element.type, timeout),
            "all_gather_into_tensor");
  dense_output.write_back();
}

inline void gather(Group& group, const Tensors& outputs, const at::Tensor& input, int root, Milliseconds timeout) {
  const Dense dense(input);
  const Element element = element_of(input);
  weft_call call =
      make(WEFT_GATHER, dense.data(), nullptr, input.numel() * element.per_item, element.type, timeout);
  call.root = root;
  if (group.rank() != root) return group.run(call, "gather");
  const FlatOutput flat_output(group, outputs);
  call.output = flat_output.data();
  group.run(call, "gather");
  flat_output.write_back();
}

inline void scatter(Group& group, const at::Tensor& output, const Tensors& inputs, int root, Milliseconds timeout) {
  const Dense dense(output);
  const Element element = element_of(output);
  const void* const input = group.rank() == root ? flat(group, inputs) : nullptr;
  weft_call call =
      make(WEFT_SCATTER, input, dense.data(), output.numel() * element.per_item, element.type, timeout);
  call.root = root;
  group.run(call, "scatter");
  dense.write_back();
}

// Inputs may have different sizes: input r has the size of rank r's output.
inline void reduce_scatter(Group& group, const at::Tensor& output, const Tensors& inputs,
                           const Reduction& reduction, Milliseconds timeout) {
  char* input = flat(group, inputs);
  at::Tensor scaled;
  if (reduction.scales) {
    scaled = at::from_blob(input, {static_cast<int64_t>(bytes_of(inputs) / output.element_size())}, output.options())
                 .mul(reduction.factor);
    input = static_cast<char*>(scaled.data_ptr());
  }
  const Dense dense(output);
  weft_call call = make(WEFT_REDUCE_SCATTER, input, dense.data(), output.numel(), reduction.type, timeout);
  call.op = reduction.op;
  std::vector<int64_t> counts;
  bool equal = true;
  for (const at::Tensor& each : inputs) {
    counts.push_back(each.numel());
    equal &= counts.back() == counts.front();
  }
  if (!equal) {
    call.counts = counts.data();
    call.counts_length = static_cast<int64_t>(counts.size());
    call.count = 0;
  }
  group.run(call, "reduce_scatter");
  dense.write_back();
}

// Blocks along the first dimension; empty splits: equal blocks.
inline void all_to_all_single(Group& group, const at::Tensor& output, const at::Tensor& input,
                              const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits,
                              Milliseconds timeout) {
  const Dense dense_input(input), dense_output(output);
  const Element element = element_of(input);
  const int64_t ranks = group.size();
  if (output_splits.empty() && input_splits.empty()) {
    group.run(make(WEFT_ALL_TO_ALL, dense_input.data(), dense_output.data(), input.numel() / ranks * element.per_item,
                   element.type, timeout),
              "all_to_all_single");
  } else {
    const auto counts = [&](const std::vector<int64_t>& splits, const at::Tensor& tensor) {
      const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
      const int64_t row = rows == 0 ? 0 : tensor.numel() / rows * element.per_item;
      std::vector<int64_t> made(static_cast<size_t>(ranks), rows / ranks * row);
      for (size_t rank = 0; rank < splits.size(); ++rank) made[rank] = splits[rank] * row;
      return made;
    };
    const std::vector<int64_t> give = counts(input_splits, input), take = counts(output_splits, output);
    library().set_timeout(group.comm(), timeout.count());
    group.check(library().all_to_allv(group.comm(), dense_input.data(), give.data(), dense_output.data(), take.data(),
                                      element.type),
                "all_to_all_single");
  }
  dense_output.write_back();
}

inline void all_to_all(Group& group, const Tensors& outputs, const Tensors& inputs, Milliseconds timeout) {
  const Element element = element_of(inputs.front());
  std::vector<int64_t> give, take;
  for (const at::Tensor& each : inputs) give.push_back(each.numel() * element.per_item);
  for (const at::Tensor& each : outputs) take.push_back(each.numel() * element.per_item);
  // The scratch memory holds both sides, so both are sized before either is filled.
  const size_t bytes = bytes_of(inputs);
  char* const start = group.scratch(bytes + bytes_of(outputs));
  flatten(inputs, start);
  library().set_timeout(group.comm(), timeout.count());
  group.check(library().all_to_allv(group.comm(), start, give.data(), start + bytes, take.data(), element.type),
              "all_to_all");
  unflatten(start + bytes, outputs);
}

inline void barrier(Group& group, Milliseconds timeout) {
  group.run(make(WEFT_BARRIER, nullptr, nullptr, 0, WEFT_U8, timeout), "barrier");
}

}  // namespace collective
}  // namespace weft_torch
