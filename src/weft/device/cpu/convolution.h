// weft/device/cpu/convolution.h -- conv2d and its two gradients as matrix products (im2col).
//
//      image            columns: one per window position, over a block of images
//   +---------+          +----------------+
//   | a b c . |   3x3    | a b ..         |      y  = w  * columns            forward
//   | d e f . |  ----->  | b c ..         |      dw = dy * columns^T          weight gradient
//   | g h i . |          | :              |      columns = w^T * dy, and each column is added back
//   +---------+          | i ..           |      to the positions it came from   input gradient
//                        +----------------+
//
// Small images share a product, large ones take several: a block has a few hundred columns, which
// fit in L2 together with the weights.
//
// x is [batch, in, height, width], w is [out, in / groups, kernel_height, kernel_width] and y is
// [batch, out, out_height, out_width], contiguous. Pointers are those of the whole batch. A call
// works on images [begin, end); calls for other images may run concurrently, each with its own
// scratch memory. The bits of an image do not depend on the range it is computed in.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::device::cpu {

struct Convolution {
  std::int64_t batch = 0, in = 0, out = 0;
  std::int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  std::int64_t kernel_height = 0, kernel_width = 0;
  // Above and left; below and right the padding is as far as the windows reach beyond the image.
  std::int64_t padding_height = 0, padding_width = 0;
  std::int64_t stride = 1, groups = 1;
};

// Scratch bytes that any of the three functions needs, aligned for float.
std::size_t scratch_bytes(const Convolution& conv);

void convolve(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* x, const float* w,
              float* y, void* scratch);

void convolve_input_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                             const float* w, float* dx, void* scratch);

// The block of dw for channels [begin, end) of x, counted over all groups. Threads divide the
// channels, so each gathers its own windows. Sums run over all images, in an order that does not
// depend on the range.
void convolve_weight_gradient(const Convolution& conv, std::int64_t begin, std::int64_t end, const float* dy,
                              const float* x, float* dw, void* scratch);

}  // namespace weft::device::cpu
