#include "weft/device/cuda/convolution.h"

#include <array>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "weft/ops/convolution.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

// cuDNN's numbers.
constexpr int kRowsOfColumns = 0;  // NCHW
constexpr int kCorrelation = 1;    // windows are not turned round
constexpr int kSumsInF32 = 0;
constexpr int kTensorCores = 1, kPlainF32 = 3, kAnyF32 = 0;  // kAnyF32 may round factors to TF32
constexpr std::size_t kMostWorkspace = std::size_t{1} << 30;

int type_number(plan::DType dtype) {
  return dtype == plan::DType::bf16 ? 9 : dtype == plan::DType::f16 ? 2 : 0;
}

enum class Pass { forward, input_gradient, filter_gradient };

// An answer of Dnn::rank, best first.
struct Ranked {
  int algorithm, status;
  float milliseconds;
  std::size_t workspace;
  int same_bits, math, reserved[3];
};
static_assert(sizeof(Ranked) == 48);

class Described {
 public:
  Described(const Dnn& dnn, const ops::Convolution& conv, plan::DType dtype, bool exact) : dnn_(dnn) {
    const int type = type_number(dtype);
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const int stride = whole(conv.stride);
    ok_ = dnn.create_tensor(&x) == 0 && dnn.create_tensor(&y) == 0 && dnn.create_filter(&w) == 0 &&
          dnn.create_convolution(&how) == 0 &&
          dnn.set_tensor(x, kRowsOfColumns, type, whole(conv.batch), whole(conv.channels), whole(conv.height),
                         whole(conv.width)) == 0 &&
          dnn.set_tensor(y, kRowsOfColumns, type, whole(conv.batch), whole(conv.outputs), whole(conv.high),
                         whole(conv.wide)) == 0 &&
          dnn.set_filter(w, type, kRowsOfColumns, whole(conv.outputs), whole(conv.inputs), whole(conv.rows),
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

class LibraryConvolution final : public Kernel {
 public:
  LibraryConvolution(const Dnn& dnn, Handle handle, std::unique_ptr<const Described> shape, Pass pass,
                     int algorithm, std::size_t workspace, std::array<DevicePointer, 3> at)
      : dnn_(dnn),
        handle_(handle),
        shape_(std::move(shape)),
        pass_(pass),
        algorithm_(algorithm),
        workspace_(workspace),
        at_(at) {}

  std::int64_t scratch_bytes() const override { return static_cast<std::int64_t>(workspace_); }

  Code launch(const LaunchPlace& at, const program::Task&) const override {
    static std::mutex mutex;  // the stream is the handle's
    const std::lock_guard lock(mutex);
    if (const Code code = dnn_.set_stream(handle_, at.stream); code != 0) return code;
    const float one = 1, zero = 0;
    const auto place = [](DevicePointer pointer) { return reinterpret_cast<void*>(pointer); };
    void *const a = place(at_[0]), *const b = place(at_[1]), *const to = place(at_[2]);
    void* const scratch = place(at.scratch);
    const Described& s = *shape_;
    if (pass_ == Pass::forward)
      return dnn_.forward(handle_, &one, s.x, a, s.w, b, s.how, algorithm_, scratch, workspace_, &zero, s.y,
                          to);
    // conv2d's gradients read the gradient of y first.
    if (pass_ == Pass::input_gradient)
      return dnn_.input_gradient(handle_, &one, s.w, b, s.y, a, s.how, algorithm_, scratch, workspace_, &zero,
                                 s.x, to);
    return dnn_.filter_gradient(handle_, &one, s.x, b, s.y, a, s.how, algorithm_, scratch, workspace_, &zero,
                                s.w, to);
  }

 private:
  const Dnn& dnn_;
  const Handle handle_;
  const std::unique_ptr<const Described> shape_;
  const Pass pass_;
  const int algorithm_;
  const std::size_t workspace_;
  const std::array<DevicePointer, 3> at_;
};

// Padding is the same before and after, and no window is left out.
bool is_symmetric(const ops::Convolution& conv) {
  return (conv.height + 2 * conv.padding - conv.rows) / conv.stride + 1 == conv.high &&
         (conv.width + 2 * conv.padding_w - conv.columns) / conv.stride + 1 == conv.wide;
}

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
  const Dnn& dnn = *library;
  auto shape = std::make_unique<const Described>(dnn, conv, dtype, call.gpu.exact());
  if (!shape->ok()) return {nullptr};
  std::array<Ranked, 8> ranked = {};
  int given = 0;
  const auto which = static_cast<std::size_t>(pass);
  const Handle a = pass == Pass::input_gradient ? shape->w : shape->x;
  const Handle b = pass == Pass::forward ? shape->w : shape->y;
  const Handle c = pass == Pass::forward ? shape->y : pass == Pass::input_gradient ? shape->x : shape->w;
  if (dnn.rank[which](handle, a, b, shape->how, c, static_cast<int>(ranked.size()), &given, ranked.data()) !=
      0)
    return {nullptr};
  // The best of those that give the same bits every time.
  for (int i = 0; i < given; ++i) {
    const Ranked& one = ranked[static_cast<std::size_t>(i)];
    if (one.status != 0 || one.same_bits != 1) continue;
    if (dtype != plan::DType::f32 || !call.gpu.exact()) (void)dnn.set_math(shape->how, one.math);
    std::size_t bytes = 0;
    if (dnn.workspace[which](handle, a, b, shape->how, c, one.algorithm, &bytes) != 0 ||
        bytes > kMostWorkspace)
      continue;
    return std::unique_ptr<Kernel>(
        std::make_unique<LibraryConvolution>(dnn, handle, std::move(shape), pass, one.algorithm, bytes,
                                             std::array{call.in[0], call.in[1], call.out[0]}));
  }
  return {nullptr};
}

}  // namespace weft::device::cuda
