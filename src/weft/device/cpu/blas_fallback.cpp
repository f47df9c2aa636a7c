// portable_gemm, after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34(3), 2008:
//
//        n            A block of B, deep x kWide, is packed into strips as wide as a tile, and a block of
//      +----+----+    A, kHigh x deep, into strips as high as one. The kernel keeps a tile of C in
//    k | B  |    |    registers and reads both strips from start to end. A strip of one operand stays in
//      +----+----+    L1 while the block of the other streams past it from L2.
//  +-+ +----+----+
// m|A| | C  |    |    A short A uses each strip of B too few times to pay for packing: then full strips
//  +-+ +----+----+    are read in place.
//
// Every element of C has one order of additions, whatever tile it falls into.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/gemm_packing.h"
#include "weft/device/cpu/instruction_set.h"

namespace weft::device::cpu {
namespace {

// A kernel's register tile of C, kRows x kVectors vectors: as many as fit beside a column of A and
// a row of B. kDeepBytes is how many bytes of each row it sums at a time: more writes C less often,
// but the strip that stays should leave room in L1. All measured.
enum class Stays : bool { strip_of_a, strip_of_b };

template <std::size_t kBytes, std::int64_t kTileRows, std::int64_t kTileVectors, std::size_t kDepthBytes,
          std::int64_t kHighTiles = 16, Stays kWhichStays = Stays::strip_of_b>
struct Shape {
  static constexpr std::size_t kVectorBytes = kBytes, kDeepBytes = kDepthBytes;
  static constexpr std::int64_t kRows = kTileRows, kVectors = kTileVectors, kTiles = kHighTiles;
  static constexpr Stays kStays = kWhichStays;
};

template <class T, class Kernel>
struct Block {
  typedef T Vector [[gnu::vector_size(Kernel::kVectorBytes), gnu::may_alias, gnu::aligned(alignof(T))]];
  static constexpr std::int64_t kLanes = Kernel::kVectorBytes / sizeof(T);
  static constexpr std::int64_t kTileColumns = Kernel::kVectors * kLanes;
  static constexpr std::int64_t kDeepest = Kernel::kDeepBytes / sizeof(T);
  static constexpr std::int64_t kHigh = Kernel::kTiles * Kernel::kRows;
  static constexpr std::int64_t kWide = 768;  // A is packed again for every block of columns
  static_assert(kWide % kTileColumns == 0);
};

// tile (+)= strip of A times strip of B, whose rows are b_step apart. Inlined into each kernel, so
// that it is compiled for that kernel's instruction set.
template <class T, class Kernel, std::int64_t kVectors>
[[gnu::always_inline]] inline void multiply_strips(const T* a, const T* b, std::int64_t b_step,
                                                   std::int64_t depth, bool add, T* tile,
                                                   std::int64_t tile_step) {
  using Vector = typename Block<T, Kernel>::Vector;
  constexpr std::int64_t kRows = Kernel::kRows, kLanes = Block<T, Kernel>::kLanes;
  Vector sum[kRows][kVectors] = {};
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kRows; ++i) __builtin_prefetch(tile + i * tile_step, 1);
#pragma GCC unroll 4
  for (std::int64_t d = 0; d < depth; ++d, a += kRows, b += b_step) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kVectors; ++j) row[j] = *reinterpret_cast<const Vector*>(b + j * kLanes);
#if defined(__aarch64__)
    // Multiplying by one lane of a vector is one instruction here, so A needs few registers.
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
    for (std::int64_t j = 0; j < kVectors; ++j) {
      Vector& place = *reinterpret_cast<Vector*>(tile + i * tile_step + j * kLanes);
      place = add ? place + sum[i][j] : sum[i][j];
    }
}

#if defined(__x86_64__)
struct Avx512 : Shape<64, 8, 3, 1024, 32, Stays::strip_of_a> {
  template <std::int64_t kVectors, class T>
  [[gnu::noinline, gnu::target("avx512f")]] static void multiply(const T* a, const T* b, std::int64_t b_step,
                                                                 std::int64_t depth, bool add, T* tile,
                                                                 std::int64_t tile_step) {
    multiply_strips<T, Avx512, kVectors>(a, b, b_step, depth, add, tile, tile_step);
  }
};
struct Avx2 : Shape<32, 6, 2, 1024> {
  template <std::int64_t kVectors, class T>
  [[gnu::noinline, gnu::target("avx2,fma")]] static void multiply(const T* a, const T* b, std::int64_t b_step,
                                                                  std::int64_t depth, bool add, T* tile,
                                                                  std::int64_t tile_step) {
    multiply_strips<T, Avx2, kVectors>(a, b, b_step, depth, add, tile, tile_step);
  }
};
using PlainShape = Shape<16, 4, 2, 1024>;
#elif defined(__aarch64__)
using PlainShape = Shape<16, 8, 3, 1536>;
#else
using PlainShape = Shape<16, 4, 2, 1024>;
#endif

struct Plain : PlainShape {
  template <std::int64_t kVectors, class T>
  [[gnu::noinline]] static void multiply(const T* a, const T* b, std::int64_t b_step, std::int64_t depth,
                                         bool add, T* tile, std::int64_t tile_step) {
    multiply_strips<T, Plain, kVectors>(a, b, b_step, depth, add, tile, tile_step);
  }
};

// Cuts A into strips as high as a tile.
template <class Kernel>
struct RowStrips {
  template <class Then>
  static void next(std::int64_t, Then&& then) {
    then(std::integral_constant<std::int64_t, Kernel::kRows>());
  }
};

// Cuts B into strips as wide as a tile. The remainder is split so that little padding is computed:
// 64 columns of 4 lanes are 12 12 12 12 8 8.
template <class T, class Kernel, std::int64_t kMost = Kernel::kVectors>
struct ColumnStrips {
  static constexpr std::int64_t kLanes = Block<T, Kernel>::kLanes;

  template <class Then>
  static void next(std::int64_t left, Then&& then) {
    const std::int64_t vectors = (left + kLanes - 1) / kLanes;
    const std::int64_t taken = vectors == Kernel::kVectors + 1 ? (vectors + 1) / 2 : vectors;
    if constexpr (kMost > 1)
      if (taken < kMost) return ColumnStrips<T, Kernel, kMost - 1>::next(left, then);
    then(std::integral_constant<std::int64_t, kMost * kLanes>());
  }
};

// 1.5 MiB.
template <class T, class Kernel>
struct Packed {
  using Sizes = Block<T, Kernel>;
  alignas(64) T a[Sizes::kHigh * Sizes::kDeepest];
  alignas(64) T b[Sizes::kDeepest * Sizes::kWide];
};

// One per thread, allocated at its first product: a plain thread_local array would take space on
// every thread's stack and be cleared when the thread starts.
template <class T, class Kernel>
Packed<T, Kernel>& packed() {
  static thread_local const auto buffers = std::make_unique_for_overwrite<Packed<T, Kernel>>();
  return *buffers;
}

// Room for the largest block that is packed at a time, as f32 in its original order.
template <class T, class Kernel>
T* room_to_widen() {
  using Sizes = Block<T, Kernel>;
  constexpr std::size_t kMost =
      static_cast<std::size_t>(std::max(Sizes::kHigh, Sizes::kWide) * Sizes::kDeepest);
  static thread_local const auto room = std::make_unique_for_overwrite<T[]>(kMost);
  return room.get();
}

// Widening f16 takes many instructions: widen whole lines with the widest vectors before packing.
template <class Sides, class Kernel, class From, class T>
void pack_lines(const Lines<From>& lines, T scale, T* to) {
  if constexpr (std::is_same_v<From, F16>) {
    if (lines.line_step == 1 || lines.depth_step == 1) {
      T* const room = room_to_widen<T, Kernel>();
      const bool deep = lines.depth_step == 1;
      const std::int64_t runs = deep ? lines.count : lines.depth, run = deep ? lines.depth : lines.count;
      const std::int64_t step = deep ? lines.line_step : lines.depth_step;
      for (std::int64_t i = 0; i < runs; ++i)
        widen(plan::DType::f16, reinterpret_cast<const std::byte*>(lines.from + i * step), room + i * run,
              run);
      return pack<Sides>(Lines<T>{room, lines.count, deep ? run : 1, lines.depth, deep ? 1 : run}, scale, to);
    }
  }
  pack<Sides>(lines, scale, to);
}

// C (+)= tile, of which rows x columns are valid.
template <class T>
void store(const T* tile, std::int64_t tile_step, std::int64_t rows, std::int64_t columns, bool add, T* C,
           std::int64_t ldc) {
  for (std::int64_t i = 0; i < rows; ++i, tile += tile_step, C += ldc)
    for (std::int64_t j = 0; j < columns; ++j) C[j] = add ? C[j] + tile[j] : tile[j];
}

template <class T>
void scale_all(std::int64_t m, std::int64_t n, T factor, T* C, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) C[i * ldc + j] = factor == 0 ? T(0) : factor * C[i * ldc + j];
}

// The packed depths that a tile must sum, relative to the first of them.
inline program::Range needed_depths(const program::Band& nothing, program::Range rows, program::Range columns,
                                    program::Range depths) {
  const program::ProductBlock block = nothing.needed({rows, columns, depths});
  if (block.empty()) return {};
  return {block.k.begin - depths.begin, block.k.end - depths.begin};
}

template <class Kernel, class From, class T>
void multiply_with(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                   const From* A, std::int64_t lda, const From* B, std::int64_t ldb, T beta, T* C,
                   std::int64_t ldc, const program::Band* nothing) {
  using Sizes = Block<T, Kernel>;
  using Columns = ColumnStrips<T, Kernel>;
  constexpr std::int64_t kTileRows = Kernel::kRows;
  constexpr std::int64_t kShort = 2 * kTileRows;  // rows of A; measured
  if (m == 0 || n == 0) return;
  if (k == 0 || (beta != 0 && beta != 1)) scale_all(m, n, beta, C, ldc);
  if (k == 0) return;
  const View<From> left(a, A, lda), right(b, B, ldb);
  Packed<T, Kernel>& buffers = packed<T, Kernel>();
  // Operands to be widened must be packed.
  const bool in_place = std::is_same_v<From, T> && b == Transpose::no && m <= kShort;
  // Equal shares of the depth, so that the last is not much shorter.
  const std::int64_t parts = (k + Sizes::kDeepest - 1) / Sizes::kDeepest;
  alignas(64) T tile[kTileRows * Sizes::kTileColumns];
  for (std::int64_t column = 0; column < n; column += Sizes::kWide)
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t depth = k / parts * part + std::min(part, k % parts);
      const std::int64_t deep = k / parts + (part < k % parts ? 1 : 0);
      const std::int64_t wide = std::min(Sizes::kWide, n - column);
      // In place, only a partial strip is packed.
      std::int64_t left_there = 0;
      if (in_place)
        for_strips<Columns>(wide, [&](std::int64_t first, auto side) {
          if (first + side <= wide) left_there = first + side;
        });
      const From* corner = right.at(depth, column);
      pack_lines<Columns, Kernel>(
          Lines<From>{corner + left_there * right.across, wide - left_there, right.across, deep, right.down},
          T(1), buffers.b + left_there * deep);
      const bool add = part > 0 || beta != 0;
      for (std::int64_t row = 0; row < m; row += Sizes::kHigh) {
        const std::int64_t high = std::min(Sizes::kHigh, m - row);
        pack_lines<RowStrips<Kernel>, Kernel>(
            Lines<From>{left.at(row, depth), high, left.down, deep, left.across}, alpha, buffers.a);
        const auto multiply_tile = [&](std::int64_t i, std::int64_t j, auto side) {
          const T* strip = buffers.b + j * deep;
          if constexpr (std::is_same_v<From, T>)
            if (j < left_there) strip = corner + j;
          const std::int64_t step = j < left_there ? right.down : side;
          const std::int64_t rows = std::min(kTileRows, high - i);
          const std::int64_t columns = std::min<std::int64_t>(side, wide - j);
          T* c = C + (row + i) * ldc + column + j;
          constexpr std::int64_t kVectors = side / Sizes::kLanes;
          program::Range depths{0, deep};
          if (nothing != nullptr)
            depths = needed_depths(*nothing, {row + i, row + i + rows}, {column + j, column + j + columns},
                                   {depth, depth + deep});
          if (depths.empty() && add) return;  // without add, C must still become zero
          const T* const a_strip = buffers.a + i * deep + depths.begin * kTileRows;
          const T* const b_strip = strip + depths.begin * step;
          const std::int64_t summands = depths.end - depths.begin;
          if (rows == kTileRows && columns == side) {
            Kernel::template multiply<kVectors>(a_strip, b_strip, step, summands, add, c, ldc);
          } else {
            Kernel::template multiply<kVectors>(a_strip, b_strip, step, summands, false, tile, side);
            store<T>(tile, side, rows, columns, add, c, ldc);
          }
        };
        if constexpr (Kernel::kStays == Stays::strip_of_a) {
          for (std::int64_t i = 0; i < high; i += kTileRows)
            for_strips<Columns>(wide, [&](std::int64_t j, auto side) { multiply_tile(i, j, side); });
        } else {
          for_strips<Columns>(wide, [&](std::int64_t j, auto side) {
            for (std::int64_t i = 0; i < high; i += kTileRows) multiply_tile(i, j, side);
          });
        }
      }
    }
}

template <class From, class T>
void multiply(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
              const From* A, std::int64_t lda, const From* B, std::int64_t ldb, T beta, T* C,
              std::int64_t ldc, const program::Band* nothing = nullptr) {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512)
    return multiply_with<Avx512>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nothing);
  if (instruction_set() == InstructionSet::avx2)
    return multiply_with<Avx2>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nothing);
#endif
  multiply_with<Plain>(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nothing);
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
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc, const program::Band& nothing) {
  multiply(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, &nothing);
}

void widened_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                  std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                  const program::Band* nothing) {
  multiply(a, b, m, n, k, 1.0f, A, lda, B, ldb, beta, C, ldc, nothing);
}
void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const F16* A,
                 std::int64_t lda, const F16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing) {
  multiply(a, b, m, n, k, 1.0f, A, lda, B, ldb, beta, C, ldc, nothing);
}

}  // namespace weft::device::cpu
