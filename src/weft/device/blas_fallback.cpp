// portable_gemm, after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34(3), 2008:
//
//        n            A block of B, kDeep x kWide, is packed into strips as wide as a tile, and a block
//      +----+----+    of A, kHigh x kDeep, into strips as high as one, so that the kernel, which keeps a
//    k | B  |    |    tile of C in registers, reads both from start to end. Strips at the edge are filled
//      +----+----+    up with zeros: there is one kernel and one order of additions for every place in C.
//  +-+ +----+----+
// m|A| | C  |    |    A short A meets each strip of B too few times to pay for its packing: then full
//  +-+ +----+----+    strips are read where they lie.
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "weft/device/blas.h"

namespace weft::device {
namespace {

// How much of C a kernel keeps in registers: kRows x kVectors vectors, as many as there is room for
// beside a column of A and a row of B.
template <std::size_t kBytes, std::int64_t kTileRows, std::int64_t kTileVectors>
struct Shape {
  static constexpr std::size_t kVectorBytes = kBytes;
  static constexpr std::int64_t kRows = kTileRows, kVectors = kTileVectors;
};

template <class T, class Kernel>
struct Block {
  typedef T Vector [[gnu::vector_size(Kernel::kVectorBytes), gnu::may_alias, gnu::aligned(alignof(T))]];
  static constexpr std::int64_t kLanes = Kernel::kVectorBytes / sizeof(T);
  static constexpr std::int64_t kTileColumns = Kernel::kVectors * kLanes;
  static constexpr std::int64_t kHigh = 16 * Kernel::kRows;
  static constexpr std::int64_t kDeep = 1024 / sizeof(T);  // a strip of B stays in the first cache
  static constexpr std::int64_t kWide = 16 * kTileColumns;
};

// tile = strip of A times strip of B, whose rows are b_step apart. Inlined into each kernel, to be
// compiled for that kernel's instructions.
template <class T, class Kernel>
[[gnu::always_inline]] inline void multiply_strips(const T* a, const T* b, std::int64_t b_step,
                                                   std::int64_t depth, T* tile, std::int64_t tile_step) {
  using Vector = typename Block<T, Kernel>::Vector;
  constexpr std::int64_t kRows = Kernel::kRows, kVectors = Kernel::kVectors,
                         kLanes = Block<T, Kernel>::kLanes;
  Vector sum[kRows][kVectors] = {};
  for (std::int64_t d = 0; d < depth; ++d, a += kRows, b += b_step) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kVectors; ++j) row[j] = *reinterpret_cast<const Vector*>(b + j * kLanes);
#if defined(__aarch64__)
    // A product with one lane of a vector is one instruction here, so A needs few registers.
    Vector column[kRows / kLanes];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kRows / kLanes; ++i)
      column[i] = *reinterpret_cast<const Vector*>(a + i * kLanes);
    const auto factor = [&](std::int64_t i) { return column[i / kLanes][i % kLanes]; };
#else
    const auto factor = [&](std::int64_t i) { return a[i]; };
#endif
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kVectors; ++j) sum[i][j] += factor(i) * row[j];
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kVectors; ++j)
      *reinterpret_cast<Vector*>(tile + i * tile_step + j * kLanes) = sum[i][j];
}

#if defined(__x86_64__)
struct Avx512 : Shape<64, 8, 3> {
  template <class T>
  [[gnu::noinline, gnu::target("avx512f")]] static void multiply(const T* a, const T* b, std::int64_t b_step,
                                                                 std::int64_t depth, T* tile,
                                                                 std::int64_t tile_step) {
    multiply_strips<T, Avx512>(a, b, b_step, depth, tile, tile_step);
  }
};
struct Avx2 : Shape<32, 6, 2> {
  template <class T>
  [[gnu::noinline, gnu::target("avx2,fma")]] static void multiply(const T* a, const T* b, std::int64_t b_step,
                                                                  std::int64_t depth, T* tile,
                                                                  std::int64_t tile_step) {
    multiply_strips<T, Avx2>(a, b, b_step, depth, tile, tile_step);
  }
};
using PlainShape = Shape<16, 4, 2>;
#elif defined(__aarch64__)
using PlainShape = Shape<16, 8, 3>;
#else
using PlainShape = Shape<16, 4, 2>;
#endif

struct Plain : PlainShape {
  template <class T>
  [[gnu::noinline]] static void multiply(const T* a, const T* b, std::int64_t b_step, std::int64_t depth,
                                         T* tile, std::int64_t tile_step) {
    multiply_strips<T, Plain>(a, b, b_step, depth, tile, tile_step);
  }
};

// One for each thread, as a kernel must not allocate: a few hundred KiB.
template <class T, class Kernel>
struct Packed {
  using Sizes = Block<T, Kernel>;
  alignas(64) T a[Sizes::kHigh * Sizes::kDeep];
  alignas(64) T b[Sizes::kDeep * Sizes::kWide];
};

template <class T, class Kernel>
Packed<T, Kernel>& packed() {
  static thread_local Packed<T, Kernel> buffers;
  return buffers;
}

// A matrix as it is meant, transposed or not: element (row, column) is data[row * down + column * across].
template <class T>
struct View {
  const T* data;
  std::int64_t down, across;

  View(Transpose transposed, const T* start, std::int64_t stride)
      : data(start),
        down(transposed == Transpose::no ? stride : 1),
        across(transposed == Transpose::no ? 1 : stride) {}

  const T* at(std::int64_t row, std::int64_t column) const { return data + row * down + column * across; }
};

// A whole strip: to[d * kSide + i] = scale * from[d * depth_step + i * line_step].
template <std::int64_t kSide, class T>
void pack_strip(const T* from, std::int64_t line_step, std::int64_t depth, std::int64_t depth_step, T scale,
                T* __restrict to) {
  std::int64_t d = 0;
  if constexpr (sizeof(T) == 4 && kSide % 4 == 0) {
    typedef T Four [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(alignof(T))]];
    const auto load = [scale](const T* place) { return scale * *reinterpret_cast<const Four*>(place); };
    const auto save = [](Four four, T* place) { *reinterpret_cast<Four*>(place) = four; };
    if (line_step == 1)
      for (; d < depth; ++d)
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kSide; i += 4) save(load(from + d * depth_step + i), to + d * kSide + i);
    // Lines that lie along the depth: squares of four by four are turned in registers.
    for (; depth_step == 1 && d + 4 <= depth; d += 4)
      for (std::int64_t i = 0; i < kSide; i += 4) {
        const T* line = from + d + i * line_step;
        const Four l0 = load(line), l1 = load(line + line_step);
        const Four l2 = load(line + 2 * line_step), l3 = load(line + 3 * line_step);
        const Four low01 = __builtin_shufflevector(l0, l1, 0, 4, 1, 5);
        const Four high01 = __builtin_shufflevector(l0, l1, 2, 6, 3, 7);
        const Four low23 = __builtin_shufflevector(l2, l3, 0, 4, 1, 5);
        const Four high23 = __builtin_shufflevector(l2, l3, 2, 6, 3, 7);
        T* square = to + d * kSide + i;
        save(__builtin_shufflevector(low01, low23, 0, 1, 4, 5), square);
        save(__builtin_shufflevector(low01, low23, 2, 3, 6, 7), square + kSide);
        save(__builtin_shufflevector(high01, high23, 0, 1, 4, 5), square + 2 * kSide);
        save(__builtin_shufflevector(high01, high23, 2, 3, 6, 7), square + 3 * kSide);
      }
  }
  for (; d < depth; ++d)
    for (std::int64_t i = 0; i < kSide; ++i) to[d * kSide + i] = scale * from[d * depth_step + i * line_step];
}

// Strip after strip of kSide lines, the last one filled up with zeros.
template <std::int64_t kSide, class T>
void pack(const T* from, std::int64_t lines, std::int64_t line_step, std::int64_t depth,
          std::int64_t depth_step, T scale, T* to) {
  std::int64_t first = 0;
  for (; first + kSide <= lines; first += kSide, to += kSide * depth)
    pack_strip<kSide>(from + first * line_step, line_step, depth, depth_step, scale, to);
  if (first == lines) return;
  for (std::int64_t d = 0; d < depth; ++d)
    for (std::int64_t i = 0; i < kSide; ++i)
      to[d * kSide + i] = first + i < lines ? scale * from[d * depth_step + (first + i) * line_step] : T(0);
}

// C (+)= the tile, of which rows x columns are there.
template <std::int64_t kTileColumns, class T>
void store(const T* tile, std::int64_t rows, std::int64_t columns, bool add, T* C, std::int64_t ldc) {
  const auto store_columns = [&](auto count) {
    for (std::int64_t i = 0; i < rows; ++i, tile += kTileColumns, C += ldc)
      for (std::int64_t j = 0; j < count; ++j) C[j] = add ? C[j] + tile[j] : tile[j];
  };
  if (columns == kTileColumns)
    store_columns(std::integral_constant<std::int64_t, kTileColumns>());
  else
    store_columns(columns);
}

template <class T>
void scale_all(std::int64_t m, std::int64_t n, T factor, T* C, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) C[i * ldc + j] = factor == 0 ? T(0) : factor * C[i * ldc + j];
}

template <class Kernel, class T>
void multiply_with(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                   const T* A, std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C,
                   std::int64_t ldc) {
  using Sizes = Block<T, Kernel>;
  constexpr std::int64_t kTileRows = Kernel::kRows, kTileColumns = Sizes::kTileColumns;
  constexpr std::int64_t kShort = 2 * kTileRows;  // rows of A, measured
  if (m == 0 || n == 0) return;
  if (k == 0 || (beta != 0 && beta != 1)) scale_all(m, n, beta, C, ldc);
  const View<T> left(a, A, lda), right(b, B, ldb);
  Packed<T, Kernel>& buffers = packed<T, Kernel>();
  const bool in_place = b == Transpose::no && m <= kShort;
  alignas(64) T tile[kTileRows * kTileColumns];
  for (std::int64_t column = 0; column < n; column += Sizes::kWide)
    for (std::int64_t depth = 0; depth < k; depth += Sizes::kDeep) {
      const std::int64_t wide = std::min(Sizes::kWide, n - column), deep = std::min(Sizes::kDeep, k - depth);
      const std::int64_t left_there = in_place ? wide - wide % kTileColumns : 0;
      const T* corner = right.at(depth, column);
      pack<kTileColumns>(corner + left_there * right.across, wide - left_there, right.across, deep,
                         right.down, T(1), buffers.b + left_there * deep);
      const bool add = depth > 0 || beta != 0;
      for (std::int64_t row = 0; row < m; row += Sizes::kHigh) {
        const std::int64_t high = std::min(Sizes::kHigh, m - row);
        pack<kTileRows>(left.at(row, depth), high, left.down, deep, left.across, alpha, buffers.a);
        for (std::int64_t j = 0; j < wide; j += kTileColumns) {
          const T* strip = j < left_there ? corner + j : buffers.b + j * deep;
          const std::int64_t step = j < left_there ? right.down : kTileColumns;
          for (std::int64_t i = 0; i < high; i += kTileRows) {
            const std::int64_t rows = std::min(kTileRows, high - i),
                               columns = std::min(kTileColumns, wide - j);
            T* c = C + (row + i) * ldc + column + j;
            if (rows == kTileRows && columns == kTileColumns && !add) {
              Kernel::multiply(buffers.a + i * deep, strip, step, deep, c, ldc);
            } else {
              Kernel::multiply(buffers.a + i * deep, strip, step, deep, tile, kTileColumns);
              store<kTileColumns>(tile, rows, columns, add, c, ldc);
            }
          }
        }
      }
    }
}

template <class T>
void multiply(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A,
              std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return multiply_with<Avx512>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiply_with<Avx2>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
#endif
  multiply_with<Plain>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

}  // namespace

void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc) {
  multiply(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                   const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta,
                   double* C, std::int64_t ldc) {
  multiply(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

}  // namespace weft::device
