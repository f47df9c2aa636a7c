#include "weft/device/cuda/product_choices.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/device/cuda/gpu.h"
#include "weft/device/cuda/trial.h"

namespace weft::device::cuda {
namespace {

// Smaller products take too little time to matter.
constexpr double kLeastFlops = 1e9;
constexpr std::chrono::milliseconds kTrialBudget{2000};
constexpr int kCandidates = 8;

std::int64_t matrix_bytes(int type, std::int64_t columns, std::int64_t ld, std::int64_t batch,
                          std::int64_t stride) {
  const std::int64_t bytes =
      (columns * ld + (batch - 1) * std::max<std::int64_t>(stride, 0)) * (type == 0 ? 4 : 2);
  return (bytes + 255) / 256 * 256;
}

}  // namespace

ProductChoices::~ProductChoices() {
  chosen_.clear();
  if (handle_ != nullptr) library_->destroy(handle_);
}

std::string ProductChoices::full_key(const Multiplication& what) const {
  return fmt::format("{} on {} by cuBLASLt {}", what.key(), gpu_.model(), library_->version());
}

const Multiplier* ProductChoices::find(const Multiplication& what) {
  const std::lock_guard lock(mutex_);
  const auto found = chosen_.find(what.key());
  return found != chosen_.end() ? found->second.get() : nullptr;
}

void ProductChoices::choose(std::span<const Multiplication> all) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(asked_, true))
    if (const auto library = blas_lt(); library.ok() && (*library)->create(&handle_) == 0)
      library_ = *library;
  if (library_ == nullptr) return;
  struct Wanted {
    const Multiplication* what;
    double flops = 0;
  };
  std::map<std::string, Wanted> wanted;
  for (const Multiplication& what : all)
    if (what.flops() >= kLeastFlops && !chosen_.contains(what.key())) {
      Wanted& one = wanted[what.key()];
      one.what = &what;
      one.flops += what.flops();
    }
  std::vector<Wanted> order;
  for (const auto& [key, one] : wanted) order.push_back(one);
  std::ranges::stable_sort(order, std::greater<>(), &Wanted::flops);
  const auto end = std::chrono::steady_clock::now() + kTrialBudget;
  for (const Wanted& one : order) {
    auto multiplier = Multiplier::make(*library_, handle_, *one.what);
    if (!multiplier.ok()) continue;
    const std::string key = full_key(*one.what);
    std::optional<ProductAlgorithm> chosen = stored_choice(key);
    if (chosen && !(*multiplier)->can_use(*chosen)) chosen.reset();
    if (!chosen) {
      const auto candidates = (*multiplier)->candidates(kCandidates);
      if (candidates.empty()) continue;
      chosen = std::chrono::steady_clock::now() < end ? fastest(**multiplier, candidates)
                                                      : candidates.front().algorithm;
      keep_choice(key, *chosen);
    }
    (*multiplier)->use(*chosen);
    chosen_.emplace(one.what->key(), std::move(*multiplier));
  }
}

ProductAlgorithm ProductChoices::fastest(const Multiplier& multiplier,
                                         std::span<const Multiplier::Candidate> candidates) {
  const Multiplication& what = multiplier.what();
  const std::int64_t a = matrix_bytes(what.type, what.transposed_a ? what.m : what.k, what.lda, what.batch,
                                      what.a_stride),
                     b = matrix_bytes(what.type, what.transposed_b ? what.k : what.n, what.ldb, what.batch,
                                      what.b_stride),
                     c = matrix_bytes(what.c_type, what.n, what.ldc, what.batch, what.c_stride);
  auto trial = Trial::start(gpu_, a + b + c + kBlasWorkspace);
  if (!trial) return candidates.front().algorithm;
  const DevicePointer at_a = trial->memory(), at_b = at_a + static_cast<DevicePointer>(a),
                      at_c = at_b + static_cast<DevicePointer>(b),
                      workspace = at_c + static_cast<DevicePointer>(c);
  std::vector<Trial::Launch> launches;
  for (const Multiplier::Candidate& one : candidates)
    launches.push_back([&, algorithm = one.algorithm](const LaunchContext& at) {
      return multiplier.multiply(algorithm, at_a, at_b, at_c, workspace, at.stream);
    });
  return candidates[trial->fastest(launches, trial->place())].algorithm;
}

}  // namespace weft::device::cuda
