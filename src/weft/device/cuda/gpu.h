// weft/device/cuda/gpu.h -- one NVIDIA GPU as a device: its context, memory, streams, and kernels compiled for it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/hash.h"
#include "weft/device/cuda/api.h"
#include "weft/device/cuda/multiplication.h"
#include "weft/device/cuda/row_source.h"
#include "weft/device/device.h"

namespace weft::device::cuda {

class Gpu;
class ProductChoices;
class RowChoices;

// Where kernels get what their texts were compiled to.
class Functions {
 public:
  virtual ~Functions() = default;
  // The function of a text, compiled once for alike texts; its blocks share so many bytes beside what it declares.
  virtual Result<Handle> function(const std::string& text, const std::string& name,
                                  std::int64_t shared_bytes = 0) = 0;
  // Products of f32 in f32; else by TF32, whose factors have 10 bits behind the point.
  virtual bool exact() const { return false; }
  // Products of four warps at once, and an engine that copies boxes of tensors: compute capability 9.0.
  virtual bool hopper() const { return false; }
  // What cuDNN is called with; null where it is not there.
  virtual Handle convolutions() { return nullptr; }
  // Where kernels that differ in nothing but their speed are tried; null: nowhere.
  virtual Gpu* trial_gpu() { return nullptr; }
  // How to multiply, where an algorithm was chosen; else null.
  virtual const Multiplier* multiplier(const Multiplication&) { return nullptr; }
  // How threads share rows, by row_key(), where that was chosen.
  virtual RowShape row_shape(const std::string&) { return {}; }
};

class Gpu final : public Device, public Functions, public std::enable_shared_from_this<Gpu> {
 public:
  // The GPU of this number.
  static Result<std::shared_ptr<Gpu>> open(int ordinal, bool exact);
  ~Gpu() override;

  std::string name() const override;
  std::string model() const override { return model_; }
  bool host_accessible() const override { return false; }
  std::int64_t available_memory() const override;
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override;
  Result<std::unique_ptr<Memory>> allocate_spilled(std::int64_t bytes, std::int64_t from,
                                                   std::int64_t to) override;
  Result<std::unique_ptr<HostMemory>> allocate_host(std::int64_t bytes) override;
  Result<std::unique_ptr<Stream>> make_stream(const StreamOptions& options) override;
  Result<std::unique_ptr<Event>> make_event() override;
  // Compiles the texts of all its kernels, and chooses by trial where several are the same but for their speed.
  Status prepare(const program::Program& program) override;
  Result<std::unique_ptr<device::Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit, Address memory) override;

  const Driver& driver() const { return driver_; }
  bool exact() const override { return exact_; }
  bool hopper() const override { return architecture_ == "sm_90a"; }
  unsigned processors() const { return processors_; }
  int device() const { return device_; }  // as the driver numbers it
  // The context is a thread's own affair: whoever calls the driver says which it means.
  void enter() const { driver_.set_context(context_); }
  // The same for whoever gives something back; false where that would not return.
  bool enter_to_give_back() const {
    if (!is_abandoned()) enter();
    return !is_abandoned();
  }

  // What was compiled is kept on disk for the next process.
  Result<Handle> function(const std::string& text, const std::string& name,
                          std::int64_t shared_bytes = 0) override;
  Handle convolutions() override;
  Gpu* trial_gpu() override { return this; }
  const Multiplier* multiplier(const Multiplication& what) override;
  RowShape row_shape(const std::string& key) override;
  // Those that are neither loaded nor compiled yet, as many at a time as there are processors.
  void compile_all(std::vector<std::string> texts);

 private:
  Gpu(const Driver& driver, int ordinal, int device, Handle context, bool exact);
  Result<std::string> compiled(const std::string& text, const Digest& digest) const;

  const Driver& driver_;
  const int ordinal_, device_;
  const Handle context_;
  const bool exact_;
  std::string model_;
  std::string architecture_;  // "sm_90a"
  unsigned processors_ = 1;
  Digest digest(const std::string& text) const;

  std::mutex mutex_;  // of what follows
  std::map<Digest, Handle> modules_;
  std::map<Digest, std::string> images_;  // compiled ahead, not loaded yet
  bool asked_for_convolutions_ = false;
  Handle convolutions_ = nullptr;
  std::unique_ptr<ProductChoices> products_;
  std::unique_ptr<RowChoices> rows_;
};

// Where what was compiled and chosen is kept; empty: nowhere.
std::string cache_folder();

// What a launch needs of its stream.
struct LaunchPlace {
  const Gpu& gpu;
  Handle stream;
  Handle blas;
  DevicePointer scratch;
  // kBlasWorkspace bytes, for chosen algorithms; 0: products go by cuBLAS's choice
  DevicePointer workspace = 0;
  unsigned room = 0;  // processors that kernels whose blocks stay leave to others
};

class Kernel : public device::Kernel {
 public:
  // 0, or the code of the first call that failed.
  virtual Code launch(const LaunchPlace& at, const program::Task& task) const = 0;
  // What it computes, for errors.
  std::string what;
};

inline DevicePointer pointer(Address at) { return reinterpret_cast<DevicePointer>(at.raw()); }

}  // namespace weft::device::cuda
