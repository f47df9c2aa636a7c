#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/cuda/product_pieces.h"

namespace weft::device::cuda {
namespace {

using program::MatrixProduct;
using program::ProductLoop;

// cuBLAS is column-major, so it computes the transposed product: c' = b' a'.
constexpr int kAsIs = 0, kTransposed = 1;
constexpr int kComputeF32 = 68, kComputeTf32 = 77;  // exact f32; operands rounded to TF32
constexpr int kDefault = -1;

// cudaDataType of the elements.
constexpr int kF32 = 0;
int cuda_type(plan::DType dtype) {
  return dtype == plan::DType::bf16 ? 14 : dtype == plan::DType::f16 ? 2 : kF32;
}

// Sums of several products are accumulated in f32 and rounded once.
std::string rounding_source(plan::DType dtype) {
  return kernel_source("round_product", fmt::format("{}typedef {} T;\n", prelude(), type_name(dtype)));
}

class ProductKernel final : public Kernel {
 public:
  struct Sides {
    DevicePointer a, b, c;
    plan::DType dtype;
  };

  // `round` is the function of rounding_source() if sums of several products must be rounded, else
  // null.
  ProductKernel(Functions& gpu, const Blas& blas, const MatrixProduct& product, const Sides& sides,
                Handle round)
      : blas_(blas), product_(product), sides_(sides), round_(round) {
    // The longest outer loop is cuBLAS's batch, the others are separate calls.
    for (const ProductLoop& loop : product_.outer) {
      points_ *= loop.size;
      if (batch_ == nullptr || loop.size > batch_->size) batch_ = &loop;
    }
    for (const ProductLoop& loop : product.summed) terms_ *= loop.size;
    // Smaller products take too little time to matter.
    constexpr std::int64_t kLarge = std::int64_t{1} << 31;
    const bool cuts = sides.dtype != plan::DType::f32 && round == nullptr;
    pieces_ = split_evenly(product, cuts ? kLarge : INT64_MAX);
    exact_ = gpu.exact();
    // Sums of several terms are rare and would need two variants (beta 0 and 1), so no algorithm is
    // chosen.
    for (const ProductPiece& piece : pieces_)
      multipliers_.push_back(terms_ == 1 && round == nullptr ? gpu.multiplier(described(piece)) : nullptr);
  }

  std::int64_t scratch_bytes() const override {
    return round_ != nullptr ? product_.m * product_.n * batch().size * 4 : 0;
  }

  // Runs the whole unit: the grid divides the work, not the tasks.
  Code launch(const LaunchContext& at, const program::Task&) const override {
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

  Code sum(const LaunchContext& at, std::int64_t a, std::int64_t b, std::int64_t c) const {
    for (std::int64_t term = 0; term < terms_; ++term) {
      std::int64_t rest = term, to_a = a, to_b = b;
      for (std::size_t i = product_.summed.size(); i-- > 0;) {
        const ProductLoop& loop = product_.summed[i];
        to_a += rest % loop.size * loop.a, to_b += rest % loop.size * loop.b;
        rest /= loop.size;
      }
      for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (const Code code = multiply(
                at, i, {element(sides_.a, to_a), element(sides_.b, to_b), element(sides_.c, c), sides_.dtype},
                term > 0 || pieces_[i].adds);
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

  // A side of length 1 may have any stride; cuBLAS requires one of at least the row length.
  static std::int64_t stride(std::int64_t given, std::int64_t least) {
    return std::max({given, least, std::int64_t{1}});
  }
  // Alignment in bytes, up to 16, of the matrix and all its strides.
  int alignment(DevicePointer base, std::int64_t offset, std::int64_t ld,
                std::int64_t ProductLoop::*outer) const {
    std::int64_t bytes = 16;
    const auto divide = [&](std::int64_t step) { bytes = std::gcd(bytes, step); };
    const std::int64_t size = plan::size_in_bytes(sides_.dtype);
    divide(static_cast<std::int64_t>(base) + offset * size);
    divide(ld * size);
    for (const ProductLoop& loop : product_.outer) divide(loop.*outer * size);
    return static_cast<int>(bytes);
  }

  // cuBLAS's a is our b.
  Multiplication described(const ProductPiece& piece) const {
    const program::Operand &a = product_.a, &b = product_.b;
    const ProductLoop outer = batch();
    const bool apart = round_ != nullptr;  // f32 sums in scratch memory
    Multiplication made{.m = piece.n,
                        .n = piece.m,
                        .k = piece.k,
                        .batch = outer.size,
                        .transposed_a = b.transposed,
                        .transposed_b = a.transposed,
                        .adds = piece.adds,
                        .lda = stride(b.row_stride, b.transposed ? piece.k : piece.n),
                        .ldb = stride(a.row_stride, a.transposed ? piece.m : piece.k),
                        .ldc = apart ? piece.n : stride(product_.c.row_stride, piece.n),
                        .a_stride = outer.b,
                        .b_stride = outer.a,
                        .c_stride = apart ? piece.m * piece.n : outer.c,
                        .type = cuda_type(sides_.dtype),
                        .c_type = apart ? kF32 : cuda_type(sides_.dtype)};
    made.compute = made.type != kF32 || exact_ ? kComputeF32 : kComputeTf32;
    made.a_alignment = alignment(sides_.b, piece.b, made.lda, &ProductLoop::b);
    made.b_alignment = alignment(sides_.a, piece.a, made.ldb, &ProductLoop::a);
    made.c_alignment = alignment(sides_.c, piece.c, made.ldc, &ProductLoop::c);
    return made;
  }

  Code multiply(const LaunchContext& at, std::size_t which, const Sides& from, bool adds) const {
    const ProductPiece& piece = pieces_[which];
    const DevicePointer a = element(from.a, piece.a), b = element(from.b, piece.b),
                        c = round_ != nullptr ? at.scratch : element(from.c, piece.c);
    if (multipliers_[which] != nullptr && at.workspace != 0)
      return multipliers_[which]->multiply(b, a, c, at.workspace, at.stream);
    const Multiplication product = described(piece);
    const float one = 1, beta = adds ? 1.0f : 0.0f;
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const auto place = [](DevicePointer pointer) { return reinterpret_cast<void*>(pointer); };
    return blas_code(blas_.multiply(
        at.blas, product.transposed_a ? kTransposed : kAsIs, product.transposed_b ? kTransposed : kAsIs,
        whole(product.m), whole(product.n), whole(product.k), &one, place(b), product.type,
        whole(product.lda), product.a_stride, place(a), product.type, whole(product.ldb), product.b_stride,
        &beta, place(c), product.c_type, whole(product.ldc), product.c_stride, whole(product.batch),
        product.compute, kDefault));
  }

  ProductLoop batch() const { return batch_ != nullptr ? *batch_ : ProductLoop{}; }

  const Blas& blas_;
  const MatrixProduct product_;
  const Sides sides_;
  const Handle round_;
  std::int64_t points_ = 1, terms_ = 1;
  const ProductLoop* batch_ = nullptr;  // one of the outer loops
  std::vector<ProductPiece> pieces_;
  std::vector<const Multiplier*> multipliers_;  // per piece; null: cuBLAS's default
  bool exact_ = false;
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
    WEFT_TRY(function, gpu.function(rounding_source(dtype), "weft_round"));
    round = function;
  }
  return std::unique_ptr<Kernel>(std::make_unique<ProductKernel>(
      gpu, *blas, product, ProductKernel::Sides{find(product.a), find(product.b), find(product.c), dtype},
      round));
}

}  // namespace weft::device::cuda
