// weft/device/cuda/product_choices.h -- the algorithms of a GPU's large products: measured once, kept on disk.
#pragma once
#include <map>
#include <mutex>
#include <span>

#include "weft/device/cuda/multiplication.h"

namespace weft::device::cuda {

class Gpu;

class ProductChoices {
 public:
  explicit ProductChoices(Gpu& gpu) : gpu_(gpu) {}
  ~ProductChoices();

  // How to do it, where that was chosen; null: by cuBLAS's own choice.
  const Multiplier* find(const Multiplication& what);

  // Chooses for those of a program that are worth it, each as often as it is done in a step: what was kept; else the
  // fastest, measured for some two seconds in all, where the step takes most first; when those are over the library's first.
  void choose(std::span<const Multiplication> all);

 private:
  std::string full_key(const Multiplication& what) const;
  ProductAlgorithm fastest(const Multiplier& multiplier, std::span<const Multiplier::Candidate> candidates);

  Gpu& gpu_;
  std::mutex mutex_;  // of what follows
  bool asked_ = false;
  const BlasLt* library_ = nullptr;
  Handle handle_ = nullptr;
  std::map<std::string, std::unique_ptr<Multiplier>> chosen_;  // by key
};

}  // namespace weft::device::cuda
