// weft/plan/ops/convolution.h -- the one loop nest behind conv2d and its two gradients.
//
//   y[b, o, p, t] += x[b, c, p*stride + r - padding, t*stride + q - padding_w] * w[o, i, r, q]
//
// with c = (group of o) * I + i. The forward pass adds into y, the gradients into x and w: all
// three visit the same triples of elements. Operands are identified by position, not by name.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {

struct Convolution {
  std::int64_t stride = 1, groups = 1;
  std::int64_t padding = 0, padding_w = 0;                      // above, left
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;  // of x
  std::int64_t outputs = 0, inputs = 0, rows = 0, columns = 0;  // of w; inputs are per group
  std::int64_t high = 0, wide = 0;                              // of y
  std::vector<plan::Dim> result;                                // dims of y: x's names, w's for the outputs

  // Multiply-adds with full windows, padding included, as is usual.
  double multiply_adds() const;
};

// The first four attributes of conv2d and its gradients.
constexpr plan::AttributeSpec kStrideSpec = {"stride", plan::AttributeKind::integer, false, 1};
constexpr plan::AttributeSpec kPaddingSpec = {"padding", plan::AttributeKind::integer, false, 0};
constexpr plan::AttributeSpec kGroupsSpec = {"groups", plan::AttributeKind::integer, false, 1};
constexpr plan::AttributeSpec kPaddingWSpec = {"padding_w", plan::AttributeKind::integer, false, -1};
// The last two attributes: the number of windows; 0: as many as fit (window.h).
constexpr plan::AttributeSpec kHighSpec = {"high", plan::AttributeKind::integer, false, 0};
constexpr plan::AttributeSpec kWideSpec = {"wide", plan::AttributeKind::integer, false, 0};
// A gradient also has its result's type, between them.
constexpr std::array<plan::AttributeSpec, 7> kGradientSpecs = {{kStrideSpec,
                                                                kPaddingSpec,
                                                                kGroupsSpec,
                                                                kPaddingWSpec,
                                                                {"type", plan::AttributeKind::type},
                                                                kHighSpec,
                                                                kWideSpec}};
constexpr std::size_t kGradientType = 4;

// The window attributes as stated in the node: a padding_w of -1 means the same as padding.
struct StatedWindow {
  std::int64_t stride, padding, groups, padding_w, high, wide;
};
StatedWindow window_of(const plan::NodeView& node);

// A convolution's attributes with the node's windows; those of a gradient if `type` is valid.
std::vector<plan::AttributeValue> attributes_like(const plan::NodeView& node, plan::TypeId type = {});

bool is_convolution(const plan::Operator& op);  // conv2d or a gradient of it

// Fails if shapes, groups or names do not match.
Result<Convolution> convolution(const plan::NodeView& node, const plan::Type& x, const plan::Type& w);

// The same for a node of a valid plan. REQUIRES: is_convolution(node.op())
Convolution convolution_of(const plan::NodeView& node);

// The work of a convolution or a gradient of one.
plan::Work work_of(const plan::NodeView& node, const Convolution& conv);

// Calls visit(offset in x, offset in w, offset in y) for every product.
template <class Visit>
void visit_products(const Convolution& conv, Visit visit) {
  const std::int64_t per_group = conv.outputs / conv.groups;
  for (std::int64_t b = 0; b < conv.batch; ++b)
    for (std::int64_t o = 0; o < conv.outputs; ++o)
      for (std::int64_t p = 0; p < conv.high; ++p)
        for (std::int64_t t = 0; t < conv.wide; ++t)
          for (std::int64_t i = 0; i < conv.inputs; ++i)
            for (std::int64_t r = 0; r < conv.rows; ++r)
              for (std::int64_t q = 0; q < conv.columns; ++q) {
                const std::int64_t h = p * conv.stride + r - conv.padding,
                                   w = t * conv.stride + q - conv.padding_w;
                if (h < 0 || h >= conv.height || w < 0 || w >= conv.width) continue;
                const std::int64_t c = o / per_group * conv.inputs + i;
                visit(((b * conv.channels + c) * conv.height + h) * conv.width + w,
                      ((o * conv.inputs + i) * conv.rows + r) * conv.columns + q,
                      ((b * conv.outputs + o) * conv.high + p) * conv.wide + t);
              }
}

}  // namespace weft::ops
