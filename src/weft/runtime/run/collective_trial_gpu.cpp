#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/gpu/gpu_direct.h"
#include "weft/communication/comm/gpu/gpu_program.h"
#include "weft/device/cuda/gpu.h"
#include "weft/runtime/run/collective_trial.h"
#include "weft/runtime/run/trial_buffers.h"

namespace weft::run {
namespace {

// All ranks' buffers on the host and on the device.
class DeviceBuffers {
 public:
  static Result<std::unique_ptr<DeviceBuffers>> make(const CollectiveTrial& trial, device::Device& gpu) {
    auto all = std::make_unique<DeviceBuffers>();
    for (std::int32_t rank = 0; rank < trial.program->collective.ranks; ++rank) {
      all->here.push_back(std::make_unique<TrialBuffers>(trial, rank));
      TrialBuffers& mine = *all->here.back();
      WEFT_TRY_STATUS(comm::check(mine.call(), trial.program->collective.ranks, rank));
      WEFT_TRY(memory, gpu.allocate(static_cast<std::int64_t>(mine.memory().size())));
      const auto moved = [&](const void* at) {
        return memory->address().raw() + (static_cast<const std::byte*>(at) - mine.memory().data());
      };
      comm::Call call = mine.call();
      if (call.input != nullptr) call.input = moved(call.input);
      if (call.output != nullptr) call.output = moved(call.output);
      all->calls.push_back(call);
      all->there.push_back(std::move(memory));
    }
    return all;
  }

  void fill(Values values, device::Stream& stream) {
    for (std::size_t rank = 0; rank < here.size(); ++rank) {
      here[rank]->fill(values);
      stream.copy_in(there[rank]->address(), here[rank]->memory());
    }
  }
  Status fetch(device::Stream& stream) {
    for (std::size_t rank = 0; rank < here.size(); ++rank)
      stream.copy_out(here[rank]->memory(), there[rank]->address());
    return stream.synchronize();
  }

  std::vector<std::unique_ptr<TrialBuffers>> here;
  std::vector<std::unique_ptr<device::Memory>> there;
  std::vector<comm::Call> calls;
};

}  // namespace

Result<std::vector<TrialOutcome>> run_trial_on_gpu(const CollectiveTrial& trial, bool directly) {
  WEFT_TRY(gpu, device::cuda::Gpu::open(0, /*exact=*/false));
  WEFT_TRY(buffers, DeviceBuffers::make(trial, *gpu));
  WEFT_TRY(stream, gpu->make_stream({.computes = false}));
  std::unique_ptr<comm::gpu::GpuProgram> program;
  std::unique_ptr<comm::gpu::GpuDirect> direct;
  if (directly) {
    WEFT_TRY(bound, comm::gpu::GpuDirect::bind(gpu, buffers->calls));
    direct = std::move(bound);
  } else {
    WEFT_TRY(bound, comm::gpu::GpuProgram::bind(gpu, trial.program, buffers->calls, {.slots = trial.slots}));
    program = std::move(bound);
  }
  const auto start = [&] { directly ? direct->start(*stream) : program->start(*stream); };
  const auto finish = [&] { return directly ? stream->synchronize() : program->finish(*stream); };

  std::vector<TrialOutcome> outcomes(buffers->here.size());
  if (trial.verify) {
    std::vector<std::uint64_t> inputs;
    buffers->fill(Values::exact, *stream);
    for (const auto& mine : buffers->here) inputs.push_back(checksum_of(mine->input()));
    start();
    WEFT_TRY_STATUS(finish());
    WEFT_TRY_STATUS(buffers->fetch(*stream));
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      TrialBuffers& mine = *buffers->here[rank];
      WEFT_TRY(expected, expected_output(mine.what(), mine.rank()));
      compare(mine, expected, outcomes[rank]);
      if (!trial.in_place && checksum_of(mine.input()) != inputs[rank] && outcomes[rank].wrong++ == 0)
        outcomes[rank].first_wrong = fmt::format("the input of rank {} was changed", rank);
    }
  }
  for (const bool again : {false, true}) {
    if (again) {
      // Runs back to back, as in a step. In-place results of these runs are not checked.
      std::vector<std::unique_ptr<device::Event>> marks;
      for (std::int32_t turn = 0; turn <= trial.repeat; ++turn) {
        WEFT_TRY(mark, gpu->make_event());
        marks.push_back(std::move(mark));
      }
      start();
      stream->record(*marks.front());
      for (std::int32_t turn = 1; turn <= trial.repeat; ++turn) {
        start();
        stream->record(*marks[static_cast<std::size_t>(turn)]);
      }
      WEFT_TRY_STATUS(finish());
      for (std::size_t turn = 1; turn < marks.size(); ++turn)
        for (TrialOutcome& outcome : outcomes) {
          outcome.begins.push_back(0);
          outcome.ends.push_back(std::llround(marks[turn]->seconds_since(*marks[turn - 1]) * 1e9));
        }
    }
    buffers->fill(Values::rough, *stream);
    start();
    WEFT_TRY_STATUS(finish());
    WEFT_TRY_STATUS(buffers->fetch(*stream));
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      const std::uint64_t sum = checksum_of(buffers->here[rank]->output());
      if (again && sum != outcomes[rank].checksum && outcomes[rank].wrong++ == 0)
        outcomes[rank].first_wrong = fmt::format("two runs gave different bits on rank {}", rank);
      outcomes[rank].checksum = sum;
    }
  }
  return outcomes;
}

}  // namespace weft::run
