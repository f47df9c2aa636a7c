#include "weft/plan/ops/sliding.h"

#include <algorithm>

#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/pooling.h"

namespace weft::ops {
namespace {

using plan::NodeView;
using plan::Share;

// How an operator's windows slide: what a step is, and what it sees of each operand.
struct Use {
  const plan::Operator* op;
  bool by_window;
  plan::Role role;
  std::vector<Sees> operands;
};

const Use* find_use(const plan::Operator& op) {
  using plan::Role;
  static const std::vector<Use> kUses = {
      {&conv2d(), true, Role::parallel, {Sees::elements, Sees::nothing}},
      {&conv2d_weight_gradient(), true, Role::reduced, {Sees::same, Sees::elements}},
      {&conv2d_input_gradient(), false, Role::parallel, {Sees::windows, Sees::nothing}},
      {&max_pool(), true, Role::parallel, {Sees::elements}},
      {&avg_pool(), true, Role::parallel, {Sees::elements}},
      {&max_pool_gradient(), false, Role::parallel, {Sees::windows, Sees::neighbours}},
      {&avg_pool_gradient(), false, Role::parallel, {Sees::windows}}};
  const auto found = std::ranges::find(kUses, &op, &Use::op);
  return found == kUses.end() ? nullptr : &*found;
}

std::size_t attribute(const plan::Operator& op, std::string_view name) {
  const auto found = std::ranges::find(op.attributes(), name, &plan::AttributeSpec::name);
  WEFT_CHECK(found != op.attributes().end(), name);
  return static_cast<std::size_t>(found - op.attributes().begin());
}

// The windows along rows and along columns.
struct Geometry {
  Sliding rows, columns;
  Symbol row_index, column_index;
};

Geometry geometry_of(const NodeView& node) {
  const plan::Operator& op = node.op();
  Geometry found;
  if (is_convolution(op)) {
    const Convolution conv = convolution_of(node);
    found.rows = {.window = conv.rows,
                  .stride = conv.stride,
                  .padding = conv.padding,
                  .elements = conv.height,
                  .windows = conv.high,
                  .operands = {}};
    found.columns = {.window = conv.columns,
                     .stride = conv.stride,
                     .padding = conv.padding_w,
                     .elements = conv.width,
                     .windows = conv.wide,
                     .operands = {}};
    found.row_index = conv.result[2].index;  // named as in x
    found.column_index = conv.result[3].index;
    return found;
  }
  const bool forward = &op == &max_pool() || &op == &avg_pool();
  const plan::Type x = forward ? node.input_type(0) : node.result_type(0);
  const Pooling pool = *pooling(node, x);
  found.rows = {.window = pool.size,
                .stride = pool.stride,
                .padding = pool.padding,
                .elements = pool.height,
                .windows = pool.high,
                .operands = {}};
  found.columns = {.window = pool.size,
                   .stride = pool.stride,
                   .padding = pool.padding_w,
                   .elements = pool.width,
                   .windows = pool.wide,
                   .operands = {}};
  found.row_index = x.dims[x.rank() - 2].index;
  found.column_index = x.dims[x.rank() - 1].index;
  return found;
}

void add_sliding(const NodeView& node, const plan::Signature& signature, const Use& use, Symbol index,
                 Sliding sliding, std::string_view padding, std::string_view count,
                 std::vector<Sliding>& found) {
  const auto loop = std::ranges::find(signature.loops, index, &plan::Loop::index);
  if (loop == signature.loops.end()) return;
  sliding.loop = static_cast<std::size_t>(loop - signature.loops.begin());
  // Windows with only padding, or gaps between a pool's windows, would see nothing of a block.
  const bool has_blind =
      sliding.padding >= sliding.window || (!is_convolution(node.op()) && sliding.stride > sliding.window);
  sliding.role = has_blind ? plan::Role::whole : use.role;
  sliding.by_window = use.by_window;
  sliding.operands = use.operands;
  sliding.padding_attribute = attribute(node.op(), padding);
  sliding.count_attribute = attribute(node.op(), count);
  if (node.integer(sliding.count_attribute) == 0) found.push_back(std::move(sliding));
}

std::vector<Sliding> sliding_loops(const NodeView& node, const plan::Signature& signature) {
  std::vector<Sliding> found;
  const Use* use = find_use(node.op());
  if (use == nullptr) return found;
  const Geometry geometry = geometry_of(node);
  add_sliding(node, signature, *use, geometry.row_index, geometry.rows, "padding", "high", found);
  add_sliding(node, signature, *use, geometry.column_index, geometry.columns, "padding_w", "wide", found);
  return found;
}

Share clipped(std::int64_t begin, std::int64_t end, std::int64_t size) {
  begin = std::clamp<std::int64_t>(begin, 0, size);
  return {begin, std::max<std::int64_t>(std::min(end, size) - begin, 0)};
}

}  // namespace

Share Sliding::seen(Sees sees, Share block) const {
  if (block.size == 0) return {block.begin, 0};
  switch (sees) {
    case Sees::nothing:
    case Sees::same: return block;
    case Sees::elements:
      return clipped(block.begin * stride - padding, (block.end() - 1) * stride - padding + window, elements);
    case Sees::windows: {
      // If windows leave gaps, include the window before the gap. The first window never begins
      // after the first element, so the border before the block is never negative.
      const std::int64_t begin = block.begin + padding,
                         reaching = std::max<std::int64_t>(begin - window + 1, 0);
      const std::int64_t first = std::min((reaching + stride - 1) / stride, begin / stride);
      return clipped(first, (block.end() - 1 + padding) / stride + 1, windows);
    }
    case Sees::neighbours: {
      const Share around = seen(Sees::elements, seen(Sees::windows, block));
      if (around.size == 0) return block;
      const std::int64_t begin = std::min(around.begin, block.begin);
      return {begin, std::max(around.end(), block.end()) - begin};
    }
  }
  return block;
}

Borders Sliding::borders(std::size_t operand, std::int32_t ranks) const {
  Borders widest;
  const Sees sees = operands[operand];
  if (sees == Sees::nothing || sees == Sees::same) return widest;
  const std::int64_t size = sees == Sees::windows ? windows : elements;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const Share needed = seen(sees, plan::share_of(steps(), ranks, rank));
    if (needed.size == 0) continue;
    const Share block = plan::share_of(size, ranks, rank);
    widest.before = std::max(widest.before, block.begin - needed.begin);
    widest.after = std::max(widest.after, needed.end() - block.end());
  }
  return widest;
}

std::vector<Sliding> sliding_loops(const NodeView& node) {
  if (find_use(node.op()) == nullptr) return {};
  return sliding_loops(node, node.op().signature(node));
}

plan::Signature signature_with_borders(const NodeView& node) {
  plan::Signature signature = node.op().signature(node);
  for (const Sliding& sliding : sliding_loops(node, signature)) {
    plan::Loop& loop = signature.loops[sliding.loop];
    loop.role = sliding.role;
    loop.monoid = sliding.role == plan::Role::reduced ? plan::Monoid::sum : plan::Monoid::none;
    loop.size = sliding.steps();
  }
  return signature;
}

std::optional<plan::AxisLayout> operand_layout(const NodeView& node, const plan::Signature& signature,
                                               std::size_t loop, std::size_t i, std::int32_t ranks) {
  const int dim = signature.loops[loop].operands[i];
  if (dim < 0) return plan::AxisLayout::replicated();
  const Symbol index = node.input_type(i).dims[static_cast<std::size_t>(dim)].index;
  for (const Sliding& sliding : sliding_loops(node, signature)) {
    if (sliding.loop != loop) continue;
    const Borders borders = sliding.borders(i, ranks);
    if (std::max(borders.before, borders.after) > plan::kMaxBorder) return std::nullopt;
    return plan::AxisLayout::sliced(index, static_cast<std::uint16_t>(borders.before),
                                    static_cast<std::uint16_t>(borders.after));
  }
  return plan::AxisLayout::sliced(index);
}

}  // namespace weft::ops
