// weft/device/cuda/multiplication.h -- a matrix product with cuBLASLt: its description and
// algorithms.
//
//   multiplication     16384 x 768 x 3072, bf16, strides, alignments        described by key()
//   candidates         the eight algorithms that the library ranks best
//   chosen             the fastest, measured once and kept on disk by key, GPU and library version
//
// Products that were not measured use cuBLAS's default algorithm.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/cuda/api.h"
#include "weft/device/cuda/stored_choice.h"

namespace weft::device::cuda {

// c = a b, or c += a b, column-major as in cuBLAS: c is m x n.
struct Multiplication {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transposed_a = false, transposed_b = false, adds = false;
  std::int64_t lda = 1, ldb = 1, ldc = 1;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;     // between matrices of the batch
  int type = 0, c_type = 0, compute = 0;                     // the library's enumerators
  int a_alignment = 16, b_alignment = 16, c_alignment = 16;  // bytes, at most 16

  double flops() const;
  // Products with equal keys use the same algorithm.
  std::string key() const;
};

// Workspace of cuBLAS; a fixed workspace keeps its choices, and so the bits, the same.
inline constexpr std::int64_t kBlasWorkspace = 32 << 20;

// The library's opaque algorithm description, which can be stored and reused with the same library
// version.
using ProductAlgorithm = ChoiceWords;

// The library's descriptors of one multiplication; made once, used by any stream.
class Multiplier {
 public:
  static Result<std::unique_ptr<Multiplier>> make(const BlasLt& library, Handle handle,
                                                  const Multiplication& what);
  ~Multiplier();
  Multiplier(const Multiplier&) = delete;
  Multiplier& operator=(const Multiplier&) = delete;

  struct Candidate {
    ProductAlgorithm algorithm = {};
    std::int64_t workspace = 0;
    int state = 0;
    float waves = 0;
    int unused[4] = {};
  };
  static_assert(sizeof(Candidate) == 96, "as the library has it");
  // At most `most` candidates, in the library's order, best first.
  std::vector<Candidate> candidates(int most) const;
  // Whether the library still accepts it.
  bool can_use(const ProductAlgorithm& algorithm) const;
  void use(const ProductAlgorithm& algorithm) { algorithm_ = algorithm; }

  Code multiply(DevicePointer a, DevicePointer b, DevicePointer c, DevicePointer workspace,
                Handle stream) const {
    return multiply(algorithm_, a, b, c, workspace, stream);
  }
  Code multiply(const ProductAlgorithm& algorithm, DevicePointer a, DevicePointer b, DevicePointer c,
                DevicePointer workspace, Handle stream) const;

  const Multiplication& what() const { return what_; }

 private:
  Multiplier(const BlasLt& library, Handle handle, const Multiplication& what)
      : library_(library), handle_(handle), what_(what) {}
  Status describe();

  const BlasLt& library_;
  const Handle handle_;
  const Multiplication what_;
  Handle product_ = nullptr, a_ = nullptr, b_ = nullptr, c_ = nullptr, wishes_ = nullptr;
  ProductAlgorithm algorithm_ = {};
};

}  // namespace weft::device::cuda
