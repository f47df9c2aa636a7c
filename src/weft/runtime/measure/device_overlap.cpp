#include "weft/runtime/measure/device_overlap.h"

#include <atomic>
#include <thread>

#include "weft/communication/comm/gpu/gpu_direct.h"
#include "weft/device/cuda/gpu.h"

namespace weft::measure {
namespace {

constexpr std::int64_t kMovedBytes = std::int64_t{64} << 20;

// Repeats an operation until told to stop, and computes its rate.
class Repeating {
 public:
  Repeating(const Doing& what, const std::atomic<bool>& stop)
      : thread_([this, &what, &stop] {
          using Seconds = std::chrono::duration<double>;
          status_ = what.once();  // the first run also initializes
          const auto begin = std::chrono::steady_clock::now();
          std::int64_t times = 0;
          while (status_.ok() && (times == 0 || !stop.load())) {
            status_ = what.once();
            ++times;
          }
          a_second_ = static_cast<double>(times) / Seconds(std::chrono::steady_clock::now() - begin).count();
        }) {}

  Result<double> a_second() {
    thread_.join();
    if (!status_.ok()) return status_.error();
    return a_second_;
  }

 private:
  Status status_;
  double a_second_ = 0;
  std::jthread thread_;  // declared last: it uses the members above
};

Result<double> alone(const Doing& what, std::chrono::milliseconds each) {
  std::atomic<bool> stop = false;
  Repeating one(what, stop);
  std::this_thread::sleep_for(each);
  stop = true;
  return one.a_second();
}

struct Copying {
  std::unique_ptr<device::Memory> memory;
  std::unique_ptr<device::HostMemory> host;
  std::unique_ptr<device::Stream> stream;
};

Result<Doing> copying(device::Device& device, bool in) {
  auto with = std::make_shared<Copying>();
  WEFT_TRY(memory, device.allocate(kMovedBytes));
  WEFT_TRY(host, device.allocate_host(kMovedBytes));
  WEFT_TRY(stream, device.make_stream({.computes = false}));
  *with = {std::move(memory), std::move(host), std::move(stream)};
  return Doing{in ? "copies from the host" : "copies to the host", [with, in] {
                 if (in)
                   with->stream->copy_in(with->memory->address(), with->host->bytes());
                 else
                   with->stream->copy_out(with->host->bytes(), with->memory->address());
                 return with->stream->synchronize();
               }};
}

struct Reducing {
  std::vector<std::unique_ptr<device::Memory>> memory;  // per rank
  std::unique_ptr<comm::gpu::GpuDirect> direct;
  std::unique_ptr<device::Stream> stream;
};

Result<Doing> reducing(const std::shared_ptr<device::cuda::Gpu>& gpu) {
  auto with = std::make_shared<Reducing>();
  std::vector<comm::Call> calls(2);
  for (comm::Call& call : calls) {
    WEFT_TRY(memory, gpu->allocate(kMovedBytes));
    call.input = call.output = memory->address().raw();
    call.count = kMovedBytes / 4;
    with->memory.push_back(std::move(memory));
  }
  WEFT_TRY(direct, comm::gpu::GpuDirect::bind(gpu, calls));
  with->direct = std::move(direct);
  WEFT_TRY(stream, gpu->make_stream({.high_priority = true, .computes = false}));
  with->stream = std::move(stream);
  return Doing{"an all-reduce of 2 ranks", [with] {
                 with->direct->start(*with->stream);
                 return with->stream->synchronize();
               }};
}

}  // namespace

Result<std::vector<Beside>> measure_overlap(const std::vector<Doing>& computing,
                                            const std::vector<Doing>& moving,
                                            std::chrono::milliseconds each) {
  std::vector<double> moves_alone;
  for (const Doing& move : moving) {
    WEFT_TRY(pace, alone(move, each));
    moves_alone.push_back(pace);
  }
  std::vector<Beside> found;
  for (const Doing& compute : computing) {
    WEFT_TRY(computes_alone, alone(compute, each));
    for (std::size_t m = 0; m < moving.size(); ++m) {
      std::atomic<bool> stop = false;
      Repeating one(compute, stop), other(moving[m], stop);
      std::this_thread::sleep_for(each);
      stop = true;
      Result<double> computes = one.a_second(), moves = other.a_second();
      if (!computes.ok()) return computes.error();
      if (!moves.ok()) return moves.error();
      found.push_back({compute.name, moving[m].name, *computes / computes_alone, *moves / moves_alone[m]});
    }
  }
  return found;
}

Result<std::vector<Doing>> movements(const std::shared_ptr<device::Device>& device) {
  std::vector<Doing> all;
  for (const bool in : {true, false}) {
    WEFT_TRY(copy, copying(*device, in));
    all.push_back(std::move(copy));
  }
  if (const auto gpu = std::dynamic_pointer_cast<device::cuda::Gpu>(device)) {
    WEFT_TRY(reduce, reducing(gpu));
    all.push_back(std::move(reduce));
  }
  return all;
}

}  // namespace weft::measure
