#include "weft/plan/cluster/stack.h"

namespace weft::cluster {

std::span<const StackField> stack_fields() {
  using enum Dimension;
  static constexpr StackField kFields[] = {
      {"products", count, &Stack::products, "share of the device's rate that matrix products reach"},
      {"attention", count, &Stack::attention, "the same of attention"},
      {"attention_gradient", count, &Stack::attention_gradient, "the same of its gradient"},
      {"elementwise", count, &Stack::elementwise, "bytes that element-wise kernels move, of a fused pass"},
      {"optimizer", count, &Stack::optimizer, "bytes that updates move, of a fused update"},
      {"quantize", count, &Stack::quantize, "bytes moved per byte of an operand to quantize it to f8"},
      {"f8_time", count, &Stack::f8_time,
       "time of an f8 product, of a bf16 product's at the ratio of peak rates; 0: by the device's tables"},
      {"fused_attention", count, &Stack::fused_attention, "1: attention keeps no scores"},
      {"host_layer", seconds, &Stack::host_layer, "host time per layer and micro-batch, both passes"},
      {"host_layer_staged", seconds, &Stack::host_layer_staged, "more of it with pipeline stages"},
      {"host_layer_staged_rank", seconds, &Stack::host_layer_staged_rank,
       "more of it per further tensor-parallel rank with pipeline stages"},
      {"host_pass", seconds, &Stack::host_pass, "host time per micro-batch of a stage"},
      {"host_step", seconds, &Stack::host_step, "host time per step"},
      {"collectives", count, &Stack::collectives, "time of collectives within passes, of their own"},
      {"exposed_reduce", count, &Stack::exposed_reduce,
       "least exposed share of gradient reduction that overlaps"},
      {"exposed_gather", count, &Stack::exposed_gather,
       "least exposed share of parameter gathers that overlap"},
      {"exposed_sends", count, &Stack::exposed_sends, "share of a send that its stage waits for"},
      {"repeats_layers", count, &Stack::repeats_layers, "1: full recomputation repeats whole layers"},
      {"gathers_once", count, &Stack::gathers_once,
       "1: with stages, sharded parameters are gathered once per step"},
      {"equal_layers", count, &Stack::equal_layers, "1: every stage has the same number of layers"},
      {"kept", count, &Stack::kept, "bytes of activations, of those the plan keeps"},
      {"gradients", count, &Stack::gradients, "bytes of gradients, of those the plan keeps"},
      {"logits", count, &Stack::logits, "bytes per logit of workspace besides the plan's"},
      {"f32_gradients", count, &Stack::f32_gradients, "1: gradients are f32 also without accumulation"},
      {"working", count, &Stack::working, "bytes that a pass works on, of the plan's"},
      {"weight_gradients", count, &Stack::weight_gradients,
       "bytes besides, per byte of the largest weights whose gradients are made at once"},
      {"workspace", bytes, &Stack::workspace, "memory of libraries within the allocator"},
      {"context", bytes, &Stack::context, "memory outside of the allocator per device"},
      {"buffers", bytes, &Stack::buffers, "communication buffers per group of ranks"},
      {"fragmentation", count, &Stack::fragmentation, "share of the allocator's memory that is lost"},
      {"step_error", count, &Stack::step_error, "8 of 10 predicted steps are within this share"},
      {"memory_error", count, &Stack::memory_error,
       "8 of 10 predicted peaks of memory are within this share"},
      {"reserve", count, &Stack::reserve, "share of a device's memory that plans leave free"},
  };
  return kFields;
}

void add_to(Hasher& hasher, const Stack& stack) {
  hasher.text(stack.name).text(stack.version);
  hasher.number(static_cast<int>(stack.product_format));
  for (const StackField& field : stack_fields()) hasher.real(stack.*field.field);
}

}  // namespace weft::cluster
