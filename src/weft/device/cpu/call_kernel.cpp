#include "weft/device/cpu/call_kernel.h"

#include <algorithm>
#include <array>
#include <functional>

#include "weft/base/check.h"
#include "weft/device/codec/codec.h"
#include "weft/device/cpu/attention.h"
#include "weft/device/cpu/batch_norm.h"
#include "weft/device/cpu/convolution.h"
#include "weft/device/cpu/cross_entropy.h"
#include "weft/device/cpu/dropout.h"
#include "weft/device/cpu/gather.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/linear_cross_entropy.h"
#include "weft/device/cpu/pooling.h"
#include "weft/device/cpu/recurrence.h"
#include "weft/device/cpu/rotary.h"
#include "weft/device/cpu/routing.h"
#include "weft/device/cpu/strided_copy.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/global_offset.h"
#include "weft/plan/ops/linear_loss_shape.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/ops/pooling.h"
#include "weft/program/tasks/items.h"

namespace weft::device::cpu {
namespace {

using plan::DType;
using plan::NodeView;
using plan::Type;
using program::Task;

using Run = std::function<void(const Task&, std::byte*)>;

class CallKernel final : public Kernel {
 public:
  explicit CallKernel(Run run, std::int64_t scratch = 0) : run_(std::move(run)), scratch_(scratch) {}

  std::int64_t scratch_bytes() const override { return scratch_; }
  void run(const Task& task, std::byte* scratch) const override { run_(task, scratch); }

 private:
  const Run run_;
  const std::int64_t scratch_;
};

std::unique_ptr<Kernel> call(Run run, std::int64_t scratch = 0) {
  return std::make_unique<CallKernel>(std::move(run), scratch);
}

// A node with the addresses of its operands and results. They are contiguous, except the tables of
// scatter-add and gather in programs that were planned for an accelerator.
struct Call {
  const program::OperatorCall& what;
  NodeView node;
  std::vector<std::byte*> in, out;

  const float* f32(std::size_t i) const { return reinterpret_cast<const float*>(in[i]); }
  const std::int32_t* i32(std::size_t i) const { return reinterpret_cast<const std::int32_t*>(in[i]); }
  const std::int64_t* i64(std::size_t i) const { return reinterpret_cast<const std::int64_t*>(in[i]); }
  float* result(std::size_t k = 0) const { return reinterpret_cast<float*>(out[k]); }
};

Convolution shape_of(const NodeView& node, const Type& x, const Type& w) {
  const ops::Convolution conv = *ops::convolution(node, x, w);
  return {.batch = conv.batch,
          .in = conv.channels,
          .out = conv.outputs,
          .height = conv.height,
          .width = conv.width,
          .out_height = conv.high,
          .out_width = conv.wide,
          .kernel_height = conv.rows,
          .kernel_width = conv.columns,
          .padding_height = conv.padding,
          .padding_width = conv.padding_w,
          .stride = conv.stride,
          .groups = conv.groups};
}

std::unique_ptr<Kernel> make_convolution(const Call& at) {
  const NodeView& node = at.node;
  if (&node.op() == &ops::conv2d()) {
    const Convolution conv = shape_of(node, node.input_type(0), node.input_type(1));
    return call(
        [=](const Task& task, std::byte* scratch) {
          convolve(conv, task.begin, task.end, at.f32(0), at.f32(1), at.result(), scratch);
        },
        static_cast<std::int64_t>(scratch_bytes(conv)));
  }
  if (&node.op() == &ops::conv2d_input_gradient()) {
    const Convolution conv = shape_of(node, node.result_type(0), node.input_type(1));
    return call(
        [=](const Task& task, std::byte* scratch) {
          convolve_input_gradient(conv, task.begin, task.end, at.f32(0), at.f32(1), at.result(), scratch);
        },
        static_cast<std::int64_t>(scratch_bytes(conv)));
  }
  const Convolution conv = shape_of(node, node.input_type(1), node.result_type(0));
  const std::int64_t each = program::channels_per_item(node);
  return call(
      [=](const Task& task, std::byte* scratch) {
        convolve_weight_gradient(conv, task.begin * each, std::min(task.end * each, conv.in), at.f32(0),
                                 at.f32(1), at.result(), scratch);
      },
      static_cast<std::int64_t>(scratch_bytes(conv)));
}

std::unique_ptr<Kernel> make_pool(const Call& at) {
  const NodeView& node = at.node;
  const bool gradient = &node.op() == &ops::max_pool_gradient() || &node.op() == &ops::avg_pool_gradient();
  const ops::Pooling of = *ops::pooling(node, gradient ? node.result_type(0) : node.input_type(0));
  const Pooling pool{of.height, of.width, of.high, of.wide, of.size, of.stride, of.padding, of.padding_w};
  if (&node.op() == &ops::max_pool())
    return call([=](const Task& t,
                    std::byte* scratch) { max_pool(pool, t.begin, t.end, at.f32(0), at.result(), scratch); },
                static_cast<std::int64_t>(scratch_bytes(pool)));
  if (&node.op() == &ops::avg_pool())
    return call([=](const Task& t,
                    std::byte* scratch) { avg_pool(pool, t.begin, t.end, at.f32(0), at.result(), scratch); },
                static_cast<std::int64_t>(scratch_bytes(pool)));
  if (&node.op() == &ops::max_pool_gradient())
    return call(
        [=](const Task& t, std::byte* scratch) {
          max_pool_gradient(pool, t.begin, t.end, at.f32(0), at.f32(1), at.result(), scratch);
        },
        static_cast<std::int64_t>(scratch_bytes(pool)));
  return call(
      [=](const Task& t, std::byte*) { avg_pool_gradient(pool, t.begin, t.end, at.f32(0), at.result()); });
}

// Calls run(operand i) with its pointer as i32 or i64.
template <class Run>
auto with_integers(const Call& at, std::size_t i, Run run) {
  return at.node.input_type(i).dtype == DType::i64 ? run(at.i64(i)) : run(at.i32(i));
}

LabelWeights smoothed(double smoothing, std::int64_t classes) {
  return {static_cast<float>(1 - smoothing), static_cast<float>(smoothing / static_cast<double>(classes))};
}

// Contiguous rows of classes. Labels and loss gradients are in row order.
std::unique_ptr<Kernel> make_cross_entropy(const Call& at) {
  const std::int64_t classes = at.node.input_type(0).size_of(at.node.symbol(0));
  const LabelWeights weights = smoothed(at.node.real(1), classes);
  return with_integers(at, 1, [&](const auto* labels) {
    if (&at.node.op() == &ops::cross_entropy())
      return call([=](const Task& t, std::byte*) {
        cross_entropy(t.begin, t.end, classes, at.f32(0), labels, at.result(), weights);
      });
    return call([=](const Task& t, std::byte*) {
      cross_entropy_gradient(t.begin, t.end, classes, at.f32(0), labels, at.f32(2), at.result(), weights);
    });
  });
}

// The last result is scratch memory. `items` is the unit's item count, which determines the number
// of parts.
std::unique_ptr<Kernel> make_linear_cross_entropy(const Call& at, std::int64_t items) {
  program::LossTiles tiles = program::loss_tiles(at.node);
  const bool whole = items < tiles.items();  // a single task does all the work
  if (!whole && tiles.items() > 1) tiles.parts = (items - 1) / (tiles.items() - 1);
  const bool slopes = ops::classifying(at.node).slopes, biased = at.node.input_count() > 3;
  const LinearLoss of{.tiles = tiles,
                      .weights = smoothed(ops::classifying(at.node).smoothing, tiles.classes),
                      .hidden = at.f32(0),
                      .words = at.f32(1),
                      .bias = biased ? at.f32(3) : nullptr,
                      .loss = at.result(0),
                      .dhidden = slopes ? at.result(1) : nullptr,
                      .dwords = slopes ? at.result(2) : nullptr,
                      .dbias = slopes && biased ? at.result(3) : nullptr,
                      .room = at.result(at.out.size() - 1)};
  return with_integers(at, 2, [&](const auto* labels) {
    return call([=](const Task& t, std::byte*) {
      linear_cross_entropy(of, whole ? 0 : t.begin, whole ? of.tiles.items() : t.end, labels);
    });
  });
}

std::unique_ptr<Kernel> make_attention_merge(const Call& at) {
  const std::int64_t rows = at.node.input_type(1).elements(),
                     values = rows == 0 ? 0 : at.node.input_type(0).elements() / rows;
  return call([=](const Task& t, std::byte*) {
    merge_attention(t.begin, t.end, values, {at.f32(0), at.f32(1)}, {at.f32(2), at.f32(3)}, at.result(0),
                    at.result(1));
  });
}

std::unique_ptr<Kernel> make_labelled(const Call& at) {
  const std::int64_t classes = at.node.integer(0), count = at.node.input_type(0).elements();
  return with_integers(at, 0, [&](const auto* labels) {
    return call([=](const Task&, std::byte*) {
      for (std::int64_t i = 0; i < count; ++i)
        at.result()[i] = static_cast<float>(labels[i] >= 0 && labels[i] < classes);
    });
  });
}

// The stride of an index in a contiguous value of this type; 0 if the type lacks the index.
std::int64_t plain_stride(const Type& type, Symbol index) {
  std::int64_t stride = 1;
  for (std::size_t i = type.rank(); i-- > 0; stride *= type.dims[i].size)
    if (type.dims[i].index == index) return stride;
  return 0;
}

RowParts row_parts(const program::Place& place, const Type& type, Symbol along) {
  RowParts row;
  for (const program::Axis& axis : axes_of(place, type, along)) row.parts.push_back({axis.size, axis.stride});
  return row;
}

// positions[p..], table[.., v, ..] -> [p.., the table's other indices]
std::unique_ptr<Kernel> make_gather(const Call& at) {
  const NodeView& node = at.node;
  const Type positions = node.input_type(0), table = node.input_type(1);
  const Symbol along = node.symbol(0);
  const program::Place& place = at.what.operands[1];
  std::vector<Gather::Loop> of_positions, inside;
  for (const plan::Dim& dim : positions.dims) of_positions.push_back({dim.size, place.stride(dim.index)});
  for (const plan::Dim& dim : table.dims)
    if (dim.index != along && !positions.has(dim.index))
      inside.push_back({dim.size, place.stride(dim.index)});
  Gather rows(std::move(of_positions), inside, table.size_of(along), row_parts(place, table, along));
  rows.first = node.integer(1);
  rows.width = static_cast<std::size_t>(plan::size_in_bytes(table.dtype));
  return with_integers(at, 0, [&](const auto* numbers) {
    return call(
        [=](const Task& t, std::byte*) { gather(rows, numbers, t.begin, t.end, at.in[1], at.out[0]); });
  });
}

// positions[p..], x[..] into y, which has the new index and any of theirs. Indices that y lacks are
// summed.
std::unique_ptr<Kernel> make_scatter_add(const Call& at) {
  const NodeView& node = at.node;
  const Type positions = node.input_type(0), x = node.input_type(1), y = node.result_type(0);
  const Symbol along = node.symbol(0);
  const program::Place& place = at.what.results[0];
  ScatterAdd rows;
  rows.rows = y.size_of(along);
  rows.row = row_parts(place, y, along);
  rows.first = node.integer(3);
  rows.items = y.dims.front().size;
  rows.item = plain_stride(y, y.dims.front().index);
  std::vector<plan::Dim> loops(positions.dims.begin(), positions.dims.end());
  for (const plan::Dim& dim : x.dims)
    if (!positions.has(dim.index)) loops.push_back(dim);
  // Merges the last indices of x that positions lack and that are contiguous in both x and y.
  while (!loops.empty()) {
    const plan::Dim& dim = loops.back();
    if (positions.has(dim.index) || plain_stride(x, dim.index) != rows.run ||
        place.stride(dim.index) != rows.run || dim.index == y.dims.front().index)
      break;
    rows.run *= dim.size;
    loops.pop_back();
  }
  for (const plan::Dim& dim : loops) {
    if (dim.index == y.dims.front().index) rows.cut = static_cast<std::int64_t>(rows.loops.size());
    rows.loops.push_back(
        {dim.size, plain_stride(positions, dim.index), plain_stride(x, dim.index), place.stride(dim.index)});
  }
  const bool whole = program::item_count(node) == 1 || !is_plain(place);
  return with_integers(at, 0, [&](const auto* numbers) {
    return call([=](const Task& t, std::byte*) {
      scatter_add(rows, numbers, whole ? 0 : t.begin, whole ? rows.items : t.end, at.f32(1), at.result());
    });
  });
}

std::unique_ptr<Kernel> make_top_k(const Call& at) {
  const TopKRows rows{at.node.input_type(0).size_of(at.node.symbol(0)), at.node.integer(2)};
  return call(
      [=](const Task& t, std::byte* scratch) {
        top_k(rows, t.begin, t.end, at.f32(0), at.result(), reinterpret_cast<std::int32_t*>(at.out[1]),
              scratch);
      },
      rows.scratch_bytes());
}

std::unique_ptr<Kernel> make_slot(const Call& at) {
  Slots queues{.experts = at.node.integer(0), .capacity = at.node.integer(1)};
  for (const Symbol index : at.node.indices(2)) queues.length *= at.node.input_type(0).size_of(index);
  return with_integers(at, 0, [&](const auto* experts) {
    return call(
        [=](const Task& t, std::byte* scratch) {
          slots(queues, t.begin, t.end, experts, reinterpret_cast<std::int32_t*>(at.out[0]), scratch);
        },
        queues.scratch_bytes());
  });
}

std::unique_ptr<Kernel> make_optimizer(const Call& at) {
  const NodeView& node = at.node;
  const bool is_adam = &node.op() == &ops::adam() || &node.op() == &ops::adamw();
  const std::size_t last = is_adam ? 5 : &node.op() == &ops::momentum() ? 3 : 2;
  const double lr = node.real(0);
  // The learning rate of this step, with the schedule's factor if there is one.
  const auto lr_now = [=] { return at.in.size() > last ? lr * static_cast<double>(*at.f32(last)) : lr; };
  if (&node.op() == &ops::sgd()) {
    return call([=](const Task& t, std::byte*) {
      sgd_lanes(t.end - t.begin, static_cast<float>(lr_now()), at.f32(0) + t.begin, at.f32(1) + t.begin,
                at.result() + t.begin);
    });
  }
  if (&node.op() == &ops::momentum()) {
    const auto mu = static_cast<float>(node.real(1));
    return call([=](const Task& t, std::byte*) {
      const MomentumStep step{static_cast<float>(lr_now()), mu};
      momentum_lanes(t.end - t.begin, step, at.f32(0) + t.begin, at.f32(1) + t.begin, at.f32(2) + t.begin,
                     at.result(0) + t.begin, at.result(1) + t.begin);
    });
  }
  const double beta1 = node.real(1), beta2 = node.real(2), epsilon = node.real(3);
  const double decay = &node.op() == &ops::adamw() ? node.real(4) : 0;
  return call([=](const Task& t, std::byte*) {
    const AdamStep step = adam_step(lr_now(), beta1, beta2, epsilon, *at.i64(4), decay);
    adam_lanes(t.end - t.begin, step, at.f32(0) + t.begin, at.f32(1) + t.begin, at.f32(2) + t.begin,
               at.f32(3) + t.begin, at.result(0) + t.begin, at.result(1) + t.begin, at.result(2) + t.begin);
  });
}

std::unique_ptr<Kernel> make_dropout(const Call& at) {
  const double rate = at.node.real(0);
  const auto stream = static_cast<std::uint64_t>(at.node.integer(1));
  const Type x = at.node.input_type(0);
  const ops::GlobalOffset whole = ops::read_global_offset(x, at.node.integer(2), at.node.word(3)).value();
  // The elements that are contiguous in the whole tensor as in the slice, and the loops around
  // them.
  std::int64_t run = 1;
  std::size_t outer = x.rank();
  for (; outer > 0 && (whole.strides[outer - 1] == run || x.dims[outer - 1].size == 1); --outer)
    run *= x.dims[outer - 1].size;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < outer; ++i) sizes.push_back(x.dims[i].size);
  return call([=](const Task& t, std::byte*) {
    const Dropout drop{static_cast<std::uint64_t>(*at.i64(1)), stream, rate};
    for (std::int64_t begin = t.begin, end; begin < t.end; begin = end) {
      end = std::min(t.end, (begin / run + 1) * run);
      std::int64_t place = whole.begin + begin % run;
      for (std::int64_t rest = begin / run, i = static_cast<std::int64_t>(sizes.size()); i-- > 0;) {
        place += rest % sizes[static_cast<std::size_t>(i)] * whole.strides[static_cast<std::size_t>(i)];
        rest /= sizes[static_cast<std::size_t>(i)];
      }
      dropout(drop, static_cast<std::uint64_t>(place), end - begin, at.f32(0) + begin, at.result() + begin);
    }
  });
}

// x[.., along, between.., pairs], or x with these two indices last.
std::unique_ptr<Kernel> make_rotary(const Call& at) {
  const Type x = at.node.input_type(0);
  const Symbol along = at.node.symbol(0), pairs = at.node.symbol(1);
  Rotary rotary{
      .positions = x.size_of(along), .half = x.size_of(pairs) / 2, .inverse = at.node.integer(3) != 0};
  if (program::rows_over(at.node).empty()) rotary.between = plain_stride(x, along) / x.size_of(pairs);
  auto cosines =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(rotary.positions * rotary.half));
  auto sines = std::make_shared<std::vector<float>>(cosines->size());
  rotary_table(rotary, at.node.real(2), at.node.integer(4), cosines->data(), sines->data());
  return call([=](const Task& t, std::byte*) {
    rotate_rows(rotary, t.begin, t.end, at.f32(0), cosines->data(), sines->data(), at.result());
  });
}

// x[rows.., along, inner..]. The decay has some of x's indices, in any order.
std::unique_ptr<Kernel> make_recurrence(const Call& at) {
  const Type decay = at.node.input_type(0), x = at.node.input_type(1);
  const auto along = static_cast<std::size_t>(x.position(at.node.symbol(0)));
  const std::vector<std::int64_t> in_decay = ops::strides_along(decay, x.dims),
                                  in_x = ops::strides_along(x, x.dims);
  Recurrence shape{
      .steps = x.dims[along].size, .reverse = at.node.integer(1) != 0, .step_stride = in_decay[along]};
  for (std::size_t i = along + 1; i < x.rank(); ++i) shape.inner *= x.dims[i].size;
  // Merges the last indices that the decay lacks, or stores in the order of x.
  std::size_t outer = x.rank();
  const auto alike = [&](std::size_t i) { return in_decay[i] == (shape.dense ? in_x[i] : 0); };
  shape.dense = x.rank() > along + 1 && in_decay.back() != 0;
  for (; outer > along + 1 && alike(outer - 1); --outer) shape.run *= x.dims[outer - 1].size;
  shape.row_starts = ops::offsets_along(decay, x.dims.first(along));
  shape.run_starts = ops::offsets_along(decay, x.dims.subspan(along + 1, outer - along - 1));
  return call(
      [=](const Task& t, std::byte*) { recur(shape, t.begin, t.end, at.f32(0), at.f32(1), at.result()); });
}

// x[batch.., channel, inner..] with statistics per channel, or x[share, batch.., channel, inner..],
// per share too.
std::unique_ptr<Kernel> make_batch_norm(const Call& at) {
  const NodeView& node = at.node;
  const Type x = node.input_type(0), channel = node.input_type(1);
  const bool shared = channel.rank() == 2;
  const auto middle = static_cast<std::size_t>(x.position(channel.dims.back().index));
  const std::int64_t shares = shared ? x.dims[0].size : 1;
  BatchNorm norm{.channels = channel.dims.back().size,
                 .epsilon = static_cast<float>(node.real(1)),
                 .momentum = static_cast<float>(node.real(2))};
  norm.batch = 1;
  for (std::size_t i = shared ? 1 : 0; i < middle; ++i) norm.batch *= x.dims[i].size;
  for (std::size_t i = middle + 1; i < x.rank(); ++i) norm.inner *= x.dims[i].size;
  const bool trains = node.word(3) == "train";
  const std::int64_t each = program::channels_per_item(node);
  return call([=](const Task& t, std::byte*) {
    const std::int64_t begin = t.begin * each, end = std::min(t.end * each, norm.channels);
    for (std::int64_t share = 0; share < shares; ++share) {
      const std::int64_t c = share * norm.channels, i = c * norm.batch * norm.inner;
      if (trains) {
        batch_norm_train(norm, begin, end, at.f32(0) + i, at.f32(1) + c, at.f32(2) + c, at.result(0) + i,
                         at.result(1) + c, at.result(2) + c, at.result(3) + c);
      } else {
        batch_norm_infer(norm, begin, end, at.f32(0) + i, at.f32(1) + c, at.f32(2) + c, at.result(0) + i,
                         at.result(3) + c);
        std::copy(at.f32(1) + c + begin, at.f32(1) + c + end, at.result(1) + c + begin);
        std::copy(at.f32(2) + c + begin, at.f32(2) + c + end, at.result(2) + c + begin);
      }
    }
  });
}

// Concatenates operands along one index, or pads one with zeros.
std::unique_ptr<Kernel> make_concat_or_pad(const Call& at) {
  const NodeView& node = at.node;
  const Type y = node.result_type(0);
  const auto along = static_cast<std::size_t>(y.position(node.symbol(0)));
  const auto width = static_cast<std::size_t>(plan::size_in_bytes(y.dtype));
  std::int64_t inner = 1;
  for (std::size_t i = along + 1; i < y.rank(); ++i) inner *= y.dims[i].size;
  const std::int64_t line = y.dims[along].size * inner;
  const bool pads = &node.op() == &ops::pad();
  std::vector<std::int64_t> runs;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    runs.push_back(node.input_type(i).dims[along].size * inner);
  const std::int64_t first = pads ? node.integer(1) * inner : 0;
  return call([=](const Task& t, std::byte*) {
    const auto bytes = [&](std::int64_t elements) { return elements * static_cast<std::int64_t>(width); };
    if (pads) std::fill_n(at.out[0] + bytes(t.begin), bytes(t.end - t.begin), std::byte{0});
    // Copies whole lines together, and the partial lines at the ends of the range alone.
    for (std::int64_t from = t.begin, end; from < t.end; from = end) {
      const std::int64_t row = from / line, column = from % line;
      const std::int64_t rows = column == 0 ? std::max<std::int64_t>((t.end - from) / line, 1) : 1;
      end =
          column == 0 && rows * line <= t.end - from ? from + rows * line : std::min(t.end, (row + 1) * line);
      const std::int64_t stop = rows > 1 ? line : column + end - from;
      std::int64_t begin = first;
      for (std::size_t i = 0; i < runs.size(); begin += runs[i++]) {
        const std::int64_t low = std::max(begin, column), high = std::min(begin + runs[i], stop);
        if (low >= high) continue;
        const std::array<std::int64_t, 2> sizes = {rows, high - low}, in = {runs[i], 1}, out = {line, 1};
        strided_copy(sizes, at.in[i] + bytes(row * runs[i] + low - begin), in,
                     at.out[0] + bytes(row * line + low), out, width);
      }
    }
  });
}

// Segments of numbers, and the words that hold their codes.
std::unique_ptr<Kernel> make_codec(const Call& at) {
  const ops::Codec codec = ops::codec_of(at.node);
  const ops::CodeSegments segments = ops::code_segments(at.node);
  const bool encodes = &at.node.op() == &ops::encode();
  const auto numbers = static_cast<std::size_t>(segments.numbers),
             bytes = static_cast<std::size_t>(4 * segments.words),
             used = static_cast<std::size_t>(ops::encoded_bytes(codec, segments.numbers));
  return call([=](const Task& t, std::byte*) {
    for (auto s = static_cast<std::size_t>(t.begin); s < static_cast<std::size_t>(t.end); ++s) {
      if (encodes) {
        std::byte* const codes = at.out[0] + bytes * s;
        const Status done = encode(codec, {at.f32(0) + numbers * s, numbers}, {codes, used});
        WEFT_CHECK(done.ok(), "the codec rejects its input");
        std::fill(codes + used, codes + bytes, std::byte{0});
      } else {
        const Status done = decode(codec, {at.in[0] + bytes * s, used}, {at.result() + numbers * s, numbers});
        WEFT_CHECK(done.ok(), "the codec rejects its codes");
      }
    }
  });
}

std::unique_ptr<Kernel> make_own(const Call& at) {
  const plan::Operator* op = &at.node.op();
  const auto is_any = [&](auto... accessors) { return ((op == &accessors()) || ...); };
  if (is_any(ops::concat, ops::pad)) return make_concat_or_pad(at);
  if (is_any(ops::conv2d, ops::conv2d_input_gradient, ops::conv2d_weight_gradient))
    return make_convolution(at);
  if (is_any(ops::max_pool, ops::avg_pool, ops::max_pool_gradient, ops::avg_pool_gradient))
    return make_pool(at);
  if (is_any(ops::cross_entropy, ops::cross_entropy_gradient)) return make_cross_entropy(at);
  if (is_any(ops::attention_merge)) return make_attention_merge(at);
  if (is_any(ops::labelled)) return make_labelled(at);
  if (is_any(ops::gather)) return make_gather(at);
  if (is_any(ops::scatter_add)) return make_scatter_add(at);
  if (is_any(ops::top_k)) return make_top_k(at);
  if (is_any(ops::slot)) return make_slot(at);
  if (is_any(ops::sgd, ops::momentum, ops::adam, ops::adamw)) return make_optimizer(at);
  if (is_any(ops::dropout)) return make_dropout(at);
  if (is_any(ops::rotary)) return make_rotary(at);
  if (is_any(ops::recurrence)) return make_recurrence(at);
  if (is_any(ops::batch_norm)) return make_batch_norm(at);
  if (is_any(ops::encode, ops::decode)) return make_codec(at);
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> make_call_kernel(const program::Program& program, const program::Unit& unit,
                                         std::byte* memory) {
  const auto& what = std::get<program::OperatorCall>(unit.kernel);
  Call at{what, program.graph->view(what.node), {}, {}};
  for (const program::Place& place : what.operands) at.in.push_back(address(program, place, memory));
  for (const program::Place& place : what.results) at.out.push_back(address(program, place, memory));
  const plan::Operator& op = at.node.op();
  if (ops::is_pointwise(op) || &op == &ops::cast() || &op == &ops::constant() || &op == &ops::position())
    return make_element_kernel(program, what, memory);
  // A dedicated kernel computes a range of items; the definition computes all of them.
  if (!program::why_reference_op(at.node).empty()) return make_reference_kernel(program, what, memory);
  if (program::accepts_any_rows(at.node)) return make_attention_kernel(program, what, memory);
  if (&op == &ops::linear_cross_entropy()) return make_linear_cross_entropy(at, unit.items);
  auto own = make_own(at);
  WEFT_CHECK(own != nullptr);
  return own;
}

}  // namespace weft::device::cpu
