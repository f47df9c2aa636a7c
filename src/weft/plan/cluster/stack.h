// weft/plan/cluster/stack.h -- what the software that trains does differently from Weft's own runtime.
//
//   CREATE STACK nanotron VERSION '2024' (host_layer = 4.5 ms, elementwise = 2.2, reserve = 0.06, ...)
//
// A plan says what is computed and communicated. A stack says how well its kernels do that, what the host adds, what
// overlaps, what recomputation repeats, and which memory is taken besides the plan's tensors. The stack `weft` is the
// default: every field as below.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/hash.h"
#include "weft/base/units.h"

namespace weft::cluster {

// The dtype in which products by weights run.
enum class ProductFormat : std::uint8_t { plan, f8, nvfp4 };

struct Stack {
  std::string name = "weft", version;

  // Kernels. Shares are of the device's measured rates; `elementwise` and `optimizer` multiply the bytes that loops
  // over elements and updates move, which is more than one pass where kernels are not fused.
  double products = 1, attention = 1, attention_gradient = 1;
  double elementwise = 1, optimizer = 1;
  double quantize = 0;  // bytes moved per byte of a product's operands to make them f8
  // Time of an f8 product, relative to the bf16 product's at the ratio of their peak rates. 0: as the device's
  // tables have it, which are of inference kernels.
  double f8_time = 0;
  double fused_attention = 1;

  // The host launches kernels: a lower bound of a layer's forward and backward pass together, by micro-batch; more
  // of it with pipeline stages, and for each further tensor-parallel rank there; and what a pass of a stage and a
  // step take besides.
  double host_layer = 0, host_layer_staged = 0, host_layer_staged_rank = 0;
  double host_pass = 0, host_step = 0;

  // Communication. `collectives` multiplies the time of collectives within passes; `exposed_reduce` and
  // `exposed_gather` are the least shares of gradient sums and parameter gathers that are not hidden where they
  // overlap passes.
  double collectives = 1, exposed_reduce = 0, exposed_gather = 0;
  double exposed_sends = 0;  // share of the time of a send that its stage waits

  double repeats_layers = 0;  // full recomputation repeats whole layers, not only what is needed

  // 1: every pipeline stage has the same number of layers. 0: stages take equal time.
  double equal_layers = 0;
  // 1: with stages, sharded parameters are gathered once per step and kept, and gradients are summed once.
  double gathers_once = 0;

  // Memory. `kept` and `gradients` multiply bytes of activations and of gradients, `working` those of a running pass.
  // Besides the plan's: `logits` is bytes per logit, `weight_gradients` is bytes per byte of the largest weights whose
  // gradients are made at once, `workspace` is the libraries' part of the allocator. `f32_gradients`: also without
  // accumulation. `context` and `buffers` are outside of the allocator (CUDA context, communication buffers per group
  // of ranks); `fragmentation` is the share that the allocator loses; `reserve` is the share of a device that plans
  // leave free.
  double kept = 1, gradients = 1, logits = 0;
  double working = 1, weight_gradients = 0, workspace = 0;
  double f32_gradients = 0;
  double context = 0, buffers = 0, fragmentation = 0, reserve = 0;

  // Half of the 80 % interval of predictions, as a share: of step time and of memory, by `weft validate`.
  double step_error = 0, memory_error = 0;

  ProductFormat product_format = ProductFormat::plan;  // of a run, not of the stack

  bool is_weft() const { return name == "weft"; }
};

struct StackField {
  std::string_view name;
  Dimension dimension;
  double Stack::*field;
  std::string_view summary;
};
std::span<const StackField> stack_fields();

void add_to(Hasher& hasher, const Stack& stack);

}  // namespace weft::cluster
