#include "weft/device/cpu/product_kernel.h"

#include "weft/device/cpu/blas.h"

namespace weft::device::cpu {
namespace {

using program::Cut;
using program::MatrixProduct;
using program::ProductLoop;

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const MatrixProduct& product, Cut cut, const float* a, const float* b, float* c)
      : product_(product), cut_(cut), a_(a), b_(b), c_(c) {
    for (const ProductLoop& loop : product.outer) points_ *= loop.size;
  }

  void run(const program::Task& task, std::byte*) const override {
    std::int64_t first = 0, last = points_, m0 = 0, m1 = product_.m, n0 = 0, n1 = product_.n;
    if (cut_ == Cut::outer) first = task.begin, last = task.end;
    if (cut_ == Cut::rows) m0 = task.begin, m1 = task.end;
    if (cut_ == Cut::columns) n0 = task.begin, n1 = task.end;
    const float* a = a_ + m0 * (product_.a.transposed ? 1 : product_.a.row_stride);
    const float* b = b_ + n0 * (product_.b.transposed ? product_.b.row_stride : 1);
    float* c = c_ + m0 * product_.c.row_stride + n0;
    for (std::int64_t point = first; point < last; ++point) {
      std::int64_t rest = point, to_a = 0, to_b = 0, to_c = 0;
      for (std::size_t i = product_.outer.size(); i-- > 0;) {
        const ProductLoop& loop = product_.outer[i];
        const std::int64_t at = rest % loop.size;
        rest /= loop.size;
        to_a += at * loop.a, to_b += at * loop.b, to_c += at * loop.c;
      }
      sum({m0, m1}, {n0, n1}, a + to_a, b + to_b, c + to_c);
    }
  }

 private:
  // The products of the summed loops add up, in their order.
  void sum(program::Range m, program::Range n, const float* a, const float* b, float* c) const {
    std::int64_t terms = 1;
    for (const ProductLoop& loop : product_.summed) terms *= loop.size;
    for (std::int64_t term = 0; term < terms; ++term) {
      std::int64_t rest = term, to_a = 0, to_b = 0;
      for (std::size_t i = product_.summed.size(); i-- > 0;) {
        const ProductLoop& loop = product_.summed[i];
        to_a += rest % loop.size * loop.a, to_b += rest % loop.size * loop.b;
        rest /= loop.size;
      }
      const auto multiply = [&](auto... band) {
        gemm(product_.a.transposed ? Transpose::yes : Transpose::no,
             product_.b.transposed ? Transpose::yes : Transpose::no, m.end - m.begin, n.end - n.begin,
             product_.k, 1.0f, a + to_a, product_.a.row_stride, b + to_b, product_.b.row_stride,
             term == 0 ? 0.0f : 1.0f, c, product_.c.row_stride, band...);
      };
      product_.nothing ? multiply(product_.nothing->from(m.begin, n.begin)) : multiply();
    }
  }

  const MatrixProduct product_;
  const Cut cut_;
  const float* const a_;
  const float* const b_;
  float* const c_;
  std::int64_t points_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_product_kernel(const program::Program& program, const program::Unit& unit,
                                            std::byte* memory) {
  const auto& product = std::get<MatrixProduct>(unit.kernel);
  const auto find = [&](const program::Operand& operand) {
    return reinterpret_cast<float*>(memory + program.buffer(operand.buffer).offset) + operand.offset;
  };
  return std::make_unique<ProductKernel>(product, unit.cut, find(product.a), find(product.b),
                                         find(product.c));
}

}  // namespace weft::device::cpu
