// 1-dimensional and transposed convolutions, in terms of conv2d and its gradient.
#include <fmt/format.h>

#include "weft/language/binder.h"
#include "weft/plan/ops/build.h"

namespace weft::language {

using plan::Dim;
using plan::ValueId;

Result<ops::ConvWindow> Binder::conv_window(const syntax::Call& call, SelectScope& scope) {
  WEFT_TRY(stride, whole_argument(call, "stride", 1, 1, scope));
  WEFT_TRY(padding, whole_argument(call, "padding", 0, 0, scope));
  WEFT_TRY(groups, whole_argument(call, "groups", 1, 1, scope));
  WEFT_TRY(padding_w, whole_argument(call, "padding_w", 0, padding, scope));
  return ops::ConvWindow{.stride = stride, .padding = padding, .groups = groups, .padding_w = padding_w};
}

// x[b, c, s] with w[o, i, r] as an image of height 1: [b, c, line, s] with [o, i, line', r].
Result<ValueId> Binder::convolve_line(ValueId x, ValueId w, const ops::ConvWindow& window, Span span) {
  const std::array<ValueId, 2> operands = {x, w};
  if (graph_.type(x).rank() != 3 || graph_.type(w).rank() != 3)
    return user_error(fmt::format("conv1d needs a line [b, c, s] and a weight [o, i, r], found {} and {}",
                                  indices_text(graph_.type(x).dims), indices_text(graph_.type(w).dims)),
                      "reorder them with GROUP BY in a WITH entry first", span);
  std::array<ValueId, 2> flat;
  std::array<Symbol, 2> high;
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim channels = graph_.type(operands[i]).dims[1];
    high[i] = new_index(i == 0 ? "line" : "line_of_weight", operands);
    const std::array<Dim, 2> into = {channels, Dim{high[i], 1}};
    WEFT_TRY(image, at(span, ops::add_split(graph_, operands[i], channels.index, into)));
    flat[i] = image;
  }
  const ops::ConvWindow along{
      .stride = window.stride, .padding = 0, .groups = window.groups, .padding_w = window.padding};
  WEFT_TRY(y, at(span, ops::add_conv2d(graph_, flat[0], flat[1], along)));
  const std::array<Symbol, 2> parts = {graph_.type(y).dims[1].index, high[0]};
  return at(span, ops::add_merge(graph_, y, parts, parts[0]));
}

Result<Bound> Binder::bind_line_or_transpose(const syntax::Call& call, const FunctionSpec& spec, ValueId x,
                                             SelectScope& scope) {
  WEFT_TRY(weight, bind_expression(*call.arguments[1].value, scope));
  WEFT_TRY(w, as_real(weight));
  WEFT_TRY(window, conv_window(call, scope));
  if (spec.name == "conv1d") {
    WEFT_TRY(y, convolve_line(x, w, window, call.span));
    return Bound::of(y);
  }
  WEFT_TRY(extra, whole_argument(call, "extra", 0, 0, scope));
  WEFT_TRY(y, at(call.span, ops::add_conv2d_transpose(graph_, x, w, window, extra)));
  return Bound::of(y);
}

}  // namespace weft::language
