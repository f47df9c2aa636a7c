// weft/device/cuda/product_choices.h -- algorithms for a GPU's large products: measured once, kept
// on disk.
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

  // The multiplier if an algorithm was chosen; null: cuBLAS's default.
  const Multiplier* find(const Multiplication& what);

  // Chooses algorithms for a program's large products, listed once per execution in a step. Uses
  // stored choices; otherwise measures for up to two seconds in all, the most expensive products
  // first, then takes the library's first candidate.
  void choose(std::span<const Multiplication> all);

 private:
  std::string full_key(const Multiplication& what) const;
  ProductAlgorithm fastest(const Multiplier& multiplier, std::span<const Multiplier::Candidate> candidates);

  Gpu& gpu_;
  std::mutex mutex_;  // guards the members below
  bool asked_ = false;
  const BlasLt* library_ = nullptr;
  Handle handle_ = nullptr;
  std::map<std::string, std::unique_ptr<Multiplier>> chosen_;  // by key
};

}  // namespace weft::device::cuda
