// weft/predict/cost/unit_seconds.h -- how long a unit of a program takes on one device.
//
//   seconds = launch + max(flops / (efficiency * peak), bytes / (reach * memory bandwidth))
//
// The roofline (roofline.h) of what the compiled unit really does: a loop over rows reads and writes each of
// its operands once, however many nodes it fuses; a matrix product has a shape, and the shape an efficiency.
//
//   processor with a wide matrix unit (GPU, TPU)    reach * tiles * waves * k / (k + 128)
//     tiles   the part of 128 x 128 tiles that m x n fills; of narrow products the narrower tiles that
//             libraries have for them, down to 16
//     waves   the tiles come in rounds of one for each of some hundred multiprocessors; the last is part full
//     k       filling and draining the pipeline costs as much as 128 summands
//     reach   what large products reach of the data sheet, 0.85 as a round figure: 0.79 was measured on H100 (780
//             TFLOP/s in bf16 at 4224 x 2048 x 8192, gist Chillee/2ec89696), Calculon takes 0.90 to 0.95 for
//             A100 (systems/a100_80g.json)
//   processor core                                  1 / ((1 + 16/m) (1 + 16/n) (1 + 16/k))
//     half speed at 16 rows, columns or summands, as program/tasks/matrix_product.h assumes when it chooses
//
// Memory: again 0.85 of the data sheet's bandwidth, between what Calculon takes for kernels that move 10 MB (0.75)
// and 100 MB (0.90) on A100. Tiles, waves and the pipeline are how such kernels are built; their numbers are
// those of A100 and were fitted to nothing. Where a device was measured (`weft profile --device gpu`) its rates are reached
// whole (reach = 1), the pipeline costs 32 summands (products of GPT-2, BERT and Llama on an H200: 16, 17 and 3 % less than with
// 128), and attention and convolutions have rates of their own (convolution_cost.h). Sums over rows take a launch more, and
// batch-norm reads its images twice. What the curve is worth whole steps tell (step_costs_test).
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {

// Processors that state a rate for bf16 or f16 far above f32 have a matrix unit: GPUs and the like.
bool has_matrix_unit(const cluster::Device& device);
// Whether its rates are what programs reached, not a data sheet's.
bool was_measured(const cluster::Device& device);

// The part of the peak rate that a product of this shape reaches, `points` of them being done at once.
double product_efficiency(const cluster::Device& device, double m, double n, double k, double points);

// The part of a device's rate for attention, which is that of long sequences and heads of 128, that the node's queries reach
// with the keys that each sees:   keys / (keys + 450) * 1.5 width / (width + 64)
// Fitted on an H200 to sequences of 1k and 8k, heads of 64 and 128, forward (0.38 to 0.93 of 660 TFLOP/s, each within 4 %) and
// backward (528 TFLOP/s, within 5 %). REQUIRES: ops::is_attending(node.op())
double attention_efficiency(const plan::NodeView& node);

// No product reaches a larger part.
double best_efficiency(const cluster::Device& device);
// Nor does a convolution.
double best_convolution_efficiency(const cluster::Device& device);

// All tasks of the unit together, one after the other, launched once. Exchanges cost nothing here.
double unit_seconds(const program::Program& program, const program::Unit& unit,
                    const cluster::Device& device);

}  // namespace weft::cost
