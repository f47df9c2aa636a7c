// weft/predict/cost/unit_seconds.h -- how long a unit of a program takes on one device.
//
//   seconds = launch + max(flops / (efficiency * peak), bytes / (reach * memory bandwidth))
//
// The roofline (roofline.h) of the compiled unit. A row loop reads and writes each of its operands
// once, however many nodes it fuses. A matrix product has an efficiency that depends on its shape.
//
//   processor with a wide matrix unit (GPU, TPU)    reach * tiles * waves * k / (k + 128)
//     tiles   the fraction of 128 x 128 tiles that m x n fills; for narrow products, of the narrower tiles
//             that libraries have for them, down to 16
//     waves   tiles run in waves of one tile per multiprocessor, some hundred; the last wave is partly full
//     k       filling and draining the pipeline costs as much as 128 summands
//     reach   the fraction of the data sheet's peak that large products reach, 0.85 as a round figure.
//             0.79 was measured on H100 (780 TFLOP/s in bf16 at 4224 x 2048 x 8192, gist
//             Chillee/2ec89696), Calculon assumes 0.90 to 0.95 for A100 (systems/a100_80g.json)
//   processor core                                  1 / ((1 + 16/m) (1 + 16/n) (1 + 16/k))
//     half speed at 16 rows, columns or summands, as program/tasks/matrix_product.h assumes when it chooses
//
// Memory reaches 0.85 of the data sheet's bandwidth as well. Calculon assumes 0.75 for kernels that
// move 10 MB and 0.90 for 100 MB on A100. Tiles, waves and the pipeline follow the structure of
// such kernels; their numbers are those of A100 and were not fitted.
//
// For a measured device (`weft profile --device gpu`) the rates are reached in full (reach = 1),
// and the pipeline costs 32 summands. With 32, products of GPT-2, BERT and Llama on an H200 take
// 16, 17 and 3 % less than with 128. Attention and convolutions have their own rates
// (convolution_cost.h). Row reductions take one more launch, and batch-norm reads its images twice.
// If tables of the device's own kernels were fitted (cluster/rates.h), products and attention take
// their times from these instead; a device that Weft measured itself keeps its own rates for bf16.
//
// step_costs_test checks the curve on whole steps.
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {

// True if the device states a bf16 or f16 rate far above its f32 rate, as GPUs do.
bool has_matrix_unit(const cluster::Device& device);
// True if the device's rates were measured in programs instead of read from a data sheet.
bool was_measured(const cluster::Device& device);

// The fraction of the peak rate that a product of this shape reaches, with `points` of them at
// once.
double product_efficiency(const cluster::Device& device, double m, double n, double k, double points);

// The fraction of the device's attention rate that this node reaches. The rate is for long
// sequences and heads of 128; the node's queries each see `keys` keys on average:
//   keys / (keys + 450) * 1.5 width / (width + 64)
// Fitted on an H200 to sequences of 1k and 8k, heads of 64 and 128, forward (0.38 to 0.93 of 660
// TFLOP/s, each within 4 %) and backward (528 TFLOP/s, within 5 %). REQUIRES:
// ops::is_attention_operator(node.op())
double attention_efficiency(const plan::NodeView& node);

// Whether the unit's time comes from tables of the device's own kernels (cluster/rates.h).
bool has_fitted_rate(const program::Program& program, const program::Unit& unit,
                     const cluster::Device& device);

// The largest fraction that any product reaches.
double best_efficiency(const cluster::Device& device);
// The largest fraction that any convolution reaches.
double best_convolution_efficiency(const cluster::Device& device);

// The time of all tasks of the unit, run one after the other and launched once. Exchanges cost
// nothing here.
double unit_seconds(const program::Program& program, const program::Unit& unit,
                    const cluster::Device& device);

}  // namespace weft::cost
