#include "weft/device/cuda/multiplication.h"

#include <array>

#include <fmt/format.h>

namespace weft::device::cuda {
namespace {

// cuBLASLt's attribute numbers.
constexpr int kTransposeA = 3, kTransposeB = 4;   // of a product
constexpr int kBatchCount = 5, kBatchStride = 6;  // of a matrix
constexpr int kWorkspaceBytes = 1, kSumsOfParts = 3,
              kAlignmentOfA = 5;  // of preferences; four alignments from a to d
// Split-k sums are reduced in f32, never in a narrow type.
constexpr std::uint32_t kInComputeType = 2;
constexpr int kF32Scale = 0;

}  // namespace

double Multiplication::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(batch);
}

std::string Multiplication::key() const {
  return fmt::format("{}x{}x{}x{} {}{}{} ld {} {} {} stride {} {} {} type {} {} {} align {} {} {}", m, n, k,
                     batch, transposed_a ? 't' : 'n', transposed_b ? 't' : 'n', adds ? " adds" : "", lda, ldb,
                     ldc, a_stride, b_stride, c_stride, type, c_type, compute, a_alignment, b_alignment,
                     c_alignment);
}

Result<std::unique_ptr<Multiplier>> Multiplier::make(const BlasLt& library, Handle handle,
                                                     const Multiplication& what) {
  std::unique_ptr<Multiplier> made(new Multiplier(library, handle, what));
  WEFT_TRY_STATUS(made->describe());
  return made;
}

Multiplier::~Multiplier() {
  if (wishes_ != nullptr) library_.destroy_preference(wishes_);
  for (const Handle matrix : {a_, b_, c_})
    if (matrix != nullptr) library_.destroy_matrix(matrix);
  if (product_ != nullptr) library_.destroy_product(product_);
}

Status Multiplier::describe() {
  const auto told = [](Code code) { return check(code, "describe a product to cuBLASLt"); };
  WEFT_TRY_STATUS(told(library_.create_product(&product_, what_.compute, kF32Scale)));
  const auto transpose = [&](int attribute, bool transposed) {
    const std::int32_t value = transposed ? 1 : 0;
    return told(library_.set_product(product_, attribute, &value, sizeof value));
  };
  WEFT_TRY_STATUS(transpose(kTransposeA, what_.transposed_a));
  WEFT_TRY_STATUS(transpose(kTransposeB, what_.transposed_b));
  const auto matrix = [&](Handle& made, int type, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                          std::int64_t stride) -> Status {
    WEFT_TRY_STATUS(told(library_.create_matrix(&made, type, static_cast<std::uint64_t>(rows),
                                                static_cast<std::uint64_t>(columns), ld)));
    if (what_.batch == 1) return {};
    const auto count = static_cast<std::int32_t>(what_.batch);
    WEFT_TRY_STATUS(told(library_.set_matrix(made, kBatchCount, &count, sizeof count)));
    return told(library_.set_matrix(made, kBatchStride, &stride, sizeof stride));
  };
  const auto [m, n, k] = std::array{what_.m, what_.n, what_.k};
  WEFT_TRY_STATUS(matrix(a_, what_.type, what_.transposed_a ? k : m, what_.transposed_a ? m : k, what_.lda,
                         what_.a_stride));
  WEFT_TRY_STATUS(matrix(b_, what_.type, what_.transposed_b ? n : k, what_.transposed_b ? k : n, what_.ldb,
                         what_.b_stride));
  WEFT_TRY_STATUS(matrix(c_, what_.c_type, m, n, what_.ldc, what_.c_stride));
  WEFT_TRY_STATUS(told(library_.create_preference(&wishes_)));
  const auto wish = [&](int attribute, auto value) {
    return told(library_.set_preference(wishes_, attribute, &value, sizeof value));
  };
  WEFT_TRY_STATUS(wish(kWorkspaceBytes, static_cast<std::uint64_t>(kBlasWorkspace)));
  WEFT_TRY_STATUS(wish(kSumsOfParts, kInComputeType));
  const int alignments[] = {what_.a_alignment, what_.b_alignment, what_.c_alignment, what_.c_alignment};
  for (int i = 0; i < 4; ++i)
    WEFT_TRY_STATUS(wish(kAlignmentOfA + i, static_cast<std::uint32_t>(alignments[i])));
  return {};
}

std::vector<Multiplier::Candidate> Multiplier::candidates(int most) const {
  std::vector<Candidate> found(static_cast<std::size_t>(most));
  int count = 0;
  if (library_.rank(handle_, product_, a_, b_, c_, c_, wishes_, most, found.data(), &count) != 0) count = 0;
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const Candidate& one) { return one.state != 0 || one.workspace > kBlasWorkspace; });
  return found;
}

bool Multiplier::can_use(const ProductAlgorithm& algorithm) const {
  Candidate found;
  return library_.check(handle_, product_, a_, b_, c_, c_, algorithm.data(), &found) == 0 &&
         found.workspace <= kBlasWorkspace;
}

Code Multiplier::multiply(const ProductAlgorithm& algorithm, DevicePointer a, DevicePointer b,
                          DevicePointer c, DevicePointer workspace, Handle stream) const {
  const float one = 1, beta = what_.adds ? 1.0f : 0.0f;
  const auto place = [](DevicePointer pointer) { return reinterpret_cast<void*>(pointer); };
  return blas_code(library_.multiply(handle_, product_, &one, place(a), a_, place(b), b_, &beta, place(c), c_,
                                     place(c), c_, algorithm.data(), place(workspace), kBlasWorkspace,
                                     stream));
}

}  // namespace weft::device::cuda
