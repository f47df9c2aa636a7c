#include "weft/device/cpu/product_kernel.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "weft/device/cpu/bf16_gemm.h"
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
  // Adds up the products of the summed loops, in loop order.
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

// One side of a product in memory.
struct ProductSide {
  std::byte* memory;
  plan::DType dtype;
};

// bf16 or f16 product: a block of c is summed in f32 and rounded once. 8-bit operands are converted
// to bf16 or f16 chunk by chunk, next to the sums.
template <class Short>
class NarrowProductKernel final : public Kernel {
 public:
  NarrowProductKernel(const MatrixProduct& product, Cut cut, ProductSide a, ProductSide b, ProductSide c)
      : product_(product), cut_(cut), a_(a), b_(b), c_(c) {
    for (const ProductLoop& loop : product.outer) points_ *= loop.size;
    for (const ProductLoop& loop : product.summed) terms_ *= loop.size;
  }

  std::int64_t scratch_bytes() const override {
    const auto of_shorts = [](std::int64_t count) {
      return count * static_cast<std::int64_t>(sizeof(Short));
    };
    return sums_bytes() + (plan::is_f8(a_.dtype) ? of_shorts(rows_at_once() * piece()) : 0) +
           (plan::is_f8(b_.dtype) ? of_shorts(columns_at_once() * piece()) : 0);
  }

  void run(const program::Task& task, std::byte* scratch) const override {
    program::Range points{0, points_}, m{0, product_.m}, n{0, product_.n};
    if (cut_ == Cut::outer) points = {task.begin, task.end};
    if (cut_ == Cut::rows) m = {task.begin, task.end};
    if (cut_ == Cut::columns) n = {task.begin, task.end};
    for (std::int64_t point = points.begin; point < points.end; ++point) {
      const ProductLoop at = place(product_.outer, point);
      for (std::int64_t column = n.begin; column < n.end; column += wide_)
        for (std::int64_t row = m.begin; row < m.end; row += high_)
          sum({row, std::min(row + high_, m.end)}, {column, std::min(column + wide_, n.end)}, at, scratch);
    }
  }

 private:
  // Block sizes: b is packed again for every high_ rows, and wide_ is what a product packs at a
  // time. AMX is so fast that the sums should stay in L2 beside the packed operands: this was
  // faster for six of seven shapes in one run on a busy machine, and for four in another.
  static bool by_tiles() { return std::is_same_v<Short, Bf16> && bf16_products() == Bf16Products::amx; }
  const std::int64_t high_ = by_tiles() ? 256 : 512, wide_ = by_tiles() ? 384 : 768;
  static constexpr std::int64_t kPiece = 1024;  // depth of 8-bit operands that is converted at a time

  std::int64_t rows_at_once() const { return std::min(high_, product_.m); }
  std::int64_t columns_at_once() const { return std::min(wide_, product_.n); }
  std::int64_t sums_bytes() const {
    return rows_at_once() * columns_at_once() * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t piece() const {
    const bool widens = plan::is_f8(a_.dtype) || plan::is_f8(b_.dtype);
    return std::max<std::int64_t>(widens ? std::min(kPiece, product_.k) : product_.k, 1);
  }

  // Offsets in a, b and c of a point of the loops.
  template <class Loops>
  static ProductLoop place(const Loops& loops, std::int64_t point) {
    ProductLoop at;
    for (std::size_t i = loops.size(); i-- > 0;) {
      const std::int64_t step = point % loops[i].size;
      point /= loops[i].size;
      at.a += step * loops[i].a, at.b += step * loops[i].b, at.c += step * loops[i].c;
    }
    return at;
  }

  struct Matrix {
    const Short* first;
    std::int64_t row_stride;
  };

  // A block of one side, `offset` elements from its start: in place, or converted into `room`,
  // which is then advanced.
  static Matrix part(const ProductSide& side, std::int64_t row_stride, std::int64_t offset,
                     program::Range rows, program::Range columns, Short*& room) {
    offset += rows.begin * row_stride + columns.begin;
    if (!plan::is_f8(side.dtype)) return {reinterpret_cast<const Short*>(side.memory) + offset, row_stride};
    constexpr plan::DType kShort = std::is_same_v<Short, Bf16> ? plan::DType::bf16 : plan::DType::f16;
    constexpr std::int64_t kLine = 256;
    const std::int64_t width = columns.end - columns.begin;
    const Matrix made{room, width};
    float line[kLine];
    for (std::int64_t row = rows.begin; row < rows.end; ++row, offset += row_stride, room += width)
      for (std::int64_t i = 0; i < width; i += kLine) {
        const std::int64_t count = std::min(kLine, width - i);
        widen(side.dtype, side.memory + offset + i, line, count);
        narrow(kShort, line, reinterpret_cast<std::byte*>(room + i), count);
      }
    return made;
  }

  void sum(program::Range m, program::Range n, const ProductLoop& at, std::byte* scratch) const {
    const std::int64_t rows = m.end - m.begin, columns = n.end - n.begin;
    float* const sums = reinterpret_cast<float*>(scratch);
    float beta = 0;
    for (std::int64_t term = 0; term < terms_; ++term) {
      const ProductLoop of = place(product_.summed, term);
      // Runs once even if k is 0, to clear the sums.
      for (std::int64_t first = 0; first == 0 || first < product_.k; first += piece(), beta = 1) {
        const program::Range k{first, std::min(first + piece(), product_.k)};
        Short* room = reinterpret_cast<Short*>(scratch + sums_bytes());
        const bool a_turned = product_.a.transposed, b_turned = product_.b.transposed;
        const Matrix a = part(a_, product_.a.row_stride, at.a + of.a, a_turned ? k : m, a_turned ? m : k,
                              room),
                     b = part(b_, product_.b.row_stride, at.b + of.b, b_turned ? n : k, b_turned ? k : n,
                              room);
        std::optional<program::Band> nothing;
        if (product_.nothing) nothing = product_.nothing->from(m.begin, n.begin, k.begin);
        narrow_gemm(a_turned ? Transpose::yes : Transpose::no, b_turned ? Transpose::yes : Transpose::no,
                    rows, columns, k.end - k.begin, a.first, a.row_stride, b.first, b.row_stride, beta, sums,
                    columns, nothing ? &*nothing : nullptr);
      }
    }
    Short* const c = reinterpret_cast<Short*>(c_.memory) + at.c + m.begin * product_.c.row_stride + n.begin;
    for (std::int64_t row = 0; row < rows; ++row)
      narrow(c_.dtype, sums + row * columns, reinterpret_cast<std::byte*>(c + row * product_.c.row_stride),
             columns);
  }

  const MatrixProduct product_;
  const Cut cut_;
  const ProductSide a_, b_, c_;
  std::int64_t points_ = 1, terms_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_product_kernel(const program::Program& program, const program::Unit& unit,
                                            std::byte* memory) {
  const auto& product = std::get<MatrixProduct>(unit.kernel);
  if (const plan::DType dtype = unit.writes.front().dtype; is_narrow(dtype)) {
    const auto at = [&](const program::Operand& operand) {
      return ProductSide{memory + program.buffer(operand.buffer).offset +
                             operand.offset * plan::size_in_bytes(operand.dtype),
                         operand.dtype};
    };
    const ProductSide a = at(product.a), b = at(product.b), c = at(product.c);
    if (dtype == plan::DType::bf16)
      return std::make_unique<NarrowProductKernel<Bf16>>(product, unit.cut, a, b, c);
    return std::make_unique<NarrowProductKernel<F16>>(product, unit.cut, a, b, c);
  }
  const auto find = [&](const program::Operand& operand) {
    return reinterpret_cast<float*>(memory + program.buffer(operand.buffer).offset) + operand.offset;
  };
  return std::make_unique<ProductKernel>(product, unit.cut, find(product.a), find(product.b),
                                         find(product.c));
}

}  // namespace weft::device::cpu
