// weft/device/cuda/multiplication.h -- a product as cuBLASLt does it: what is multiplied, and by which of its algorithms.
//
//   multiplication     16384 x 768 x 3072, bf16, strides, alignments        described by a text, key()
//   candidates         what the library thinks is best, eight of them
//   chosen             the fastest of them, measured once, kept on disk under the text, the GPU and the library's version
//
// What nobody has measured goes by cuBLAS's own choice.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/cuda/api.h"
#include "weft/device/cuda/kept_choice.h"

namespace weft::device::cuda {

// c = a b, or c += a b, columns first as cuBLAS counts them: c is m x n.
struct Multiplication {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transposed_a = false, transposed_b = false, adds = false;
  std::int64_t lda = 1, ldb = 1, ldc = 1;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;     // from one of the batch to the next
  int type = 0, c_type = 0, compute = 0;                     // as the library numbers them
  int a_alignment = 16, b_alignment = 16, c_alignment = 16;  // bytes; no more than 16 are asked for

  double flops() const;
  // Two that have the same are done alike.
  std::string key() const;
};

// What cuBLAS may use beside its operands; a fixed place keeps its choices, and so the bits, the same.
inline constexpr std::int64_t kBlasWorkspace = 32 << 20;

// The library's own description of a way to multiply: it may be kept and used again by the same version.
using ProductAlgorithm = ChoiceWords;

// The library's descriptions of one multiplication; made once, used by any stream.
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
  // The library's best first; at most so many.
  std::vector<Candidate> candidates(int most) const;
  // Whether the library would still take it.
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
