#include "weft/communication/comm/gpu/gpu_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/chunk/chunk_cursor.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/communication/comm/chunk/chunk_shape.h"
#include "weft/communication/comm/gpu/chunk_source.h"
#include "weft/communication/comm/gpu/gpu_launch.h"
#include "weft/device/cuda/launch.h"

namespace weft::comm::gpu {
namespace {

using collective::Threadblock;
using device::Address;
using device::cuda::Code;
using device::cuda::Gpu;
using device::cuda::Handle;
using device::cuda::LaunchContext;

constexpr std::int64_t kAllSlots = 32 << 20;  // fits the L2 cache
constexpr std::int64_t kLeastSlot = 16 << 10;
constexpr std::int64_t kLongestWait = 10'000'000'000;  // ns

bool any_of(const Threadblock& block, bool (*does)(collective::Op)) {
  return std::ranges::any_of(block.steps, [&](const collective::Step& step) { return does(step.op); });
}

// Threads per block, and blocks per SM: all blocks must be resident at once.
struct BlockShape {
  int threads = 0, resident = 0;
};
Result<BlockShape> block_shape(std::int64_t blocks, unsigned processors, const std::string& name) {
  for (const BlockShape shape :
       {BlockShape{512, 2}, BlockShape{256, 4}, BlockShape{128, 8}, BlockShape{64, 16}})
    if (blocks <= std::int64_t{processors} * shape.resident) return shape;
  return user_error(fmt::format("{} has {} threadblocks: at most {} run at once on this GPU", name, blocks,
                                std::int64_t{processors} * 16),
                    "use an algorithm with fewer channels or instances");
}

}  // namespace

struct GpuProgram::State {
  std::shared_ptr<Gpu> gpu;
  std::shared_ptr<const collective::Program> program;
  std::vector<Call> calls;
  std::vector<std::unique_ptr<ChunkMemory>> memories;        // by rank
  std::vector<std::pair<std::int32_t, std::int32_t>> names;  // per block: its rank, and its number there

  std::unique_ptr<device::Memory> tables, counters, slots;
  std::int64_t counter_bytes = 0;
  std::vector<std::byte> seen;  // copy of the last counter
  std::vector<Copy> before, after;
  std::vector<std::unique_ptr<GpuLaunch>> launches;
};

GpuProgram::GpuProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuProgram::~GpuProgram() = default;

namespace {

// Tables that are copied to the device together.
class Tables {
 public:
  template <class Row>
  std::int64_t add(const std::vector<Row>& rows) {
    const auto begin = static_cast<std::int64_t>(bytes_.size());
    bytes_.resize(bytes_.size() + (rows.size() * sizeof(Row) + 15) / 16 * 16);
    if (!rows.empty()) std::memcpy(bytes_.data() + begin, rows.data(), rows.size() * sizeof(Row));
    return begin;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// The steps of all ranks in the kernel's layout.
struct Walk {
  std::vector<ChunkBlock> blocks;
  std::vector<ChunkStep> steps;
  std::vector<ChunkPlaces> places;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> connections;

  std::int32_t connection(std::int32_t from, std::int32_t to, std::int32_t channel) {
    return connections.try_emplace({from, to, channel}, static_cast<std::int32_t>(connections.size()))
        .first->second;
  }

  void add(const collective::Program& program, std::int32_t rank, const ChunkMemory& memory,
           const ChunkShape& shape) {
    const auto first_block = static_cast<std::int32_t>(blocks.size());
    const std::vector<Threadblock>& mine = program.ranks[static_cast<std::size_t>(rank)].blocks;
    std::int64_t number = 0;  // index among the chunks that this rank's steps move
    const auto address = [](const std::byte* at) {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at));
    };
    for (const Threadblock& block : mine) {
      blocks.push_back(
          {.first_step = static_cast<std::int32_t>(steps.size()),
           .steps = static_cast<std::int32_t>(block.steps.size()),
           .in =
               any_of(block, collective::receives) ? connection(block.receive_from, rank, block.channel) : -1,
           .out = any_of(block, collective::sends) ? connection(rank, block.send_to, block.channel) : -1});
      for (const collective::Step& step : block.steps) {
        ChunkStep row{.op = static_cast<std::int32_t>(step.op),
                      .count = step.op == collective::Op::nop ? 1 : step.count,
                      .publishes = step.publishes ? 1 : 0,
                      .first = static_cast<std::int64_t>(places.size())};
        if (step.wait_block >= 0) {
          row.wait_block = first_block + step.wait_block;
          row.wait_step = step.wait_step;
          row.wait_steps =
              static_cast<std::int32_t>(mine[static_cast<std::size_t>(step.wait_block)].steps.size());
        }
        for (std::int32_t chunk = 0; chunk < row.count; ++chunk, ++number) {
          ChunkPlaces place;
          if (step.op == collective::Op::nop) continue;
          place.elements =
              shape.form == ChunkShape::Form::classed
                  ? shape.sizes[static_cast<std::size_t>((*shape.steps)[static_cast<std::size_t>(number)])]
                  : shape.longest;
          const std::int64_t from = std::int64_t{step.source.index} + chunk,
                             to = std::int64_t{step.target.index} + chunk;
          if (collective::reads_source(step.op))
            place.source = address(memory.source(step.source.buffer, number).at(from));
          if (collective::writes_target(step.op))
            place.target = address(memory.area(step.target.buffer).at(to));
          if (collective::reads_target(step.op))
            place.addend = address(memory.addend(step.target.buffer, number).at(to));
          places.push_back(place);
        }
        steps.push_back(row);
      }
    }
  }
};

}  // namespace

Result<std::unique_ptr<GpuProgram>> GpuProgram::bind(std::shared_ptr<Gpu> gpu,
                                                     std::shared_ptr<const collective::Program> program,
                                                     std::span<const Call> calls, const GpuSlots& slots) {
  auto state = std::make_unique<State>();
  state->gpu = gpu;
  state->program = program;
  state->calls.assign(calls.begin(), calls.end());
  const AllocateBytes allocate = [&gpu](std::int64_t bytes) -> std::shared_ptr<std::byte> {
    auto memory = gpu->allocate(bytes);
    if (!memory.ok()) return nullptr;
    std::shared_ptr<device::Memory> kept = std::move(*memory);
    return {kept, kept->address().raw()};
  };
  Walk walk;
  std::int64_t longest = 0;
  for (std::int32_t rank = 0; rank < program->collective.ranks; ++rank) {
    const Call& call = state->calls[static_cast<std::size_t>(rank)];
    ChunkShaper shaper(*program, rank);
    WEFT_TRY(shape, shaper.shape(call));
    longest = std::max(longest, shape.longest);
    auto memory = std::make_unique<ChunkMemory>(*program, rank, allocate);
    WEFT_TRY_STATUS(memory->bind(call, shape));
    walk.add(*program, rank, *memory, shape);
    for (std::size_t block = 0; block < program->ranks[static_cast<std::size_t>(rank)].blocks.size(); ++block)
      state->names.emplace_back(rank, static_cast<std::int32_t>(block));
    state->before.insert(state->before.end(), memory->before().begin(), memory->before().end());
    // These copies are independent of all steps, so they may come first.
    state->before.insert(state->before.end(), memory->beside().begin(), memory->beside().end());
    state->after.insert(state->after.end(), memory->after().begin(), memory->after().end());
    state->memories.push_back(std::move(memory));
  }
  const Call& any = state->calls.front();
  const auto element = static_cast<std::int64_t>(device::size_of(any.type));
  const auto connections = static_cast<std::int64_t>(walk.connections.size());
  const auto blocks = static_cast<std::int64_t>(walk.blocks.size());
  const std::int32_t slot_count = std::max(slots.slots, 2);
  const std::int64_t room =
      std::min(slots.slot_bytes,
               std::max(kLeastSlot, kAllSlots / std::max<std::int64_t>(connections * slot_count, 1)));
  // As many slices as needed for a slice to fit a slot.
  const std::int64_t fits = std::max<std::int64_t>(room / element, 1);
  const std::int64_t slices = std::max<std::int64_t>((longest + fits - 1) / fits, 1);
  const std::int64_t slot_bytes = ((longest + slices - 1) / slices * element + 15) / 16 * 16;

  Tables tables;
  const std::int64_t block_rows = tables.add(walk.blocks), step_rows = tables.add(walk.steps),
                     place_rows = tables.add(walk.places);
  WEFT_TRY(table_memory, gpu->allocate(static_cast<std::int64_t>(tables.bytes().size())));
  state->tables = std::move(table_memory);
  state->counter_bytes = gpu::counters(connections, blocks) * kCounterBytes;
  WEFT_TRY(counter_memory, gpu->allocate(state->counter_bytes));
  state->counters = std::move(counter_memory);
  WEFT_TRY(slot_memory, gpu->allocate(connections * slot_count * slot_bytes));
  state->slots = std::move(slot_memory);
  {
    WEFT_TRY(stream, gpu->make_stream({.computes = false}));
    stream->copy_in(state->tables->address(), tables.bytes());
    WEFT_TRY_STATUS(stream->synchronize());
  }

  if (blocks > 0) {
    WEFT_TRY(shape, block_shape(blocks, gpu->processors(), program->name));
    const std::string text = chunk_source(any.type, any.op, shape.threads, shape.resident);
    WEFT_TRY(function, gpu->function(text, "weft_chunks"));
    const auto at = [](const device::Memory& memory, std::int64_t from) {
      return device::cuda::pointer(memory.address() + from);
    };
    state->launches.push_back(
        std::make_unique<GpuLaunch>(program->name, [=, state = state.get()](const LaunchContext& place) {
          const auto counters = at(*state->counters, 0);
          if (const Code code = place.gpu.driver().fill(
                  counters, 0, static_cast<std::size_t>(state->counter_bytes), place.stream);
              code != 0)
            return code;
          device::cuda::Parameters parameters;
          parameters.pointer(at(*state->tables, block_rows))
              .pointer(at(*state->tables, step_rows))
              .pointer(at(*state->tables, place_rows));
          parameters.pointer(counters).pointer(at(*state->slots, 0)).whole(connections).whole(slices);
          parameters.whole(slot_count).whole(slot_bytes).whole(kLongestWait);
          return parameters.launch_cooperative(place, function, static_cast<unsigned>(blocks),
                                               static_cast<unsigned>(shape.threads));
        }));
    if (any.op == ReduceOp::avg && collective::reduces(any.kind)) {
      WEFT_TRY(divide, gpu->function(text, "weft_divide"));
      const std::int32_t ranks = program->collective.ranks;
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const Call& call = state->calls[static_cast<std::size_t>(rank)];
        const std::int64_t elements = output_bytes(call, ranks, rank) / element;
        if (elements == 0) continue;
        state->launches.push_back(
            std::make_unique<GpuLaunch>(program->name, [=, output = call.output](const LaunchContext& place) {
              device::cuda::Parameters parameters;
              parameters.pointer(device::cuda::pointer(Address(static_cast<std::byte*>(output))))
                  .whole(elements)
                  .whole(ranks);
              return parameters.launch(place, divide, {device::cuda::blocks_for(elements, 256), 1}, {256, 1});
            }));
      }
    }
  }
  state->seen.resize(sizeof(std::uint64_t));
  return std::unique_ptr<GpuProgram>(new GpuProgram(std::move(state)));
}

void GpuProgram::start(device::Stream& stream) {
  const auto copy = [&](const std::vector<Copy>& copies) {
    for (const Copy& one : copies)
      if (one.to != one.from)
        stream.copy(Address(one.to), Address(const_cast<std::byte*>(one.from)), one.bytes);
  };
  copy(state_->before);
  for (std::size_t i = 0; i < state_->launches.size(); ++i) {
    stream.launch(*state_->launches[i], {});
    if (i == 0) copy(state_->after);
  }
}

Status GpuProgram::finish(device::Stream& stream) {
  if (state_->launches.empty()) return stream.synchronize();
  stream.copy_out(state_->seen, state_->counters->address() + (state_->counter_bytes - kCounterBytes));
  WEFT_TRY_STATUS(stream.synchronize());
  std::uint64_t block = 0;
  std::memcpy(&block, state_->seen.data(), sizeof block);
  if (block == 0) return {};
  const auto& [rank, number] = state_->names[static_cast<std::size_t>(block - 1)];
  return environment_error(fmt::format("{} on {}: block {} of rank {} waited for {} s", state_->program->name,
                                       state_->gpu->name(), number, rank, kLongestWait / 1'000'000'000),
                           "other work on the GPU leaves no room for its blocks");
}

}  // namespace weft::comm::gpu
