#include "weft/device/cuda/stream.h"

#include <utility>

#include <fmt/format.h>

#include "weft/device/cuda/kernel_source.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/recording.h"

namespace weft::device::cuda {
namespace {

// SMs that a stream leaves free: 3 % of an H200.
constexpr unsigned kRoom = 4;

class GpuEvent final : public Event {
 public:
  GpuEvent(std::shared_ptr<Gpu> gpu, Handle event) : gpu_(std::move(gpu)), event_(event) {}
  ~GpuEvent() override {
    if (gpu_->enter_to_release()) gpu_->driver().destroy_event(event_);
  }
  bool is_done() const override {
    constexpr Code kNotReady = 600;
    gpu_->enter();
    return gpu_->driver().event_query(event_) != kNotReady;
  }
  Status wait() override {
    gpu_->enter();
    return check(gpu_->driver().event_synchronize(event_), "finish its work");
  }
  double seconds_since(const Event& earlier) const override {
    gpu_->enter();
    float milliseconds = 0;
    gpu_->driver().event_elapsed(&milliseconds, static_cast<const GpuEvent&>(earlier).event_, event_);
    return static_cast<double>(milliseconds) / 1e3;
  }
  Handle handle() const { return event_; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const Handle event_;
};

// A CUDA graph, ready to be launched.
class GpuRecording final : public Recording {
 public:
  GpuRecording(std::shared_ptr<Gpu> gpu, Handle executable) : gpu_(std::move(gpu)), executable_(executable) {}
  ~GpuRecording() override {
    if (gpu_->enter_to_release()) gpu_->driver().destroy_executable(executable_);
  }
  Handle handle() const { return executable_; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const Handle executable_;
};

class GpuStream final : public RecordingStream {
 public:
  GpuStream(std::shared_ptr<Gpu> gpu, const Blas& blas) : gpu_(std::move(gpu)), blas_(blas) {}
  ~GpuStream() override {
    if (!gpu_->enter_to_release()) return;
    if (stream_ != nullptr) gpu_->driver().synchronize(stream_);
    if (handle_ != nullptr) blas_.destroy(handle_);
    if (stream_ != nullptr) gpu_->driver().destroy_stream(stream_);
  }

  Status open(const StreamOptions& options) {
    gpu_->enter();
    constexpr unsigned kNonBlocking = 1;
    int least = 0, greatest = 0;
    WEFT_TRY_STATUS(check(gpu_->driver().priorities(&least, &greatest), "report its stream priorities"));
    WEFT_TRY_STATUS(
        check(gpu_->driver().create_stream(&stream_, kNonBlocking, options.high_priority ? greatest : least),
              "make a stream"));
    if (!options.computes) return {};
    WEFT_TRY(memory, gpu_->allocate(options.scratch_bytes + kBlasWorkspace));
    scratch_ = std::move(memory);
    WEFT_TRY_STATUS(check(blas_code(blas_.create(&handle_)), "start cuBLAS"));
    WEFT_TRY_STATUS(check(blas_code(blas_.set_stream(handle_, stream_)), "start cuBLAS"));
    // cuBLAS's products occupy their SMs until they end; all other kernels have short blocks.
    leaves_sms_free_ = options.leaves_sms_free && gpu_->processors() > 8 * kRoom;
    if (leaves_sms_free_)
      WEFT_TRY_STATUS(
          check(blas_code(blas_.set_sm_count(handle_, static_cast<int>(gpu_->processors() - kRoom))),
                "limit the SMs of cuBLAS"));
    return check(blas_code(blas_.set_workspace(handle_, scratch_->address().raw(), kBlasWorkspace)),
                 "start cuBLAS");
  }

  bool on_caller() const override { return false; }

  void launch(const device::Kernel& kernel, const program::Task& task) override {
    const auto& mine = static_cast<const Kernel&>(kernel);
    if (!failure_.ok()) return;
    gpu_->enter();
    const DevicePointer scratch = scratch_ ? pointer(scratch_->address() + kBlasWorkspace) : 0;
    const LaunchContext at{*gpu_,
                           stream_,
                           handle_,
                           scratch,
                           scratch_ && !leaves_sms_free_ ? pointer(scratch_->address()) : 0,
                           leaves_sms_free_ ? kRoom : 0};
    if (const Code code = mine.launch(at, task); code != 0) note(code, "run " + mine.what);
  }
  void copy_in(Address to, std::span<const std::byte> from) override {
    gpu_->enter();
    if (failure_.ok() && !from.empty())
      note(gpu_->driver().copy_in(pointer(to), from.data(), from.size(), stream_), "take bytes");
  }
  void copy_out(std::span<std::byte> to, Address from) override {
    gpu_->enter();
    if (failure_.ok() && !to.empty())
      note(gpu_->driver().copy_out(to.data(), pointer(from), to.size(), stream_), "give bytes");
  }
  void copy(Address to, Address from, std::int64_t bytes) override {
    gpu_->enter();
    if (failure_.ok() && bytes > 0)
      note(gpu_->driver().copy(pointer(to), pointer(from), static_cast<std::size_t>(bytes), stream_),
           "copy bytes");
  }

  Handle raw() const { return stream_; }

  void start_recording() override {
    gpu_->enter();
    constexpr int kRelaxed = 2;  // does not restrict other streams and threads
    note(gpu_->driver().begin_capture(stream_, kRelaxed), "record a step");
  }
  Result<std::unique_ptr<Recording>> end_recording() override {
    gpu_->enter();
    Handle graph = nullptr, executable = nullptr;
    note(gpu_->driver().end_capture(stream_, &graph), "record a step");
    if (!failure_.ok()) return failure_.error();
    note(gpu_->driver().instantiate(&executable, graph, 0), "make a graph of a step");
    gpu_->driver().destroy_graph(graph);
    if (!failure_.ok()) return failure_.error();
    return std::unique_ptr<Recording>(std::make_unique<GpuRecording>(gpu_, executable));
  }
  void launch(const Recording& recording) override {
    if (!failure_.ok()) return;
    gpu_->enter();
    note(gpu_->driver().launch_graph(static_cast<const GpuRecording&>(recording).handle(), stream_),
         "run a step");
  }

  void record(Event& event) override {
    gpu_->enter();
    note(gpu_->driver().record(static_cast<GpuEvent&>(event).handle(), stream_), "record an event");
  }
  void mark(Event& event) override {
    gpu_->enter();
    constexpr unsigned kOfTheGraph = 1;
    note(gpu_->driver().record_with_flags(static_cast<GpuEvent&>(event).handle(), stream_, kOfTheGraph),
         "record an event");
  }
  void wait(const Event& event) override {
    gpu_->enter();
    note(gpu_->driver().stream_wait(stream_, static_cast<const GpuEvent&>(event).handle(), 0),
         "wait for an event");
  }

  void tell(std::uint64_t& word, std::uint64_t number) override {
    if (!failure_.ok()) return;
    gpu_->enter();
    if (teller_ == nullptr) {
      auto made = gpu_->function(kernel_source("signal"), "weft_signal");
      if (!made.ok()) {
        failure_ = std::move(made).error();
        return;
      }
      teller_ = *made;
    }
    const LaunchContext at{*gpu_, stream_, nullptr, 0};
    note(Parameters()
             .pointer(reinterpret_cast<DevicePointer>(&word))
             .whole(static_cast<std::int64_t>(number))
             .launch(at, teller_, {1, 1}, {1, 1}),
         "signal progress");
  }

  Status synchronize() override {
    if (!failure_.ok()) return failure_;
    gpu_->enter();
    note(gpu_->driver().synchronize(stream_), "finish its work");
    return failure_;
  }

 private:
  void note(Code code, std::string_view what) {
    if (code == 0 || !failure_.ok()) return;
    // An asynchronous kernel failure is returned by whatever call comes next.
    Status status = check(code, is_kernel_error(code) ? "finish its work" : what);
    failure_ =
        environment_error(fmt::format("{}: {}", gpu_->name(), status.error().message), status.error().hint);
  }

  const std::shared_ptr<Gpu> gpu_;
  const Blas& blas_;
  std::unique_ptr<Memory> scratch_;
  Handle stream_ = nullptr, handle_ = nullptr;
  Handle teller_ = nullptr;
  bool leaves_sms_free_ = false;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Stream>> make_stream(std::shared_ptr<Gpu> gpu, const StreamOptions& options) {
  WEFT_TRY(blas, cuda::blas());
  auto stream = std::make_unique<GpuStream>(std::move(gpu), *blas);
  WEFT_TRY_STATUS(stream->open(options));
  return std::unique_ptr<Stream>(std::move(stream));
}

Handle raw_stream(const Stream& stream) { return static_cast<const GpuStream&>(stream).raw(); }

Result<std::unique_ptr<Event>> make_event(std::shared_ptr<Gpu> gpu) {
  gpu->enter();
  Handle event = nullptr;
  WEFT_TRY_STATUS(check(gpu->driver().create_event(&event, 0), "make an event"));
  return std::unique_ptr<Event>(std::make_unique<GpuEvent>(std::move(gpu), event));
}

}  // namespace weft::device::cuda
