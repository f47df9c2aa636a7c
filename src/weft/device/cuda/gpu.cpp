#include "weft/device/cuda/gpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/parallel_for.h"
#include "weft/base/private_folder.h"
#include "weft/device/cuda/compile.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/product_choices.h"
#include "weft/device/cuda/row_choices.h"
#include "weft/device/cuda/spilled_memory.h"
#include "weft/device/cuda/stream.h"

namespace weft::device::cuda {
namespace {

constexpr int kMostShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr std::int64_t kSharedUnasked = 48 << 10;
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // device attributes

class GpuMemory final : public Memory {
 public:
  GpuMemory(std::shared_ptr<Gpu> gpu, DevicePointer at) : gpu_(std::move(gpu)), at_(at) {}
  ~GpuMemory() override {
    if (gpu_->enter_to_release()) gpu_->driver().free(at_);
  }
  Address address() const override { return Address(reinterpret_cast<std::byte*>(at_)); }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const DevicePointer at_;
};

class PageLocked final : public HostMemory {
 public:
  PageLocked(std::shared_ptr<Gpu> gpu, void* at, std::size_t bytes)
      : gpu_(std::move(gpu)), at_(at), bytes_(bytes) {}
  ~PageLocked() override {
    if (gpu_->enter_to_release()) gpu_->driver().free_host(at_);
  }
  std::span<std::byte> bytes() const override { return {static_cast<std::byte*>(at_), bytes_}; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  void* const at_;
  const std::size_t bytes_;
};

// A driver runs code compiled by toolkits of its own major version or older.
Status check_versions(const Driver& driver, const Compiler& compiler) {
  int version = 0, major = 0, minor = 0;
  WEFT_TRY_STATUS(check(driver.driver_version(&version), "report its driver version"));
  compiler.version(&major, &minor);
  const int made_for = version / 1000;
  if (major <= made_for) return {};
  return environment_error(
      fmt::format("the NVIDIA driver supports CUDA {}.{}, but libnvrtc is from CUDA {}.{}: the driver cannot "
                  "run its output",
                  made_for, version % 1000 / 10, major, minor),
      fmt::format("install a newer driver, or put a CUDA {} toolkit in LD_LIBRARY_PATH", made_for));
}

}  // namespace

std::string cache_folder() {
  if (const char* const folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/')
    return fmt::format("{}/weft/kernels", folder);
  const char* const home = std::getenv("HOME");
  return home != nullptr ? fmt::format("{}/.cache/weft/kernels", home) : std::string();
}

Gpu::Gpu(const Driver& driver, int ordinal, int device, Handle context, bool exact)
    : driver_(driver),
      ordinal_(ordinal),
      device_(device),
      context_(context),
      exact_(exact),
      products_(std::make_unique<ProductChoices>(*this)),
      rows_(std::make_unique<RowChoices>(*this)) {}

Result<std::shared_ptr<Gpu>> Gpu::open(int ordinal, bool exact) {
  WEFT_TRY(driver, cuda::driver());
  if (is_any_abandoned())
    return environment_error(fmt::format("cuda:{} has not finished earlier work", ordinal),
                             "restart the program");
  int count = 0;
  WEFT_TRY_STATUS(check(driver->device_count(&count), "count its devices"));
  if (ordinal < 0 || ordinal >= count)
    return environment_error(fmt::format("this machine has {} GPUs: there is no cuda:{}", count, ordinal),
                             "GPUs are numbered from 0; CUDA_VISIBLE_DEVICES may hide some");
  int device = 0, major = 0, minor = 0, processors = 1;
  WEFT_TRY_STATUS(check(driver->device(&device, ordinal), "be opened"));
  WEFT_TRY_STATUS(check(driver->device_attribute(&major, kMajor, device), "report its attributes"));
  WEFT_TRY_STATUS(check(driver->device_attribute(&minor, kMinor, device), "report its attributes"));
  WEFT_TRY_STATUS(
      check(driver->device_attribute(&processors, kMultiprocessors, device), "report its attributes"));
  if (major < 8)
    return environment_error(
        fmt::format("cuda:{} has compute capability {}.{}; 8.0 or more is needed", ordinal, major, minor),
        "leave out ON GPU to run on the CPU");
  WEFT_TRY(compiler, cuda::compiler());
  WEFT_TRY_STATUS(check_versions(*driver, *compiler));
  Handle context = nullptr;
  WEFT_TRY_STATUS(check(driver->retain_context(&context, device), "make a context"));
  std::shared_ptr<Gpu> gpu(new Gpu(*driver, ordinal, device, context, exact));
  gpu->architecture_ = fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
  gpu->processors_ = static_cast<unsigned>(processors);
  std::array<char, 256> model = {};
  WEFT_TRY_STATUS(
      check(driver->device_name(model.data(), static_cast<int>(model.size()), device), "report its name"));
  gpu->model_ = model.data();
  return gpu;
}

Gpu::~Gpu() {
  if (!enter_to_release()) {
    (void)products_.release();  // cuBLAS would wait for the GPU
    return;
  }
  products_.reset();
  if (convolutions_ != nullptr) (*dnn())->destroy(convolutions_);
  for (const auto& [digest, module] : modules_) driver_.unload_module(module);
  driver_.release_context(device_);
}

std::string Gpu::name() const { return fmt::format("cuda:{}", ordinal_); }

std::int64_t Gpu::available_memory() const {
  enter();
  std::size_t free = 0, total = 0;
  return driver_.memory_info(&free, &total) == 0 ? static_cast<std::int64_t>(free) : 0;
}

Result<std::unique_ptr<Memory>> Gpu::allocate(std::int64_t bytes) {
  enter();
  DevicePointer at = 0;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  WEFT_TRY_STATUS(check(driver_.allocate(&at, size), fmt::format("allocate {} bytes", bytes)));
  auto memory = std::make_unique<GpuMemory>(shared_from_this(), at);
  WEFT_TRY_STATUS(check(driver_.fill(at, 0, size, nullptr), "clear memory"));
  WEFT_TRY_STATUS(check(driver_.synchronize(nullptr), "clear memory"));
  return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> Gpu::allocate_spilled(std::int64_t bytes, std::int64_t from,
                                                      std::int64_t to) {
  enter();
  return cuda::allocate_spilled(shared_from_this(), bytes, from, to);
}

Result<std::unique_ptr<HostMemory>> Gpu::allocate_host(std::int64_t bytes) {
  enter();
  void* at = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  WEFT_TRY_STATUS(
      check(driver_.allocate_host(&at, size, 0), fmt::format("lock {} bytes of the host", bytes)));
  return std::unique_ptr<HostMemory>(
      std::make_unique<PageLocked>(shared_from_this(), at, static_cast<std::size_t>(bytes)));
}

Result<std::unique_ptr<Stream>> Gpu::make_stream(const StreamOptions& options) {
  return cuda::make_stream(shared_from_this(), options);
}

Result<std::unique_ptr<Event>> Gpu::make_event() { return cuda::make_event(shared_from_this()); }

Result<std::unique_ptr<device::Kernel>> Gpu::make_kernel(const program::Program& program,
                                                         const program::Unit& unit, Address memory) {
  enter();
  auto kernel = cuda::make_kernel(*this, program, unit, memory);
  if (!kernel.ok()) {
    Error error = std::move(kernel).error();
    if (error.fault == Fault::world)
      error.message = fmt::format("{} on {}: {}", program::describe(program, unit), name(), error.message);
    return error;
  }
  (*kernel)->what = program::describe(program, unit);
  return std::unique_ptr<device::Kernel>(std::move(*kernel));
}

namespace {

// Collects the sources of kernels, which are made but never launched.
class SourceCollector final : public Functions {
 public:
  explicit SourceCollector(Gpu& gpu) : gpu_(gpu) {}

  Result<Handle> function(const std::string& text, const std::string&, std::int64_t) override {
    if (seen_.insert(text).second) texts.push_back(text);
    return Handle{nullptr};
  }
  bool exact() const override { return gpu_.exact(); }
  bool hopper() const override { return gpu_.hopper(); }
  Handle convolutions() override { return gpu_.convolutions(); }
  const Multiplier* multiplier(const Multiplication& what) override {
    multiplications.push_back(what);
    return nullptr;
  }
  RowShape row_shape(const std::string& key) override { return gpu_.row_shape(key); }
  std::vector<std::string> texts;
  std::vector<Multiplication> multiplications;

 private:
  Gpu& gpu_;
  std::set<std::string> seen_;
};

}  // namespace

Digest Gpu::digest(const std::string& text) const { return Hasher().text(text).text(architecture_).digest(); }

Status Gpu::prepare(const program::Program& program) {
  enter();
  rows_->choose(program);
  SourceCollector all(*this);
  alignas(256) static std::byte nowhere[256];
  for (const program::Unit& unit : program.units)
    if (!std::holds_alternative<program::Exchange>(unit.kernel))
      if (const auto made = cuda::make_kernel(all, program, unit, Address(nowhere)); !made.ok())
        return made.error();
  compile_all(std::move(all.texts));
  products_->choose(all.multiplications);
  return {};
}

void Gpu::compile_all(std::vector<std::string> texts) {
  std::vector<std::string> missing;
  {
    const std::lock_guard lock(mutex_);
    std::set<Digest> seen;
    for (std::string& text : texts)
      if (const Digest of = digest(text);
          !modules_.contains(of) && !images_.contains(of) && seen.insert(of).second)
        missing.push_back(std::move(text));
  }
  parallel_for(missing.size(), [&](std::size_t i) {
    const Digest of = digest(missing[i]);
    auto image = compiled(missing[i], of);
    if (!image.ok()) return;  // reported when its kernel is made
    const std::lock_guard lock(mutex_);
    images_.emplace(of, std::move(*image));
  });
}

Result<Handle> Gpu::function(const std::string& text, const std::string& name, std::int64_t shared_bytes) {
  const Digest digest = this->digest(text);
  const std::lock_guard lock(mutex_);
  enter();
  auto found = modules_.find(digest);
  if (found == modules_.end()) {
    std::string image;
    if (const auto ahead = images_.find(digest); ahead != images_.end()) {
      image = std::move(ahead->second);
      images_.erase(ahead);
    } else {
      WEFT_TRY(made, compiled(text, digest));
      image = std::move(made);
    }
    Handle module = nullptr;
    WEFT_TRY_STATUS(check(driver_.load_module(&module, image.data()), "load a kernel"));
    found = modules_.emplace(digest, module).first;
  }
  Handle function = nullptr;
  WEFT_TRY_STATUS(check(driver_.find_function(&function, found->second, name.c_str()), "find " + name));
  if (shared_bytes > kSharedUnasked)
    WEFT_TRY_STATUS(check(driver_.set_attribute(function, kMostShared, static_cast<int>(shared_bytes)),
                          fmt::format("provide {} bytes of shared memory per block", shared_bytes)));
  return function;
}

Handle Gpu::convolutions() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(asked_for_convolutions_, true)) return convolutions_;
  enter();
  if (const auto library = dnn(); library.ok() && (*library)->create(&convolutions_) != 0)
    convolutions_ = nullptr;
  return convolutions_;
}

const Multiplier* Gpu::multiplier(const Multiplication& what) { return products_->find(what); }

RowShape Gpu::row_shape(const std::string& key) { return rows_->find(key); }

// Reads the disk cache only from a folder that no other user can write.
Result<std::string> Gpu::compiled(const std::string& text, const Digest& digest) const {
  WEFT_TRY(compiler, cuda::compiler());
  int major = 0, minor = 0;
  compiler->version(&major, &minor);
  const std::string file = fmt::format("{}.{}.{}.{}.cubin", digest.hex(), architecture_, major, minor);
  constexpr std::int64_t kMostBytes = 64 << 20;
  const std::string folder = cache_folder();
  if (!folder.empty())
    if (const auto cache = PrivateFolder::open(folder); cache.ok())
      if (auto image = cache->read(file, kMostBytes); image.ok() && image->has_value())
        return std::move(**image);
  WEFT_TRY(image, compile(text, architecture_));
  if (!folder.empty())
    if (const auto cache = PrivateFolder::make(folder); cache.ok()) (void)cache->write(file, image);
  return image;
}

}  // namespace weft::device::cuda
