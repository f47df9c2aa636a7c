#include "weft/communication/comm/chunk/chunk_memory.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::comm {

using collective::Placement;

namespace {

std::byte* bytes_of(const void* memory) { return static_cast<std::byte*>(const_cast<void*>(memory)); }

// Whether, in place, the output of a rank is the whole shared buffer.
bool output_is_all(Kind kind) {
  return kind != Kind::custom &&
         (!collective::has_one_block(kind) || collective::shared_buffer(kind) == collective::Buffer::output);
}

}  // namespace

std::int32_t callers_chunks(const collective::Program& program, std::int32_t rank,
                            collective::Buffer buffer) {
  if (program.collective.kind != Kind::custom) return collective::extent(program.collective, buffer, rank);
  const std::int32_t chunks = collective::memory_chunks(program, Placement::out_of_place, rank, buffer);
  if (chunks > 0 || program.placement != Placement::in_place) return chunks;
  return collective::memory_chunks(program, Placement::in_place, rank,
                                   collective::shared_buffer(Kind::custom));
}

std::shared_ptr<std::byte> allocate_here(std::int64_t bytes) {
  auto* const memory = new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]();
  return memory == nullptr ? nullptr : std::shared_ptr<std::byte>(memory, std::default_delete<std::byte[]>());
}

ChunkMemory::ChunkMemory(const collective::Program& program, std::int32_t rank, AllocateBytes allocate)
    : program_(program), rank_(rank), allocate_(std::move(allocate)) {
  const collective::Collective& collective = program.collective;
  const bool one_block = collective::has_one_block(collective.kind);
  const std::int32_t first = one_block ? collective::first_of_block(collective, rank) : 0;
  const std::int32_t end = first + collective::extent(collective, Buffer::output, rank);
  for (const collective::Threadblock& block : program.ranks[static_cast<std::size_t>(rank)].blocks)
    for (const collective::Step& step : block.steps) {
      idle_ = false;
      if (!collective::writes_target(step.op) || step.target.buffer != Buffer::input) continue;
      writes_input_ = true;
      if (!output_is_all(collective.kind) &&
          (step.target.index < first || step.target.index + step.count > end))
        writes_beyond_output_ = true;
    }
}

bool ChunkMemory::runs_in_place(const Call& call, bool called_in_place) const {
  if (program_.placement != Placement::either) return program_.placement == Placement::in_place;
  // For kinds with a root, whether a rank is in place depends on its role: all run in place then.
  return called_in_place || has_root(call.kind);
}

Status ChunkMemory::bind(const Call& call, const ChunkShape& shape) {
  shape_ = &shape;
  element_ = static_cast<std::int64_t>(device::size_of(call.type));
  before_.clear();
  beside_.clear();
  after_.clear();
  early_ = nullptr;
  const std::int32_t scratch = program_.ranks[static_cast<std::size_t>(rank_)].scratch_chunks;
  WEFT_TRY(scratch_area, own(Buffer::scratch, scratch));
  area(Buffer::scratch) = std::move(scratch_area);
  const bool called_in_place = call.kind == Kind::custom ? call.input == call.output : in_place(call, rank_);
  return runs_in_place(call, called_in_place) ? bind_in_place(call, called_in_place)
                                              : bind_out_of_place(call, called_in_place);
}

Status ChunkMemory::bind_out_of_place(const Call& call, bool called_in_place) {
  const bool padded = shape_->form == ChunkShape::Form::padded;
  const ChunkArea input = layout(Buffer::input, bytes_of(call.input));
  const ChunkArea output = layout(Buffer::output, bytes_of(call.output));
  area(Buffer::input) = input;
  area(Buffer::output) = output;
  if (padded || called_in_place || writes_input_ || !has_input(call, rank_)) {
    WEFT_TRY(mine, own(Buffer::input,
                       collective::memory_chunks(program_, Placement::out_of_place, rank_, Buffer::input)));
    area(Buffer::input) = std::move(mine);
    const bool early =
        !called_in_place && has_input(call, rank_) && read_early(input, Placement::out_of_place);
    if (has_input(call, rank_) && !early) copy(before_, Buffer::input, input, area(Buffer::input));
  }
  if (padded || !has_output(call, rank_)) {
    WEFT_TRY(mine, own(Buffer::output,
                       collective::memory_chunks(program_, Placement::out_of_place, rank_, Buffer::output)));
    area(Buffer::output) = std::move(mine);
    if (has_output(call, rank_)) copy(after_, Buffer::output, area(Buffer::output), output);
  }
  return {};
}

Status ChunkMemory::bind_in_place(const Call& call, bool called_in_place) {
  const Buffer shared = collective::shared_buffer(call.kind);
  const ChunkArea input = layout(Buffer::input, bytes_of(call.input));
  const ChunkArea output = layout(Buffer::output, bytes_of(call.output));
  const bool padded = shape_->form == ChunkShape::Form::padded;
  const bool on_output = output_is_all(call.kind) && has_output(call, rank_);
  const bool on_all = called_in_place && (call.kind == Kind::custom || !writes_beyond_output_);
  const bool direct = !padded && (on_output || on_all);
  bool in_output = direct;
  if (direct) {
    area(shared) = on_output ? output : input;
    // The layout is that of the shared buffer, even if the memory is the output's.
    area(shared) = layout(shared, area(shared).base);
  } else {
    WEFT_TRY(mine, own(shared, collective::memory_chunks(program_, Placement::in_place, rank_, shared)));
    area(shared) = std::move(mine);
    // Copying the input in advance needs one contiguous target, so the output is used only if
    // nothing is copied.
    if (!padded && !called_in_place && call.kind != Kind::custom && has_output(call, rank_) &&
        (!has_input(call, rank_) || read_early(input, Placement::in_place))) {
      in_output = true;
      area(shared).elsewhere = output.base;
      area(shared).first_elsewhere =
          collective::resolve(program_.collective, Placement::in_place, rank_, {Buffer::output, 0}).index;
      area(shared).end_elsewhere =
          area(shared).first_elsewhere + collective::extent(program_.collective, Buffer::output, rank_);
    }
  }
  const Buffer other = shared == Buffer::input ? Buffer::output : Buffer::input;
  area(other) = area(shared);
  area(other).shift = collective::resolve(program_.collective, Placement::in_place, rank_, {other, 0}).index;
  if (has_input(call, rank_) && !(direct && called_in_place)) {
    if (read_early(input, Placement::in_place))
      copy_unwritten(call, input);
    else
      copy(before_, Buffer::input, input, area(Buffer::input));
  }
  if (has_output(call, rank_) && !in_output) copy(after_, Buffer::output, area(Buffer::output), output);
  return {};
}

bool ChunkMemory::read_early(const ChunkArea& input, Placement placement) {
  // A padded chunk is longer than the caller's.
  if (shape_->form == ChunkShape::Form::padded) return false;
  auto& known = known_reads_[static_cast<std::size_t>(placement)];
  if (!known) known = find_early_reads(program_, rank_, placement);
  if (!*known) return false;
  early_ = &**known;
  const auto first = [&](Buffer buffer) {
    return collective::resolve(program_.collective, placement, rank_, {buffer, 0}).index;
  };
  inputs_.fill(input);
  inputs_[static_cast<std::size_t>(Buffer::output)].shift = first(Buffer::output) - first(Buffer::input);
  return true;
}

// Lists copies of the output chunks that no step writes.
void ChunkMemory::copy_unwritten(const Call& call, const ChunkArea& input) {
  if (!has_output(call, rank_)) return;
  const std::int64_t shift = inputs_[static_cast<std::size_t>(Buffer::output)].shift;
  const std::int64_t end = collective::extent(program_.collective, Buffer::output, rank_);
  for (std::size_t i = 0; i < early_->written.size(); ++i) {
    const auto chunk = static_cast<std::int64_t>(i);
    if (early_->written[i] || chunk < shift || chunk >= shift + end) continue;
    const Copy next{area(Buffer::input).at(chunk), input.at(chunk), input.at(chunk + 1) - input.at(chunk)};
    if (!beside_.empty() && beside_.back().to + beside_.back().bytes == next.to &&
        beside_.back().from + beside_.back().bytes == next.from)
      beside_.back().bytes += next.bytes;
    else
      beside_.push_back(next);
  }
}

ChunkArea ChunkMemory::layout(Buffer buffer, std::byte* base) const {
  ChunkArea area;
  area.base = base;
  area.stride = shape_->longest * element_;
  if (shape_->form == ChunkShape::Form::equal) return area;
  area.offsets = shape_->firsts(program_.collective, buffer, rank_);
  for (std::int64_t& offset : area.offsets) offset *= element_;
  return area;
}

Result<ChunkArea> ChunkMemory::own(Buffer buffer, std::int64_t chunks) {
  ChunkArea area;
  area.stride = shape_->longest * element_;
  if (shape_->form == ChunkShape::Form::classed && buffer != Buffer::scratch) area = layout(buffer, nullptr);
  std::int64_t bytes = 0;
  Own& memory = owns_[static_cast<std::size_t>(buffer)];
  const bool fits = !__builtin_mul_overflow(chunks, area.stride, &bytes);
  if (fits && bytes > memory.bytes) {
    memory.data.reset();
    memory.bytes = 0;
    memory.data = allocate_(bytes);
    if (memory.data) memory.bytes = bytes;
  }
  if (!fits || bytes > memory.bytes)
    return environment_error(
        fmt::format("out of memory for the {} of {}: {} chunks of {}", collective::name(buffer),
                    program_.name, chunks, print_bytes(static_cast<double>(area.stride))),
        "use an algorithm with less scratch, or a smaller message");
  area.base = memory.data.get();
  return area;
}

void ChunkMemory::copy(std::vector<Copy>& copies, Buffer buffer, const ChunkArea& from,
                       const ChunkArea& to) const {
  const std::int32_t chunks = callers_chunks(program_, rank_, buffer);
  if (chunks == 0) return;
  if (shape_->form != ChunkShape::Form::padded) {
    const std::int64_t bytes = from.offsets.empty() ? chunks * from.stride : from.at(chunks) - from.at(0);
    copies.push_back({to.at(0), from.at(0), bytes});
    return;
  }
  // One of the two layouts is the caller's, with unpadded chunks.
  const ChunkArea& callers = from.offsets.empty() ? to : from;
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
    copies.push_back({to.at(chunk), from.at(chunk), callers.at(chunk + 1) - callers.at(chunk)});
}

}  // namespace weft::comm
