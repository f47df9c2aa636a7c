#include "weft/communication/comm/gpu/gpu_direct.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/gpu/combine_source.h"
#include "weft/communication/comm/gpu/gpu_launch.h"
#include "weft/device/cuda/launch.h"

namespace weft::comm::gpu {
namespace {

using device::Address;
using device::cuda::Code;
using device::cuda::Gpu;
using device::cuda::LaunchContext;

const std::byte* bytes_at(const void* memory, std::int64_t from) {
  return memory == nullptr ? nullptr : static_cast<const std::byte*>(memory) + from;
}
std::byte* bytes_at(void* memory, std::int64_t from) {
  return memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + from;
}

// Prefix sums of the block counts, in elements; the last is the total.
std::vector<std::int64_t> begins(const Call& call, std::int64_t ranks) {
  std::vector<std::int64_t> at = {0};
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    at.push_back(at.back() +
                 (call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(rank)]));
  return at;
}

// counts[from * ranks + to] of an all_to_all.
std::int64_t given(const Call& call, std::int64_t ranks, std::int64_t from, std::int64_t to) {
  return call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(from * ranks + to)];
}

bool overlap(const std::byte* a, std::int64_t a_bytes, const std::byte* b, std::int64_t b_bytes) {
  return a != nullptr && b != nullptr && a < b + b_bytes && b < a + a_bytes;
}

// Whether a piece reads memory that another piece writes. Reading its own target, element by
// element, is safe.
bool reads_what_others_write(const std::vector<DirectPiece>& pieces, std::int64_t element) {
  struct Place {
    const std::byte* begin;
    std::int64_t bytes;
    std::size_t piece;
  };
  std::vector<Place> written;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (const std::byte* const target : pieces[i].targets)
      written.push_back({target, pieces[i].elements * element, i});
  std::ranges::sort(written, {}, &Place::begin);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (const std::byte* const source : pieces[i].sources) {
      const std::int64_t bytes = pieces[i].elements * element;
      // Targets are disjoint: check those that begin before the source's end, back to the first
      // without overlap.
      auto at = std::ranges::lower_bound(written, source + bytes, {}, &Place::begin);
      while (at != written.begin()) {
        --at;
        if (!overlap(source, bytes, at->begin, at->bytes)) break;
        if (at->piece != i || at->begin != source) return true;
      }
    }
  return false;
}

constexpr std::size_t kMostPieces = 65'535;  // per launch: the limit of gridDim.y

constexpr std::string_view kKernel = R"(
struct weft_piece {{
  long long elements;
  const weft_element* sources[{sources}];
  weft_element* targets[{targets}];
}};
extern "C" __global__ void __launch_bounds__(512) weft_direct(const weft_piece* pieces, long long ranks) {{
  constexpr int kElements = 16 / sizeof(weft_element);
  const weft_piece& piece = pieces[blockIdx.y];
  const weft_element* from[{sources}];
  weft_element* to[{targets}];
  unsigned long long ends = 0;
  #pragma unroll
  for (int s = 0; s < {sources}; ++s) {{
    from[s] = piece.sources[s];
    ends |= (unsigned long long)(from[s]);
  }}
  #pragma unroll
  for (int t = 0; t < {targets}; ++t) {{
    to[t] = piece.targets[t];
    ends |= (unsigned long long)(to[t]);
  }}
  const long long packs = ends % 16 == 0 ? piece.elements / kElements : 0;
  const long long threads = (long long)(gridDim.x) * blockDim.x;
  const long long me = blockIdx.x * (long long)(blockDim.x) + threadIdx.x;
  for (long long i = me; i < packs; i += threads) {{
    weft_pack taken[{sources}];
    #pragma unroll
    for (int s = 0; s < {sources}; ++s) taken[s] = weft_take((const uint4*)(from[s]) + i);
    if ({sources} > 1) {{
      #pragma unroll
      for (int k = 0; k < kElements; ++k) {{
        weft_number sum = weft_number(taken[0].x[k]);
        #pragma unroll
        for (int s = 1; s < {sources}; ++s) sum = weft_combine(sum, weft_number(taken[s].x[k]));
        taken[0].x[k] = {finished};
      }}
    }}
    #pragma unroll
    for (int t = 0; t < {targets}; ++t) weft_put((uint4*)(to[t]) + i, taken[0]);
  }}
  for (long long i = packs * kElements + me; i < piece.elements; i += threads) {{
    weft_element value = from[0][i];
    if ({sources} > 1) {{
      weft_number sum = weft_number(value);
      #pragma unroll
      for (int s = 1; s < {sources}; ++s) sum = weft_combine(sum, weft_number(from[s][i]));
      value = {finished};
    }}
    #pragma unroll
    for (int t = 0; t < {targets}; ++t) to[t][i] = value;
  }}
}}
)";

}  // namespace

std::optional<DirectPlan> direct_plan(std::span<const Call> calls) {
  const auto ranks = static_cast<std::int64_t>(calls.size());
  const Call& any = calls.front();
  const auto element = static_cast<std::int64_t>(device::size_of(any.type));
  const auto call = [&](std::int64_t rank) -> const Call& { return calls[static_cast<std::size_t>(rank)]; };
  DirectPlan plan;
  const auto add = [&](std::int64_t elements, std::vector<const std::byte*> sources,
                       std::vector<std::byte*> targets) {
    if (elements > 0) plan.pieces.push_back({elements, std::move(sources), std::move(targets)});
  };
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (const Call& one : calls) {
    inputs.push_back(bytes_at(one.input, 0));
    outputs.push_back(bytes_at(one.output, 0));
  }
  switch (any.kind) {
    case Kind::all_reduce: add(any.count, inputs, outputs); break;
    case Kind::reduce: add(any.count, inputs, {outputs[static_cast<std::size_t>(any.root)]}); break;
    case Kind::broadcast: add(any.count, {inputs[static_cast<std::size_t>(any.root)]}, outputs); break;
    case Kind::all_gather:
    case Kind::gather:
    case Kind::scatter:
    case Kind::reduce_scatter: {
      const std::vector<std::int64_t> at = begins(any, ranks);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto number = static_cast<std::size_t>(rank);
        const std::int64_t from = at[number] * element, elements = at[number + 1] - at[number];
        std::vector<const std::byte*> sources;
        std::vector<std::byte*> targets;
        if (any.kind == Kind::all_gather) {
          sources = {inputs[number]};
          for (std::byte* const output : outputs) targets.push_back(bytes_at(output, from));
        } else if (any.kind == Kind::gather) {
          sources = {inputs[number]};
          targets = {bytes_at(call(any.root).output, from)};
        } else if (any.kind == Kind::scatter) {
          sources = {bytes_at(call(any.root).input, from)};
          targets = {outputs[number]};
        } else {
          for (const std::byte* const input : inputs) sources.push_back(bytes_at(input, from));
          targets = {outputs[number]};
        }
        add(elements, std::move(sources), std::move(targets));
      }
      break;
    }
    case Kind::all_to_all: {
      std::vector<std::int64_t> taken(static_cast<std::size_t>(ranks));
      for (std::int64_t from = 0; from < ranks; ++from) {
        std::int64_t read = 0;
        for (std::int64_t to = 0; to < ranks; ++to) {
          const std::int64_t elements = given(any, ranks, from, to);
          std::int64_t& written = taken[static_cast<std::size_t>(to)];
          add(elements, {bytes_at(call(from).input, read * element)},
              {bytes_at(call(to).output, written * element)});
          read += elements;
          written += elements;
        }
      }
      break;
    }
    default: return std::nullopt;
  }
  plan.through = reads_what_others_write(plan.pieces, element);
  return plan;
}

struct GpuDirect::State {
  std::shared_ptr<Gpu> gpu;
  std::unique_ptr<device::Memory> tables, through;
  std::vector<std::unique_ptr<GpuLaunch>> launches;
};

GpuDirect::GpuDirect(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuDirect::~GpuDirect() = default;

Result<std::unique_ptr<GpuDirect>> GpuDirect::bind(std::shared_ptr<Gpu> gpu, std::span<const Call> calls) {
  auto plan = direct_plan(calls);
  if (!plan)
    return user_error(fmt::format("{} is not a collective of ranks on one GPU", describe(calls.front())));
  const Call& any = calls.front();
  const auto element = static_cast<std::int64_t>(device::size_of(any.type));
  const auto ranks = static_cast<std::int64_t>(calls.size());
  auto state = std::make_unique<State>();
  state->gpu = gpu;
  // If pieces read what others write, a temporary buffer separates two rounds: all reads, then all
  // writes.
  std::vector<std::vector<DirectPiece>> rounds = {std::move(plan->pieces)};
  if (plan->through) {
    std::int64_t bytes = 0;
    std::vector<DirectPiece> on;
    for (DirectPiece& piece : rounds.front()) {
      on.push_back(
          {piece.elements, {reinterpret_cast<const std::byte*>(bytes)}, std::exchange(piece.targets, {})});
      bytes += (piece.elements * element + 15) / 16 * 16;
    }
    WEFT_TRY(memory, gpu->allocate(bytes));
    state->through = std::move(memory);
    for (std::size_t i = 0; i < on.size(); ++i) {
      std::byte* const at =
          state->through->address().raw() + reinterpret_cast<std::int64_t>(on[i].sources.front());
      on[i].sources.front() = at;
      rounds.front()[i].targets = {at};
    }
    rounds.push_back(std::move(on));
  }
  std::vector<std::uint64_t> words;
  struct Planned {
    std::size_t first_word, pieces, sources, targets;
    std::int64_t longest;
  };
  std::vector<Planned> planned;
  for (const std::vector<DirectPiece>& round : rounds) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<const DirectPiece*>> alike;
    for (const DirectPiece& piece : round)
      alike[{piece.sources.size(), piece.targets.size()}].push_back(&piece);
    for (const auto& [shape, pieces] : alike) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const DirectPiece* const piece = pieces[i];
        if (i % kMostPieces == 0)
          planned.push_back(
              {words.size(), std::min(kMostPieces, pieces.size() - i), shape.first, shape.second, 0});
        planned.back().longest = std::max(planned.back().longest, piece->elements);
        words.push_back(static_cast<std::uint64_t>(piece->elements));
        for (const std::byte* const source : piece->sources)
          words.push_back(reinterpret_cast<std::uint64_t>(source));
        for (const std::byte* const target : piece->targets)
          words.push_back(reinterpret_cast<std::uint64_t>(target));
      }
    }
  }
  const std::span<const std::byte> table = std::as_bytes(std::span(words));
  WEFT_TRY(tables, gpu->allocate(static_cast<std::int64_t>(table.size())));
  state->tables = std::move(tables);
  {
    WEFT_TRY(stream, gpu->make_stream({.computes = false}));
    stream->copy_in(state->tables->address(), table);
    WEFT_TRY_STATUS(stream->synchronize());
  }
  const bool averages = any.op == ReduceOp::avg && collective::reduces(any.kind);
  for (const Planned& launch : planned) {
    // The sum is rounded before the division, as on the CPU.
    const std::string text =
        combine_source(any.type, any.op) +
        fmt::format(
            kKernel, fmt::arg("sources", launch.sources), fmt::arg("targets", launch.targets),
            fmt::arg("finished", averages && launch.sources > 1 ? "weft_divided(weft_element(sum), ranks)"
                                                                : "weft_element(sum)"));
    WEFT_TRY(function, gpu->function(text, "weft_direct"));
    const auto at = device::cuda::pointer(
        state->tables->address() + static_cast<std::int64_t>(launch.first_word * sizeof(std::uint64_t)));
    constexpr unsigned kThreads = 512;
    const std::int64_t packs = launch.longest * element / 16 + 1;
    // Enough blocks to fill all SMs with all pieces together; a grid-stride loop covers the rest.
    const std::int64_t most = std::max<std::int64_t>(
        std::int64_t{gpu->processors()} * 16 / static_cast<std::int64_t>(launch.pieces), 1);
    const auto blocks =
        static_cast<unsigned>(std::clamp<std::int64_t>((packs + kThreads - 1) / kThreads, 1, most));
    state->launches.push_back(std::make_unique<GpuLaunch>(
        describe(any), [=, pieces = static_cast<unsigned>(launch.pieces)](const LaunchContext& place) {
          device::cuda::Parameters parameters;
          parameters.pointer(at).whole(ranks);
          return parameters.launch(place, function, {blocks, pieces}, {kThreads, 1});
        }));
  }
  return std::unique_ptr<GpuDirect>(new GpuDirect(std::move(state)));
}

void GpuDirect::start(device::Stream& stream) {
  for (const auto& launch : state_->launches) stream.launch(*launch, {});
}

}  // namespace weft::comm::gpu
