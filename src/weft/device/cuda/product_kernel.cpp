#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"

namespace weft::device::cuda {
namespace {

using program::Cut;
using program::MatrixProduct;
using program::ProductLoop;

// cuBLAS counts columns first, so it is asked for the transpose of everything: c' = b' a'.
constexpr int kAsIs = 0, kTransposed = 1;
constexpr int kComputeF32 = 68, kComputeTf32 = 77;  // products and sums in f32; factors rounded to TF32
constexpr int kDefault = -1;

// The type of elements, as cuBLAS counts them.
constexpr int kF32 = 0;
int cuda_type(plan::DType dtype) {
  return dtype == plan::DType::bf16 ? 14 : dtype == plan::DType::f16 ? 2 : kF32;
}

// Sums of several products are f32 until all are in, and rounded then.
std::string rounding_text(plan::DType dtype) {
  return fmt::format(
      "{}extern \"C\" __global__ void weft_round(const float* from, {}* to, long long columns, long long "
      "rows, "
      "long long batch, long long row_stride, long long batch_stride) {{\n"
      "  const long long step = (long long)gridDim.x * blockDim.x;\n"
      "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < columns * rows * batch; i "
      "+= "
      "step)\n"
      "    to[i / columns / rows * batch_stride + i / columns % rows * row_stride + i % columns] = "
      "from[i];\n}}\n",
      prelude(), type_name(dtype));
}

class ProductKernel final : public Kernel {
 public:
  struct Sides {
    DevicePointer a, b, c;
    plan::DType dtype;
  };

  // `round`: rounding_text()'s function, where sums of several products are rounded.
  ProductKernel(const Blas& blas, const MatrixProduct& product, Cut cut, const Sides& sides, Handle round)
      : blas_(blas), product_(product), cut_(cut), sides_(sides), round_(round) {
    for (const ProductLoop& loop : product.outer) points_ *= loop.size;
    // The longest outer loop is cuBLAS's own, the others are calls.
    if (cut != Cut::outer)
      for (std::size_t i = 0; i < product.outer.size(); ++i)
        if (batch_ < 0 || product.outer[i].size > product.outer[static_cast<std::size_t>(batch_)].size)
          batch_ = static_cast<int>(i);
  }

  std::int64_t scratch_bytes() const override {
    return round_ != nullptr ? product_.m * product_.n * batch().size * 4 : 0;
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
    const ProductLoop batch = this->batch();
    const std::int64_t rows = m.end - m.begin, columns = n.end - n.begin;
    const int type = cuda_type(sides_.dtype);
    const auto element = [&](DevicePointer base, std::int64_t index) {
      return reinterpret_cast<void*>(base +
                                     static_cast<DevicePointer>(index * plan::size_in_bytes(sides_.dtype)));
    };
    const bool apart = round_ != nullptr;  // in f32, beside c
    const DevicePointer to = reinterpret_cast<DevicePointer>(element(sides_.c, c));
    for (std::int64_t term = 0; term < terms; ++term) {
      std::int64_t rest = term, to_a = a, to_b = b;
      for (std::size_t i = product_.summed.size(); i-- > 0;) {
        const ProductLoop& loop = product_.summed[i];
        to_a += rest % loop.size * loop.a, to_b += rest % loop.size * loop.b;
        rest /= loop.size;
      }
      const float one = 1, beta = term == 0 ? 0.0f : 1.0f;
      const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
      // A side of length 1 may have any stride; cuBLAS wants one that its rows fit in.
      const auto stride = [](std::int64_t given, std::int64_t least) {
        return static_cast<int>(std::max({given, least, std::int64_t{1}}));
      };
      const Code code = blas_.multiply(
          at.blas, product_.b.transposed ? kTransposed : kAsIs, product_.a.transposed ? kTransposed : kAsIs,
          whole(columns), whole(rows), whole(product_.k), &one, element(sides_.b, to_b), type,
          stride(product_.b.row_stride, product_.b.transposed ? product_.k : columns), batch.b,
          element(sides_.a, to_a), type,
          stride(product_.a.row_stride, product_.a.transposed ? rows : product_.k), batch.a, &beta,
          reinterpret_cast<void*>(apart ? at.scratch : to), apart ? kF32 : type,
          apart ? whole(columns) : stride(product_.c.row_stride, columns), apart ? rows * columns : batch.c,
          whole(batch.size), type != kF32 || at.gpu.exact() ? kComputeF32 : kComputeTf32, kDefault);
      if (code != 0) return code;
    }
    if (!apart) return 0;
    Parameters parameters;
    parameters.pointer(at.scratch).pointer(to).whole(columns).whole(rows).whole(batch.size);
    parameters.whole(product_.c.row_stride).whole(batch.c);
    return parameters.launch(at, round_, {blocks_for(at.gpu, rows * columns * batch.size, 256), 1}, {256, 1});
  }

  ProductLoop batch() const {
    return batch_ >= 0 ? product_.outer[static_cast<std::size_t>(batch_)] : ProductLoop{};
  }

  const Blas& blas_;
  const MatrixProduct product_;
  const Cut cut_;
  const Sides sides_;
  const Handle round_;
  std::int64_t points_ = 1;
  int batch_ = -1;  // of the outer loops
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_product_kernel(Functions& gpu, const program::Program& program,
                                                    const program::Unit& unit, Address memory) {
  WEFT_TRY(blas, cuda::blas());
  const auto& product = std::get<MatrixProduct>(unit.kernel);
  constexpr std::int64_t kMost = INT32_MAX;
  if (std::max({product.m, product.n, product.k, product.a.row_stride, product.b.row_stride,
                product.c.row_stride}) > kMost)
    return user_error("a matrix product is too large for the GPU: its sides must be less than 2^31");
  const plan::DType dtype = unit.writes.front().dtype;
  const auto find = [&](const program::Operand& operand) {
    return pointer(memory + program.buffer(operand.buffer).offset) +
           static_cast<DevicePointer>(operand.offset * plan::size_in_bytes(dtype));
  };
  Handle round = nullptr;
  if (dtype != plan::DType::f32 &&
      std::ranges::any_of(product.summed, [](const ProductLoop& loop) { return loop.size > 1; })) {
    WEFT_TRY(function, gpu.function(rounding_text(dtype), "weft_round"));
    round = function;
  }
  return std::unique_ptr<Kernel>(std::make_unique<ProductKernel>(
      *blas, product, unit.cut,
      ProductKernel::Sides{find(product.a), find(product.b), find(product.c), dtype}, round));
}

}  // namespace weft::device::cuda
