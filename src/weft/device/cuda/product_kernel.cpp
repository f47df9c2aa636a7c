#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/cuda/product_pieces.h"

namespace weft::device::cuda {
namespace {

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
  ProductKernel(const Blas& blas, const MatrixProduct& product, const Sides& sides, Handle round)
      : blas_(blas), product_(product), sides_(sides), round_(round) {
    // The longest outer loop is cuBLAS's own, the others are calls.
    for (const ProductLoop& loop : product_.outer) {
      points_ *= loop.size;
      if (batch_ == nullptr || loop.size > batch_->size) batch_ = &loop;
    }
    for (const ProductLoop& loop : product.summed) terms_ *= loop.size;
    // Small products are over before it matters.
    constexpr std::int64_t kLarge = std::int64_t{1} << 31;
    const bool cuts = sides.dtype != plan::DType::f32 && round == nullptr;
    pieces_ = even_pieces(product, cuts ? kLarge : INT64_MAX);
  }

  std::int64_t scratch_bytes() const override {
    return round_ != nullptr ? product_.m * product_.n * batch().size * 4 : 0;
  }

  // Whole: the device cuts it, whatever its tasks are for others.
  Code launch(const LaunchPlace& at, const program::Task&) const override {
    if (product_.m == 0 || product_.n == 0) return 0;
    for (std::int64_t point = 0; point < points_; ++point) {
      std::int64_t rest = point, a = 0, b = 0, c = 0;
      bool inside = true;
      for (std::size_t i = product_.outer.size(); i-- > 0;) {
        const ProductLoop& loop = product_.outer[i];
        const std::int64_t step = rest % loop.size;
        rest /= loop.size;
        if (&loop == batch_ && step != 0) inside = false;
        a += step * loop.a, b += step * loop.b, c += step * loop.c;
      }
      if (!inside) continue;
      if (const Code code = sum(at, a, b, c); code != 0) return code;
    }
    return 0;
  }

 private:
  DevicePointer element(DevicePointer base, std::int64_t index) const {
    return base + static_cast<DevicePointer>(index * plan::size_in_bytes(sides_.dtype));
  }

  Code sum(const LaunchPlace& at, std::int64_t a, std::int64_t b, std::int64_t c) const {
    for (std::int64_t term = 0; term < terms_; ++term) {
      std::int64_t rest = term, to_a = a, to_b = b;
      for (std::size_t i = product_.summed.size(); i-- > 0;) {
        const ProductLoop& loop = product_.summed[i];
        to_a += rest % loop.size * loop.a, to_b += rest % loop.size * loop.b;
        rest /= loop.size;
      }
      for (const ProductPiece& piece : pieces_)
        if (const Code code = multiply(
                at, piece,
                {element(sides_.a, to_a), element(sides_.b, to_b), element(sides_.c, c), sides_.dtype},
                term > 0 || piece.adds);
            code != 0)
          return code;
    }
    if (round_ == nullptr) return 0;
    Parameters parameters;
    parameters.pointer(at.scratch).pointer(element(sides_.c, c));
    parameters.whole(product_.n).whole(product_.m).whole(batch().size);
    parameters.whole(product_.c.row_stride).whole(batch().c);
    const std::int64_t elements = product_.m * product_.n * batch().size;
    return parameters.launch(at, round_, {blocks_for(elements, 256), 1}, {256, 1});
  }

  Code multiply(const LaunchPlace& at, const ProductPiece& piece, const Sides& from, bool adds) const {
    const program::Operand &a = product_.a, &b = product_.b;
    const ProductLoop outer = batch();
    const int type = cuda_type(sides_.dtype);
    const bool apart = round_ != nullptr;  // in f32, beside c
    const float one = 1, beta = adds ? 1.0f : 0.0f;
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const auto place = [](DevicePointer pointer) { return reinterpret_cast<void*>(pointer); };
    // A side of length 1 may have any stride; cuBLAS wants one that its rows fit in.
    const auto stride = [](std::int64_t given, std::int64_t least) {
      return static_cast<int>(std::max({given, least, std::int64_t{1}}));
    };
    return blas_.multiply(
        at.blas, b.transposed ? kTransposed : kAsIs, a.transposed ? kTransposed : kAsIs, whole(piece.n),
        whole(piece.m), whole(piece.k), &one, place(element(from.b, piece.b)), type,
        stride(b.row_stride, b.transposed ? piece.k : piece.n), outer.b, place(element(from.a, piece.a)),
        type, stride(a.row_stride, a.transposed ? piece.m : piece.k), outer.a, &beta,
        place(apart ? at.scratch : element(from.c, piece.c)), apart ? kF32 : type,
        apart ? whole(piece.n) : stride(product_.c.row_stride, piece.n), apart ? piece.m * piece.n : outer.c,
        whole(outer.size), type != kF32 || at.gpu.exact() ? kComputeF32 : kComputeTf32, kDefault);
  }

  ProductLoop batch() const { return batch_ != nullptr ? *batch_ : ProductLoop{}; }

  const Blas& blas_;
  const MatrixProduct product_;
  const Sides sides_;
  const Handle round_;
  std::int64_t points_ = 1, terms_ = 1;
  const ProductLoop* batch_ = nullptr;  // of the outer loops
  std::vector<ProductPiece> pieces_;
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
      *blas, product, ProductKernel::Sides{find(product.a), find(product.b), find(product.c), dtype}, round));
}

}  // namespace weft::device::cuda
