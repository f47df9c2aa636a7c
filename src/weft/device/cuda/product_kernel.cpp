#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/kernels.h"

namespace weft::device::cuda {
namespace {

using program::Cut;
using program::MatrixProduct;
using program::ProductLoop;

// cuBLAS counts columns first, so it is asked for the transpose of everything: c' = b' a'.
constexpr int kAsIs = 0, kTransposed = 1;
constexpr int kF32 = 0;                             // the type of elements
constexpr int kComputeF32 = 68, kComputeTf32 = 77;  // products and sums in f32; factors rounded to TF32
constexpr int kDefault = -1;

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const Blas& blas, const MatrixProduct& product, Cut cut, DevicePointer a, DevicePointer b,
                DevicePointer c)
      : blas_(blas), product_(product), cut_(cut), a_(a), b_(b), c_(c) {
    for (const ProductLoop& loop : product.outer) points_ *= loop.size;
    // The longest outer loop is cuBLAS's own, the others are calls.
    if (cut != Cut::outer)
      for (std::size_t i = 0; i < product.outer.size(); ++i)
        if (batch_ < 0 || product.outer[i].size > product.outer[static_cast<std::size_t>(batch_)].size)
          batch_ = static_cast<int>(i);
  }

  Code launch(const LaunchPlace& at, const program::Task& task) const override {
    std::int64_t first = 0, last = points_, m0 = 0, m1 = product_.m, n0 = 0, n1 = product_.n;
    if (cut_ == Cut::outer) first = task.begin, last = task.end;
    if (cut_ == Cut::rows) m0 = task.begin, m1 = task.end;
    if (cut_ == Cut::columns) n0 = task.begin, n1 = task.end;
    if (m1 <= m0 || n1 <= n0) return 0;
    const std::int64_t a0 = m0 * (product_.a.transposed ? 1 : product_.a.row_stride);
    const std::int64_t b0 = n0 * (product_.b.transposed ? product_.b.row_stride : 1);
    const std::int64_t c0 = m0 * product_.c.row_stride + n0;
    for (std::int64_t point = first; point < last; ++point) {
      std::int64_t rest = point, to_a = a0, to_b = b0, to_c = c0;
      bool inside = true;
      for (std::size_t i = product_.outer.size(); i-- > 0;) {
        const ProductLoop& loop = product_.outer[i];
        const std::int64_t step = rest % loop.size;
        rest /= loop.size;
        if (static_cast<int>(i) == batch_ && step != 0) inside = false;
        to_a += step * loop.a, to_b += step * loop.b, to_c += step * loop.c;
      }
      if (!inside) continue;
      if (const Code code = sum(at, {m0, m1}, {n0, n1}, to_a, to_b, to_c); code != 0) return code;
    }
    return 0;
  }

 private:
  Code sum(const LaunchPlace& at, program::Range m, program::Range n, std::int64_t a, std::int64_t b,
           std::int64_t c) const {
    std::int64_t terms = 1;
    for (const ProductLoop& loop : product_.summed) terms *= loop.size;
    const ProductLoop batch = batch_ >= 0 ? product_.outer[static_cast<std::size_t>(batch_)] : ProductLoop{};
    for (std::int64_t term = 0; term < terms; ++term) {
      std::int64_t rest = term, to_a = a, to_b = b;
      for (std::size_t i = product_.summed.size(); i-- > 0;) {
        const ProductLoop& loop = product_.summed[i];
        to_a += rest % loop.size * loop.a, to_b += rest % loop.size * loop.b;
        rest /= loop.size;
      }
      const float one = 1, beta = term == 0 ? 0.0f : 1.0f;
      const auto place = [](DevicePointer base, std::int64_t element) {
        return reinterpret_cast<void*>(base + static_cast<DevicePointer>(element * 4));
      };
      const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
      // A side of length 1 may have any stride; cuBLAS wants one that its rows fit in.
      const auto stride = [](std::int64_t given, std::int64_t least) {
        return static_cast<int>(std::max({given, least, std::int64_t{1}}));
      };
      const std::int64_t rows = m.end - m.begin, columns = n.end - n.begin;
      const Code code = blas_.multiply(
          at.blas, product_.b.transposed ? kTransposed : kAsIs, product_.a.transposed ? kTransposed : kAsIs,
          whole(columns), whole(rows), whole(product_.k), &one, place(b_, to_b), kF32,
          stride(product_.b.row_stride, product_.b.transposed ? product_.k : columns), batch.b,
          place(a_, to_a), kF32, stride(product_.a.row_stride, product_.a.transposed ? rows : product_.k),
          batch.a, &beta, place(c_, c), kF32, stride(product_.c.row_stride, columns), batch.c,
          whole(batch.size), at.gpu.exact() ? kComputeF32 : kComputeTf32, kDefault);
      if (code != 0) return code;
    }
    return 0;
  }

  const Blas& blas_;
  const MatrixProduct product_;
  const Cut cut_;
  const DevicePointer a_, b_, c_;
  std::int64_t points_ = 1;
  int batch_ = -1;  // of the outer loops
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_product_kernel(const program::Program& program,
                                                    const program::Unit& unit, Address memory) {
  WEFT_TRY(blas, cuda::blas());
  const auto& product = std::get<MatrixProduct>(unit.kernel);
  constexpr std::int64_t kMost = INT32_MAX;
  if (std::max({product.m, product.n, product.k, product.a.row_stride, product.b.row_stride,
                product.c.row_stride}) > kMost)
    return user_error("a matrix product is too large for the GPU: its sides must be less than 2^31");
  const auto find = [&](const program::Operand& operand) {
    return pointer(memory + program.buffer(operand.buffer).offset) +
           static_cast<DevicePointer>(operand.offset * 4);
  };
  return std::unique_ptr<Kernel>(std::make_unique<ProductKernel>(*blas, product, unit.cut, find(product.a),
                                                                 find(product.b), find(product.c)));
}

}  // namespace weft::device::cuda
