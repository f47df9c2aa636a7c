#include "weft/device/cpu/bf16_gemm.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "weft/base/check.h"
#include "weft/device/cpu/bf16_squares.h"
#include "weft/device/cpu/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft::device::cpu {

std::string_view name(Bf16Products way) {
  constexpr std::array<std::string_view, 3> kNames = {"widened", "avx512", "amx"};
  return kNames[static_cast<std::size_t>(way)];
}

namespace {

// avx512 does not pay where vdpbf16ps has at most half the throughput of fma. One core of a Xeon
// with AMX, GFLOP/s at 128 x 128 x 128: amx 670, widened 115, avx512 75. AMD processors are not
// measured; they are said to issue both at the same rate.
bool dots_are_faster() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace

Bf16Products bf16_products() {
  static const Bf16Products chosen = [] {
    const char* const asked = std::getenv("WEFT_BF16_PRODUCTS");
    if (asked != nullptr)
      for (const Bf16Products way : {Bf16Products::amx, Bf16Products::avx512, Bf16Products::widened})
        if (name(way) == asked && has(way)) return way;
    if (has(Bf16Products::amx)) return Bf16Products::amx;
    return has(Bf16Products::avx512) && dots_are_faster() ? Bf16Products::avx512 : Bf16Products::widened;
  }();
  return chosen;
}

#if defined(__x86_64__)
namespace {

// Linux saves AMX tile data only for a process that has requested it; the permission covers all its
// threads.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool has_bf16 = (d >> 22 & 1) != 0, has_tiles = (d >> 24 & 1) != 0;
  return has_bf16 && has_tiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr std::int64_t kTile = 2 * kSquareLines;  // rows and columns of C at a time

// Operands of a kernel: strips of squares of A, by line, and of B, by pair. At most two strips
// each.
struct Strips {
  const Bf16 *a, *b;
  std::int64_t a_step, b_step;  // distance between strips
  std::int64_t squares;
};

// Writes the sums to `tile`, with leading dimension ldc. With `add` it adds to what is there.
using Kernel32 = void (*)(const Strips& of, int a_strips, int b_strips, bool add, float* tile,
                          std::int64_t ldc);

// Eight rows by one or two strips of columns.
template <int kStrips>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]] inline void dot_rows(
    const Bf16* a, const Bf16* b, std::int64_t b_step, std::int64_t squares, bool add, float* tile,
    std::int64_t ldc) {
  constexpr int kRows = 8;
  __m512 sum[kRows][kStrips];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kStrips; ++j)
      sum[i][j] = add ? _mm512_loadu_ps(tile + i * ldc + j * kSquareLines) : _mm512_setzero_ps();
  for (std::int64_t square = 0; square < squares; ++square, a += kSquareElements, b += kSquareElements)
    for (std::int64_t pair = 0; pair < kSquareDepth; pair += 2) {
      __m512i columns[kStrips];
#pragma GCC unroll 2
      for (int j = 0; j < kStrips; ++j) columns[j] = _mm512_load_si512(b + j * b_step + pair * kSquareLines);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        int both;
        std::memcpy(&both, a + i * kSquareDepth + pair, sizeof both);
        const __m512i row = _mm512_set1_epi32(both);
#pragma GCC unroll 2
        for (int j = 0; j < kStrips; ++j)
          sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)row, (__m512bh)columns[j]);
      }
    }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kStrips; ++j) _mm512_storeu_ps(tile + i * ldc + j * kSquareLines, sum[i][j]);
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]] void multiply_dots(
    const Strips& of, int a_strips, int b_strips, bool add, float* tile, std::int64_t ldc) {
  for (std::int64_t row = 0; row < a_strips * kSquareLines; row += 8) {
    const Bf16* const a = of.a + row / kSquareLines * of.a_step + row % kSquareLines * kSquareDepth;
    if (b_strips == 2)
      dot_rows<2>(a, of.b, of.b_step, of.squares, add, tile + row * ldc, ldc);
    else
      dot_rows<1>(a, of.b, of.b_step, of.squares, add, tile + row * ldc, ldc);
  }
}

// Tiles 0 to 3 hold sums, 4 and 5 hold A, 6 and 7 hold B; all have 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, unused[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

[[gnu::target("amx-tile,amx-bf16")]] void configure_tiles() {
  static constexpr TileShapes kShapes;
  _tile_loadconfig(&kShapes);
}
[[gnu::target("amx-tile,amx-bf16")]] void release_tiles() { _tile_release(); }

[[gnu::target("amx-tile,amx-bf16")]] void multiply_tiles(const Strips& of, int a_strips, int b_strips,
                                                         bool add, float* tile, std::int64_t ldc) {
  constexpr std::size_t kRowBytes = 64;
  const std::size_t step = static_cast<std::size_t>(ldc) * sizeof(float);
  const bool two_a = a_strips == 2, two_b = b_strips == 2;
  const Bf16 *a = of.a, *b = of.b;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (add) {
    _tile_loadd(0, tile, step);
    if (two_b) _tile_loadd(1, tile + kSquareLines, step);
    if (two_a) _tile_loadd(2, tile + kSquareLines * ldc, step);
    if (two_a && two_b) _tile_loadd(3, tile + kSquareLines * ldc + kSquareLines, step);
  }
  if (two_a && two_b) {
    for (std::int64_t square = 0; square < of.squares; ++square) {
      _tile_loadd(4, a, kRowBytes);
      _tile_loadd(6, b, kRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + of.b_step, kRowBytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + of.a_step, kRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      a += kSquareElements, b += kSquareElements;
    }
  } else {
    for (std::int64_t square = 0; square < of.squares; ++square) {
      _tile_loadd(4, a, kRowBytes);
      _tile_loadd(6, b, kRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      if (two_b) {
        _tile_loadd(7, b + of.b_step, kRowBytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if (two_a) {
        _tile_loadd(5, a + of.a_step, kRowBytes);
        _tile_dpbf16ps(2, 5, 6);
      }
      a += kSquareElements, b += kSquareElements;
    }
  }
  _tile_stored(0, tile, step);
  if (two_b) _tile_stored(1, tile + kSquareLines, step);
  if (two_a) _tile_stored(2, tile + kSquareLines * ldc, step);
  if (two_a && two_b) _tile_stored(3, tile + kSquareLines * ldc + kSquareLines, step);
}

// Block sizes for packing. A two-wide strip of B stays in L1 while A streams past it.
constexpr std::int64_t kDeepest = 512, kHigh = 256, kWide = 768;

struct PackedSquares {
  alignas(64) Bf16 a[kHigh * kDeepest];
  alignas(64) Bf16 b[kWide * kDeepest];
};

PackedSquares& packed_squares() {
  static thread_local const auto buffers = std::make_unique_for_overwrite<PackedSquares>();
  return *buffers;
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

void multiply_squares(Kernel32 kernel, Transpose a, Transpose b, std::int64_t m, std::int64_t n,
                      std::int64_t k, const Bf16* A, std::int64_t lda, const Bf16* B, std::int64_t ldb,
                      float beta, float* C, std::int64_t ldc, const program::Band* nothing) {
  const View<Bf16> left(a, A, lda), right(b, B, ldb);
  PackedSquares& buffers = packed_squares();
  // Equal shares of the depth in whole squares; they depend only on k.
  const std::int64_t parts = (k + kDeepest - 1) / kDeepest;
  const std::int64_t share = round_up((k + parts - 1) / parts, kSquareDepth);
  alignas(64) float tile[kTile * kTile];
  for (std::int64_t column = 0; column < n; column += kWide)
    for (std::int64_t depth = 0; depth < k; depth += share) {
      const std::int64_t deep = std::min(share, k - depth),
                         squares = round_up(deep, kSquareDepth) / kSquareDepth;
      const std::int64_t wide = std::min(kWide, n - column), strip = squares * kSquareElements;
      pack_squares<SquareOrder::by_pair>({right.at(depth, column), wide, right.across, deep, right.down},
                                         buffers.b);
      const bool add = depth > 0 || beta != 0;
      for (std::int64_t row = 0; row < m; row += kHigh) {
        const std::int64_t high = std::min(kHigh, m - row);
        pack_squares<SquareOrder::by_line>({left.at(row, depth), high, left.down, deep, left.across},
                                           buffers.a);
        for (std::int64_t j = 0; j < wide; j += kTile)
          for (std::int64_t i = 0; i < high; i += kTile) {
            const std::int64_t rows = std::min(kTile, high - i), columns = std::min(kTile, wide - j);
            std::int64_t first = 0, last = squares;
            if (nothing != nullptr) {
              const program::ProductBlock needed = nothing->needed(
                  {{row + i, row + i + rows}, {column + j, column + j + columns}, {depth, depth + deep}});
              first = needed.empty() ? 0 : (needed.k.begin - depth) / kSquareDepth;
              last = needed.empty() ? 0 : round_up(needed.k.end - depth, kSquareDepth) / kSquareDepth;
              if (first >= last && add) continue;  // without add, C must still become zero
            }
            const Strips of{buffers.a + i / kSquareLines * strip + first * kSquareElements,
                            buffers.b + j / kSquareLines * strip + first * kSquareElements, strip, strip,
                            last - first};
            const int a_strips = rows > kSquareLines ? 2 : 1, b_strips = columns > kSquareLines ? 2 : 1;
            float* const c = C + (row + i) * ldc + column + j;
            if (rows % kSquareLines == 0 && columns % kSquareLines == 0) {
              kernel(of, a_strips, b_strips, add, c, ldc);
              continue;
            }
            if (add)
              for (std::int64_t r = 0; r < rows; ++r) std::copy_n(c + r * ldc, columns, tile + r * kTile);
            kernel(of, a_strips, b_strips, add, tile, kTile);
            for (std::int64_t r = 0; r < rows; ++r) std::copy_n(tile + r * kTile, columns, c + r * ldc);
          }
      }
    }
}

}  // namespace

bool has(Bf16Products way) {
  static const bool avx512 =
      instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
  static const bool amx = avx512 && may_use_tiles();
  return way == Bf16Products::widened || (way == Bf16Products::amx ? amx : avx512);
}

void bf16_gemm(Bf16Products way, Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k,
               const Bf16* A, std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C,
               std::int64_t ldc, const program::Band* nothing) {
  WEFT_CHECK(has(way), "the processor supports these products");
  if (way == Bf16Products::widened || k == 0)
    return widened_gemm(a, b, m, n, k, A, lda, B, ldb, beta, C, ldc, nothing);
  if (m == 0 || n == 0) return;
  const bool tiles = way == Bf16Products::amx;
  if (tiles) configure_tiles();
  multiply_squares(tiles ? multiply_tiles : multiply_dots, a, b, m, n, k, A, lda, B, ldb, beta, C, ldc,
                   nothing);
  if (tiles) release_tiles();
}

#else

bool has(Bf16Products way) { return way == Bf16Products::widened; }

void bf16_gemm(Bf16Products way, Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k,
               const Bf16* A, std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C,
               std::int64_t ldc, const program::Band* nothing) {
  WEFT_CHECK(has(way), "the processor supports these products");
  widened_gemm(a, b, m, n, k, A, lda, B, ldb, beta, C, ldc, nothing);
}

#endif

void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                 std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing) {
  bf16_gemm(bf16_products(), a, b, m, n, k, A, lda, B, ldb, beta, C, ldc, nothing);
}

}  // namespace weft::device::cpu
