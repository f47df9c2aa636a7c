#include "weft/device/cuda/convolution.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/device/cuda/kernel_source.h"
#include "weft/device/cuda/stored_choice.h"
#include "weft/device/cuda/trial.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"

namespace weft::device::cuda {
namespace {

// cuDNN's enumerators.
constexpr int kPlanes = 0, kChannelsLast = 1;  // NCHW, NHWC
constexpr int kCorrelation = 1;                // windows are not flipped
constexpr int kSumsInF32 = 0;
constexpr int kTensorCores = 1, kPlainF32 = 3, kAnyF32 = 0;  // kAnyF32 may round factors to TF32
constexpr std::size_t kMostWorkspace = std::size_t{1} << 30;

int type_number(plan::DType dtype) {
  return dtype == plan::DType::bf16 ? 9 : dtype == plan::DType::f16 ? 2 : 0;
}

enum class Pass { forward, input_gradient, filter_gradient };

// A result of Dnn::rank (cudnnConvolutionFwdAlgoPerf_t), best first.
struct Ranked {
  int algorithm, status;
  float milliseconds;
  std::size_t workspace;
  int same_bits, math, reserved[3];
};
static_assert(sizeof(Ranked) == 48);

class Described {
 public:
  Described(const Dnn& dnn, const ops::Convolution& conv, plan::DType dtype, bool exact, int layout)
      : dnn_(dnn) {
    const int type = type_number(dtype);
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const int stride = whole(conv.stride);
    ok_ = dnn.create_tensor(&x) == 0 && dnn.create_tensor(&y) == 0 && dnn.create_filter(&w) == 0 &&
          dnn.create_convolution(&how) == 0 &&
          dnn.set_tensor(x, layout, type, whole(conv.batch), whole(conv.channels), whole(conv.height),
                         whole(conv.width)) == 0 &&
          dnn.set_tensor(y, layout, type, whole(conv.batch), whole(conv.outputs), whole(conv.high),
                         whole(conv.wide)) == 0 &&
          dnn.set_filter(w, type, layout, whole(conv.outputs), whole(conv.inputs), whole(conv.rows),
                         whole(conv.columns)) == 0 &&
          dnn.set_convolution(how, whole(conv.padding), whole(conv.padding_w), stride, stride, 1, 1,
                              kCorrelation, kSumsInF32) == 0 &&
          dnn.set_groups(how, whole(conv.groups)) == 0 &&
          dnn.set_math(how, dtype != plan::DType::f32 ? kTensorCores
                            : exact                   ? kPlainF32
                                                      : kAnyF32) == 0;
  }
  ~Described() {
    for (const Handle tensor : {x, y})
      if (tensor != nullptr) dnn_.destroy_tensor(tensor);
    if (w != nullptr) dnn_.destroy_filter(w);
    if (how != nullptr) dnn_.destroy_convolution(how);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  bool ok() const { return ok_; }
  Handle x = nullptr, w = nullptr, y = nullptr, how = nullptr;

 private:
  const Dnn& dnn_;
  bool ok_ = false;
};

// A tensor planes[outer][channels][points] to transpose. cuDNN's fastest kernels use channels-last.
// cuDNN would transpose into scratch memory itself where it must, but slower.
struct Transposed {
  std::int64_t outer = 1, channels = 1, points = 1;

  bool is_same() const { return channels == 1 || points == 1; }  // both layouts are equal
  std::int64_t bytes() const { return is_same() ? 0 : (outer * channels * points * 2 + 255) / 256 * 256; }
};

// One algorithm and layout for a convolution.
struct Way {
  int layout = kPlanes, algorithm = 0, math = 0;
  std::size_t workspace = 0;
};

class LibraryConvolution final : public Kernel {
 public:
  // Two operands and a result, in the node's order.
  struct Memory {
    std::array<DevicePointer, 3> at = {};
    std::array<Transposed, 3> transposed = {};
    Handle transpose = nullptr;
  };
  LibraryConvolution(const Dnn& dnn, Handle handle, std::unique_ptr<const Described> shape, Pass pass,
                     const Way& way, const Memory& memory)
      : dnn_(dnn), handle_(handle), shape_(std::move(shape)), pass_(pass), way_(way), memory_(memory) {}

  std::int64_t scratch_bytes() const override {
    return transposed_bytes() + static_cast<std::int64_t>(way_.workspace);
  }

  Code launch(const LaunchContext& at, const program::Task&) const override {
    std::array<DevicePointer, 3> seen = memory_.at;
    DevicePointer next = at.scratch;
    if (way_.layout == kChannelsLast)
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const Transposed& transposed = memory_.transposed[i];
        if (transposed.is_same()) continue;
        seen[i] = std::exchange(next, next + static_cast<DevicePointer>(transposed.bytes()));
        if (i == 2) continue;
        if (const Code code = transpose(at, memory_.at[i], seen[i], transposed); code != 0) return code;
      }
    if (const Code code = convolve(at, seen, next); code != 0) return code;
    if (seen[2] == memory_.at[2]) return 0;
    const Transposed& made = memory_.transposed[2];
    return transpose(at, seen[2], memory_.at[2], {made.outer, made.points, made.channels});
  }

 private:
  std::int64_t transposed_bytes() const {
    std::int64_t bytes = 0;
    for (const Transposed& transposed : memory_.transposed)
      bytes += way_.layout == kChannelsLast ? transposed.bytes() : 0;
    return bytes;
  }

  Code transpose(const LaunchContext& at, DevicePointer from, DevicePointer to,
                 const Transposed& tensor) const {
    constexpr std::int64_t kTile = 64;
    Parameters parameters;
    parameters.pointer(from).pointer(to).whole(tensor.channels).whole(tensor.points);
    const std::int64_t tiles =
        (tensor.channels + kTile - 1) / kTile * ((tensor.points + kTile - 1) / kTile) * tensor.outer;
    return parameters.launch(at, memory_.transpose, {static_cast<unsigned>(tiles), 1}, {256, 1});
  }

  Code convolve(const LaunchContext& at, const std::array<DevicePointer, 3>& seen,
                DevicePointer workspace) const {
    static std::mutex mutex;  // the handle has a single current stream
    const std::lock_guard lock(mutex);
    if (const Code code = dnn_.set_stream(handle_, at.stream); code != 0) return code;
    const float one = 1, zero = 0;
    const auto place = [](DevicePointer pointer) { return reinterpret_cast<void*>(pointer); };
    void *const a = place(seen[0]), *const b = place(seen[1]), *const to = place(seen[2]);
    void* const scratch = place(workspace);
    const Described& s = *shape_;
    if (pass_ == Pass::forward)
      return dnn_.forward(handle_, &one, s.x, a, s.w, b, s.how, way_.algorithm, scratch, way_.workspace,
                          &zero, s.y, to);
    // In both gradients of conv2d the first operand is dy.
    if (pass_ == Pass::input_gradient)
      return dnn_.input_gradient(handle_, &one, s.w, b, s.y, a, s.how, way_.algorithm, scratch,
                                 way_.workspace, &zero, s.x, to);
    return dnn_.filter_gradient(handle_, &one, s.x, b, s.y, a, s.how, way_.algorithm, scratch, way_.workspace,
                                &zero, s.w, to);
  }

  const Dnn& dnn_;
  const Handle handle_;
  const std::unique_ptr<const Described> shape_;
  const Pass pass_;
  const Way way_;
  const Memory memory_;
};

// Padding is equal on both sides, and no window is left out.
bool is_symmetric(const ops::Convolution& conv) {
  return (conv.height + 2 * conv.padding - conv.rows) / conv.stride + 1 == conv.high &&
         (conv.width + 2 * conv.padding_w - conv.columns) / conv.stride + 1 == conv.wide;
}

// A node's convolution with all its candidate algorithms.
class Choice {
 public:
  Choice(Functions& gpu, const Dnn& dnn, Handle handle, const ops::Convolution& conv, plan::DType dtype,
         Pass pass)
      : gpu_(gpu), dnn_(dnn), handle_(handle), conv_(conv), dtype_(dtype), pass_(pass) {
    const Transposed x{conv.batch, conv.channels, conv.height * conv.width},
        y{conv.batch, conv.outputs, conv.high * conv.wide},
        w{conv.outputs, conv.inputs, conv.rows * conv.columns};
    memory_.transposed = pass == Pass::forward          ? std::array{x, w, y}
                         : pass == Pass::input_gradient ? std::array{y, w, x}
                                                        : std::array{y, x, w};
  }

  // Collects the deterministic candidates, cuDNN's favourite first. Planes are transposed only for
  // 16-bit types aligned to pairs.
  Status find_ways(const std::array<DevicePointer, 3>& at) {
    add_ways(kPlanes);
    const bool pairs = plan::size_in_bytes(dtype_) == 2 &&
                       std::ranges::all_of(at, [](DevicePointer one) { return one % 4 == 0; });
    const bool transposes = std::ranges::any_of(
        memory_.transposed, [](const Transposed& transposed) { return !transposed.is_same(); });
    if (!pairs || !transposes) return {};
    WEFT_TRY(function, gpu_.function(kernel_source("transpose_planes"), "weft_transpose"));
    memory_.transpose = function;
    add_ways(kChannelsLast);
    return {};
  }
  bool empty() const { return ways_.empty(); }

  // The stored choice if there is one, else the fastest as measured.
  Way choose() {
    Gpu* const gpu = gpu_.trial_gpu();
    if (ways_.size() == 1 || gpu == nullptr) return ways_.front();
    static std::mutex mutex;
    static std::map<std::string, Way> chosen;  // in this process
    const std::string key = print_key(*gpu);
    const std::lock_guard lock(mutex);
    if (const auto found = chosen.find(key); found != chosen.end()) return found->second;
    if (const auto kept = stored_choice(key))
      for (const Way& way : ways_)
        if (static_cast<std::uint64_t>(way.layout) == (*kept)[0] &&
            static_cast<std::uint64_t>(way.algorithm) == (*kept)[1])
          return chosen.emplace(key, way).first->second;
    const std::optional<std::size_t> measured = fastest(*gpu);
    if (!measured) return ways_.front();
    const Way& best = ways_[*measured];
    keep_choice(key, {static_cast<std::uint64_t>(best.layout), static_cast<std::uint64_t>(best.algorithm)});
    return chosen.emplace(key, best).first->second;
  }

  std::unique_ptr<LibraryConvolution> make(const Way& way, const std::array<DevicePointer, 3>& at) const {
    auto shape = std::make_unique<const Described>(dnn_, conv_, dtype_, gpu_.exact(), way.layout);
    if (sets_math()) (void)dnn_.set_math(shape->how, way.math);
    LibraryConvolution::Memory memory = memory_;
    memory.at = at;
    return std::make_unique<LibraryConvolution>(dnn_, handle_, std::move(shape), pass_, way, memory);
  }

 private:
  bool sets_math() const { return dtype_ != plan::DType::f32 || !gpu_.exact(); }

  void add_ways(int layout) {
    constexpr std::size_t kMostWays = 2;  // per layout
    const Described shape(dnn_, conv_, dtype_, gpu_.exact(), layout);
    if (!shape.ok()) return;
    std::array<Ranked, 8> ranked = {};
    int given = 0;
    const auto which = static_cast<std::size_t>(pass_);
    const Handle a = pass_ == Pass::input_gradient ? shape.w : shape.x;
    const Handle b = pass_ == Pass::forward ? shape.w : shape.y;
    const Handle c = pass_ == Pass::forward ? shape.y : pass_ == Pass::input_gradient ? shape.x : shape.w;
    if (dnn_.rank[which](handle_, a, b, shape.how, c, static_cast<int>(ranked.size()), &given,
                         ranked.data()) != 0)
      return;
    const std::size_t before = ways_.size();
    for (int i = 0; i < given && ways_.size() - before < kMostWays; ++i) {
      const Ranked& one = ranked[static_cast<std::size_t>(i)];
      if (one.status != 0 || one.same_bits != 1) continue;
      if (sets_math()) (void)dnn_.set_math(shape.how, one.math);
      std::size_t bytes = 0;
      if (dnn_.workspace[which](handle_, a, b, shape.how, c, one.algorithm, &bytes) != 0 ||
          bytes > kMostWorkspace)
        continue;
      ways_.push_back({layout, one.algorithm, one.math, bytes});
    }
  }

  std::string print_key(const Gpu& gpu) const {
    constexpr std::array<std::string_view, 3> kPasses = {"forward", "input gradient", "filter gradient"};
    return fmt::format(
        "convolution {} of {}: {}x{}x{}x{} by {}x{}x{}x{}, stride {}, padding {} {}, groups {}, {} on {} by "
        "cuDNN {}",
        kPasses[static_cast<std::size_t>(pass_)], plan::name(dtype_), conv_.batch, conv_.channels,
        conv_.height, conv_.width, conv_.outputs, conv_.inputs, conv_.rows, conv_.columns, conv_.stride,
        conv_.padding, conv_.padding_w, conv_.groups, gpu.exact() ? "exact" : "not exact", gpu.model(),
        dnn_.version());
  }

  // Nothing if there is not enough memory for a trial.
  std::optional<std::size_t> fastest(Gpu& gpu) const {
    std::array<DevicePointer, 3> offsets = {};
    std::int64_t bytes = 0, scratch = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] = static_cast<DevicePointer>(bytes);
      const Transposed& one = memory_.transposed[i];
      bytes += (one.outer * one.channels * one.points * plan::size_in_bytes(dtype_) + 255) / 256 * 256;
    }
    for (const Way& way : ways_) scratch = std::max(scratch, make(way, offsets)->scratch_bytes());
    auto trial = Trial::start(gpu, bytes + scratch);
    if (!trial) return {};
    trial->record_launches();
    std::vector<std::unique_ptr<LibraryConvolution>> kernels;
    std::vector<Trial::Launch> launches;
    for (const Way& way : ways_) {
      std::array<DevicePointer, 3> at = offsets;
      for (DevicePointer& one : at) one += trial->memory();
      kernels.push_back(make(way, at));
      launches.push_back(
          [kernel = kernels.back().get()](const LaunchContext& place) { return kernel->launch(place, {}); });
    }
    return trial->fastest(launches, trial->place(trial->memory() + static_cast<DevicePointer>(bytes)));
  }

  Functions& gpu_;
  const Dnn& dnn_;
  const Handle handle_;
  const ops::Convolution conv_;
  const plan::DType dtype_;
  const Pass pass_;
  LibraryConvolution::Memory memory_;
  std::vector<Way> ways_;
};

}  // namespace

Made make_library_convolution(const Call& call) {
  const plan::NodeView& node = call.node;
  const Pass pass = &node.op() == &ops::conv2d()                  ? Pass::forward
                    : &node.op() == &ops::conv2d_input_gradient() ? Pass::input_gradient
                                                                  : Pass::filter_gradient;
  const plan::Type x = pass == Pass::forward          ? node.input_type(0)
                       : pass == Pass::input_gradient ? node.result_type(0)
                                                      : node.input_type(1);
  WEFT_TRY(conv, ops::convolution(node, x,
                                  pass == Pass::filter_gradient ? node.result_type(0) : node.input_type(1)));
  const plan::DType dtype = call.what.results[0].dtype;
  for (const program::Place& place : call.what.operands)
    if (place.dtype != dtype) return {nullptr};
  if (!is_symmetric(conv) || conv.batch * conv.high * conv.wide == 0) return {nullptr};
  const Handle handle = call.gpu.convolutions();
  if (handle == nullptr) return {nullptr};
  WEFT_TRY(library, cuda::dnn());
  Choice choice(call.gpu, *library, handle, conv, dtype, pass);
  const std::array<DevicePointer, 3> at = {call.in[0], call.in[1], call.out[0]};
  WEFT_TRY_STATUS(choice.find_ways(at));
  if (choice.empty()) return {nullptr};
  return std::unique_ptr<Kernel>(choice.make(choice.choose(), at));
}

}  // namespace weft::device::cuda
