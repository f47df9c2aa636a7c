// weft/torch/calls.h -- the collectives of the backend: each checks its arguments on the calling thread
// and adds an operation. Included by backend.cpp only.
#pragma once
#include "backend.h"
#include "collectives.h"
#include "sparse.h"

namespace weft_torch {

// Options::asyncOp came with torch 2.x: false if the caller waits at once.
template <class Options>
auto at_once(const Options& options, int) -> decltype(static_cast<bool>(options.asyncOp)) {
  return !options.asyncOp;
}
template <class Options>
bool at_once(const Options&, long) {
  return false;
}

inline Tensors concatenate(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

inline WeftBackend::WorkResult WeftBackend::broadcast(Tensors& tensors,
                                                      const c10d::BroadcastOptions& options) {
  const at::Tensor tensor = check_one("broadcast", tensors);
  const int root = check_rank("broadcast", options.rootRank);
  return start(c10d::OpType::BROADCAST, "weft:broadcast", tensors, tensors, at_once(options, 0),
               [tensor, root, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::broadcast(group, tensor, root, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::allreduce(Tensors& tensors,
                                                      const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) return allreduce_sparse(tensors, options);
  const at::Tensor tensor = check_one("all_reduce", tensors);
  const Reduction reduction = reduction_of("all_reduce", options.reduceOp, tensor);
  return start(c10d::OpType::ALLREDUCE, "weft:all_reduce", tensors, tensors, at_once(options, 0),
               [tensor, reduction, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::all_reduce(group, tensor, reduction, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::allreduce_sparse(Tensors& tensors,
                                                             const c10d::AllreduceOptions& options) {
  require(tensors.size() == 1 && tensors.front().is_sparse() && tensors.front().device().is_cpu(),
          "weft all_reduce: expected one sparse CPU tensor");
  require(options.reduceOp.op_ == c10d::ReduceOp::SUM, "weft all_reduce: sparse tensors can only be summed");
  const at::Tensor tensor = tensors.front();
  // In place: also the caller's handles see the sum.
  return start(c10d::OpType::ALLREDUCE, "weft:all_reduce", tensors, tensors, at_once(options, 0),
               [tensor, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 const at::Tensor sum = collective::all_reduce_sparse(group, tensor, timeout);
                 const_cast<at::Tensor&>(tensor).copy_(sum);
               });
}

inline WeftBackend::WorkResult WeftBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  check_tensors("all_reduce_coalesced", tensors);
  const Reduction reduction = reduction_of("all_reduce_coalesced", options.reduceOp, tensors.front());
  return start(c10d::OpType::ALLREDUCE_COALESCED, "weft:all_reduce", tensors, tensors, at_once(options, 0),
               [tensors, reduction, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::all_reduce_coalesced(group, tensors, reduction, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor tensor = check_one("reduce", tensors);
  const int root = check_rank("reduce", options.rootRank);
  const Reduction reduction = reduction_of("reduce", options.reduceOp, tensor);
  return start(c10d::OpType::REDUCE, "weft:reduce", tensors, tensors, at_once(options, 0),
               [tensor, reduction, root, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::reduce(group, tensor, reduction, root, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  const at::Tensor input = check_one("all_gather", inputs);
  require(outputs.size() == 1, "weft all_gather: expected one list of outputs, found ", outputs.size());
  const Tensors list = outputs.front();
  check_list("all_gather", list, size_, input);
  return start(c10d::OpType::ALLGATHER, "weft:all_gather", inputs, list, at_once(options, 0),
               [list, input, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::all_gather(group, list, input, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                            const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

inline WeftBackend::WorkResult WeftBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  require(outputs.size() == inputs.size(), "weft all_gather_into_tensor: ", outputs.size(), " outputs for ",
          inputs.size(), " inputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_tensor("all_gather_into_tensor", outputs[i]);
    check_tensor("all_gather_into_tensor", inputs[i]);
    require(outputs[i].scalar_type() == inputs[i].scalar_type() &&
                outputs[i].numel() == inputs[i].numel() * size_,
            "weft all_gather_into_tensor: the output has ", outputs[i].numel(), " x ",
            outputs[i].scalar_type(), ", expected ", inputs[i].numel() * size_, " x ",
            inputs[i].scalar_type());
  }
  return start(c10d::OpType::_ALLGATHER_BASE, "weft:all_gather", inputs, outputs, at_once(options, 0),
               [outputs, inputs, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 for (size_t i = 0; i < outputs.size(); ++i)
                   collective::all_gather_into(group, outputs[i], inputs[i], timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::allgather_coalesced(std::vector<Tensors>& outputs,
                                                                Tensors& inputs,
                                                                const c10d::AllgatherOptions& options) {
  require(outputs.size() == static_cast<size_t>(size_),
          "weft all_gather_coalesced: expected a list for each of ", size_, " ranks, found ", outputs.size());
  std::vector<Tensors> lists(inputs.size());  // by input
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const Tensors& of_rank : outputs) {
      require(of_rank.size() == inputs.size(), "weft all_gather_coalesced: ", of_rank.size(), " outputs for ",
              inputs.size(), " inputs");
      lists[i].push_back(of_rank[i]);
    }
    check_tensor("all_gather_coalesced", inputs[i]);
    check_list("all_gather_coalesced", lists[i], size_, inputs[i]);
  }
  return start(c10d::OpType::ALLGATHER_COALESCED, "weft:all_gather", inputs, concatenate(outputs),
               at_once(options, 0),
               [lists, inputs, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 for (size_t i = 0; i < inputs.size(); ++i)
                   collective::all_gather(group, lists[i], inputs[i], timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                   const c10d::GatherOptions& options) {
  const at::Tensor input = check_one("gather", inputs);
  const int root = check_rank("gather", options.rootRank);
  Tensors list;
  if (rank_ == root) {
    require(outputs.size() == 1, "weft gather: rank ", root, " needs one list of outputs, found ",
            outputs.size());
    list = outputs.front();
    check_list("gather", list, size_, input);
  } else {
    require(outputs.empty(), "weft gather: only rank ", root, " has outputs, found some on rank ", rank_);
  }
  return start(c10d::OpType::GATHER, "weft:gather", inputs, list, at_once(options, 0),
               [list, input, root, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::gather(group, list, input, root, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                    const c10d::ScatterOptions& options) {
  const at::Tensor output = check_one("scatter", outputs);
  const int root = check_rank("scatter", options.rootRank);
  Tensors list;
  if (rank_ == root) {
    require(inputs.size() == 1, "weft scatter: rank ", root, " needs one list of inputs, found ",
            inputs.size());
    list = inputs.front();
    check_list("scatter", list, size_, output);
  } else {
    require(inputs.empty(), "weft scatter: only rank ", root, " has inputs, found some on rank ", rank_);
  }
  return start(c10d::OpType::SCATTER, "weft:scatter", list, outputs, at_once(options, 0),
               [output, list, root, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::scatter(group, output, list, root, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                           const c10d::ReduceScatterOptions& options) {
  const at::Tensor output = check_one("reduce_scatter", outputs);
  require(inputs.size() == 1 && inputs.front().size() == static_cast<size_t>(size_),
          "weft reduce_scatter: expected a tensor for each of ", size_, " ranks");
  const Tensors list = inputs.front();
  check_tensors("reduce_scatter", list);
  const at::Tensor& own = list[static_cast<size_t>(rank_)];
  require(own.scalar_type() == output.scalar_type() && own.numel() == output.numel(),
          "weft reduce_scatter: the output has ", output.numel(), " x ", output.scalar_type(),
          ", and the input for ", "rank ", rank_, " has ", own.numel(), " x ", own.scalar_type());
  const Reduction reduction = reduction_of("reduce_scatter", options.reduceOp, output);
  return start(c10d::OpType::REDUCE_SCATTER, "weft:reduce_scatter", list, outputs, at_once(options, 0),
               [output, list, reduction, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::reduce_scatter(group, output, list, reduction, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                                 const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

inline WeftBackend::WorkResult WeftBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  require(!outputs.empty() && outputs.size() == inputs.size(), "weft reduce_scatter_tensor: ", outputs.size(),
          " outputs for ", inputs.size(), " inputs");
  std::vector<Reduction> reductions;
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_tensor("reduce_scatter_tensor", outputs[i]);
    check_tensor("reduce_scatter_tensor", inputs[i]);
    require(outputs[i].scalar_type() == inputs[i].scalar_type() &&
                inputs[i].numel() == outputs[i].numel() * size_,
            "weft reduce_scatter_tensor: the input has ", inputs[i].numel(), " x ", inputs[i].scalar_type(),
            ", expected ", outputs[i].numel() * size_, " x ", outputs[i].scalar_type());
    reductions.push_back(reduction_of("reduce_scatter_tensor", options.reduceOp, inputs[i]));
  }
  return start(c10d::OpType::_REDUCE_SCATTER_BASE, "weft:reduce_scatter", inputs, outputs,
               at_once(options, 0),
               [outputs, inputs, reductions, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 for (size_t i = 0; i < outputs.size(); ++i)
                   collective::reduce_scatter(group, outputs[i], {inputs[i]}, reductions[i], timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                          std::vector<int64_t>& output_splits,
                                                          std::vector<int64_t>& input_splits,
                                                          const c10d::AllToAllOptions& options) {
  check_tensors("all_to_all_single", {output, input});
  const auto check_splits = [&](const char* side, const std::vector<int64_t>& splits,
                                const at::Tensor& tensor) {
    const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (splits.empty()) {
      require(rows % size_ == 0, "weft all_to_all_single: the ", side, " has ", rows, " rows, which ", size_,
              " ranks do not divide");
      return;
    }
    require(splits.size() == static_cast<size_t>(size_), "weft all_to_all_single: expected ", size_, " ",
            side, " splits, found ", splits.size());
    int64_t sum = 0;
    for (const int64_t split : splits) {
      require(split >= 0, "weft all_to_all_single: a split is negative: ", split);
      sum += split;
    }
    require(sum == rows, "weft all_to_all_single: the ", side, " splits add up to ", sum, ", and it has ",
            rows, " rows");
  };
  check_splits("output", output_splits, output);
  check_splits("input", input_splits, input);
  return start(c10d::OpType::ALLTOALL_BASE, "weft:all_to_all", {input}, {output}, at_once(options, 0),
               [output, input, output_splits, input_splits, timeout = limit(options.timeout)](Group& group,
                                                                                              WeftWork&) {
                 collective::all_to_all_single(group, output, input, output_splits, input_splits, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllToAllOptions& options) {
  check_tensors("all_to_all", inputs);
  check_tensors("all_to_all", outputs);
  require(inputs.size() == static_cast<size_t>(size_) && outputs.size() == static_cast<size_t>(size_),
          "weft all_to_all: expected ", size_, " inputs and outputs, found ", inputs.size(), " and ",
          outputs.size());
  require(inputs.front().scalar_type() == outputs.front().scalar_type(), "weft all_to_all: inputs are ",
          inputs.front().scalar_type(), ", outputs ", outputs.front().scalar_type());
  return start(c10d::OpType::ALLTOALL, "weft:all_to_all", inputs, outputs, at_once(options, 0),
               [outputs, inputs, timeout = limit(options.timeout)](Group& group, WeftWork&) {
                 collective::all_to_all(group, outputs, inputs, timeout);
               });
}

inline WeftBackend::WorkResult WeftBackend::barrier(const c10d::BarrierOptions& options) {
  return start(
      c10d::OpType::BARRIER, "weft:barrier", {}, {}, at_once(options, 0),
      [timeout = limit(options.timeout)](Group& group, WeftWork&) { collective::barrier(group, timeout); });
}

}  // namespace weft_torch
