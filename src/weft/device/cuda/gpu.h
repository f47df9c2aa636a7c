// weft/device/cuda/gpu.h -- an NVIDIA GPU as a device: its context, memory, streams, and compiled
// kernels.
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

// Where kernels get their compiled functions.
class Functions {
 public:
  virtual ~Functions() = default;
  // The function `name` of a source, compiled once per distinct source, with `shared_bytes` of
  // dynamic shared memory.
  virtual Result<Handle> function(const std::string& text, const std::string& name,
                                  std::int64_t shared_bytes = 0) = 0;
  // True: f32 products are computed in f32. False: in TF32, whose operands have 10 fraction bits.
  virtual bool exact() const { return false; }
  // Whether there are wgmma and TMA: compute capability 9.0.
  virtual bool hopper() const { return false; }
  // The cuDNN handle; null without cuDNN.
  virtual Handle convolutions() { return nullptr; }
  // The GPU on which kernels that differ only in speed are measured; null: do not measure.
  virtual Gpu* trial_gpu() { return nullptr; }
  // The multiplier if an algorithm was chosen; else null.
  virtual const Multiplier* multiplier(const Multiplication&) { return nullptr; }
  // How threads share rows, if chosen for this row_key().
  virtual RowShape row_shape(const std::string&) { return {}; }
};

class Gpu final : public Device, public Functions, public std::enable_shared_from_this<Gpu> {
 public:
  // Opens the GPU with this ordinal.
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
  // Compiles all of the program's kernels, and measures where several differ only in speed.
  Status prepare(const program::Program& program) override;
  Result<std::unique_ptr<device::Kernel>> make_kernel(const program::Program& program,
                                                      const program::Unit& unit, Address memory) override;

  const Driver& driver() const { return driver_; }
  bool exact() const override { return exact_; }
  bool hopper() const override { return architecture_ == "sm_90a"; }
  unsigned processors() const { return processors_; }
  int device() const { return device_; }  // the driver's device number
  // Makes the context current on this thread, as driver calls need.
  void enter() const { driver_.set_context(context_); }
  // The same before releasing a resource; false if the call would hang.
  bool enter_to_release() const {
    if (!is_abandoned()) enter();
    return !is_abandoned();
  }

  // Compiled code is cached on disk for later processes.
  Result<Handle> function(const std::string& text, const std::string& name,
                          std::int64_t shared_bytes = 0) override;
  Handle convolutions() override;
  Gpu* trial_gpu() override { return this; }
  const Multiplier* multiplier(const Multiplication& what) override;
  RowShape row_shape(const std::string& key) override;
  // Compiles the sources that are neither loaded nor compiled yet, one thread per processor core.
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

  std::mutex mutex_;  // guards the members below
  std::map<Digest, Handle> modules_;
  std::map<Digest, std::string> images_;  // compiled ahead, not loaded yet
  bool asked_for_convolutions_ = false;
  Handle convolutions_ = nullptr;
  std::unique_ptr<ProductChoices> products_;
  std::unique_ptr<RowChoices> rows_;
};

// Folder for compiled kernels and measured choices; empty: no cache.
std::string cache_folder();

// What a launch needs from its stream.
struct LaunchContext {
  const Gpu& gpu;
  Handle stream;
  Handle blas;
  DevicePointer scratch;
  // kBlasWorkspace bytes for chosen algorithms; 0: use cuBLAS's default
  DevicePointer workspace = 0;
  unsigned room = 0;  // SMs that persistent kernels leave free
};

class Kernel : public device::Kernel {
 public:
  // Returns 0, or the code of the first call that failed.
  virtual Code launch(const LaunchContext& at, const program::Task& task) const = 0;
  // What it computes, for error messages.
  std::string what;
};

inline DevicePointer pointer(Address at) { return reinterpret_cast<DevicePointer>(at.raw()); }

}  // namespace weft::device::cuda
