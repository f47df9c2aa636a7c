#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "weft/device/cuda/attention_source.h"
#include "weft/device/cuda/call.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/sequences.h"

namespace weft::device::cuda {
namespace {

using program::Place;

struct Named {
  std::string_view offset, step;  // names in the source
  const Place* place;
  const plan::Dim* along;
};

// Offsets of a head's rows in each operand and result.
std::string heads_source(std::span<const Named> places, std::span<const plan::Dim> heads) {
  std::string text, rest = "long long rest = head; (void)rest;";
  for (const Named& named : places) text += fmt::format("long long {0} = 0; (void){0}; ", named.offset);
  text += "{ " + rest;
  for (std::size_t i = heads.size(); i-- > 0;) {
    text += fmt::format(" {{ const long long n = rest % {0}ll; rest /= {0}ll; (void)n;", heads[i].size);
    for (const Named& named : places)
      if (const std::int64_t stride = named.place->stride(heads[i].index); stride != 0)
        text += fmt::format(" {} += n * {}ll;", named.offset, stride);
    text += " }";
  }
  return text + " }";
}

// An operand as a TMA tensor: the rows of a head, and up to three head indices.
struct TmaTensor {
  std::string_view name;  // "q": its coordinates are q_1, q_2, q_3
  const Place* place;     // valid while the kernel is made, like `along`
  const plan::Dim* along;
  std::int64_t width = 0;
  DevicePointer at = 0;
  plan::DType dtype = plan::DType::bf16;
  std::int64_t box_rows = 0;
  struct Axis {
    std::int64_t size = 1, stride = 8;  // in elements
  };
  std::array<Axis, 4> axes = {};  // rows first

  // TMA supports positive strides that are multiples of 16 bytes.
  static bool has(std::int64_t size, std::int64_t stride) {
    return size == 1 || (stride > 0 && stride % 8 == 0);
  }

  Code describe(const Driver& driver, TensorMap& map) const {
    constexpr int kF16 = 6, kBf16 = 9, kSwizzle128 = 3, kAhead128 = 2;
    std::array<std::uint64_t, 5> sizes = {static_cast<std::uint64_t>(width)};
    std::array<std::uint64_t, 4> strides = {};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      sizes[i + 1] = static_cast<std::uint64_t>(axes[i].size);
      strides[i] = static_cast<std::uint64_t>(axes[i].size == 1 ? 16 : axes[i].stride * 2);
    }
    const std::array<std::uint32_t, 5> box = {64, static_cast<std::uint32_t>(box_rows), 1, 1, 1},
                                       steps = {1, 1, 1, 1, 1};
    return driver.describe_tensor(&map, dtype == plan::DType::bf16 ? kBf16 : kF16, 5,
                                  reinterpret_cast<void*>(at), sizes.data(), strides.data(), box.data(),
                                  steps.data(), 0, kSwizzle128, kAhead128, 0);
  }
};

// The TMA coordinates of a head's rows in each tensor. Nothing if a tensor has too many indices, or
// strides that TMA does not support.
std::optional<std::string> coordinates_source(std::span<TmaTensor> all, std::span<const plan::Dim> heads) {
  std::string text, body = "{ long long rest = head; (void)rest;";
  std::vector<std::size_t> used(all.size(), 0);
  for (TmaTensor& boxed : all) {
    text += fmt::format("int {0}_1 = 0, {0}_2 = 0, {0}_3 = 0; (void){0}_1; (void){0}_2; (void){0}_3; ",
                        boxed.name);
    boxed.axes[0] = {boxed.along->size, boxed.place->stride(boxed.along->index)};
    if (!TmaTensor::has(boxed.axes[0].size, boxed.axes[0].stride)) return {};
  }
  for (std::size_t i = heads.size(); i-- > 0;) {
    body += fmt::format(" {{ const int n = int(rest % {0}ll); rest /= {0}ll; (void)n;", heads[i].size);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::int64_t stride = all[k].place->stride(heads[i].index);
      if (stride == 0 || heads[i].size == 1) continue;
      if (++used[k] >= all[k].axes.size() || !TmaTensor::has(heads[i].size, stride)) return {};
      all[k].axes[used[k]] = {heads[i].size, stride};
      body += fmt::format(" {}_{} = n;", all[k].name, used[k]);
    }
    body += " }";
  }
  return text + body + " }";
}

class AttentionKernel final : public Kernel {
 public:
  struct Part {
    Handle function = nullptr;
    std::int64_t blocks = 0;
    int threads = 256;
    std::int64_t shared_bytes = 0;
    std::vector<DevicePointer> pointers;  // 0: the scratch memory
    std::vector<TmaTensor> tensors = {};
    bool goes_on = false;  // persistent blocks: no more than run at once
  };

  AttentionKernel(std::vector<Part> parts, std::int64_t scratch)
      : parts_(std::move(parts)), scratch_(scratch) {}

  std::int64_t scratch_bytes() const override { return scratch_; }

  Code launch(const LaunchContext& at, const program::Task&) const override {
    for (const Part& part : parts_) {
      if (part.blocks == 0) continue;
      Parameters parameters;
      for (const TmaTensor& boxed : part.tensors) {
        TensorMap map;
        if (const Code code = boxed.describe(at.gpu.driver(), map); code != 0) return code;
        parameters.tensor(map);
      }
      const std::int64_t blocks =
          part.goes_on ? std::min<std::int64_t>(part.blocks, at.gpu.processors() - at.room) : part.blocks;
      for (const DevicePointer pointer : part.pointers)
        parameters.pointer(pointer != 0 ? pointer : at.scratch);
      if (const Code code = parameters.launch(at, part.function, {static_cast<unsigned>(blocks), 1},
                                              {static_cast<unsigned>(part.threads), 1}, part.shared_bytes);
          code != 0)
        return code;
    }
    return 0;
  }

 private:
  const std::vector<Part> parts_;
  const std::int64_t scratch_;
};

}  // namespace

Made make_attention(const Call& call) {
  const plan::NodeView& node = call.node;
  const bool gradient = &node.op() == &ops::attention_gradient();
  if (!gradient && &node.op() != &ops::attention()) return {nullptr};
  const ops::AttentionGeometry of = ops::attending(node);
  const std::vector<Place>&in = call.what.operands, &out = call.what.results;
  const std::size_t mask = gradient ? 6 : 3;

  AttentionShape shape;
  shape.dtype = node.input_type(0).dtype;
  shape.queries = of.along.size;
  shape.keys = of.over.size;
  shape.inner = ops::points_of(of.inner);
  shape.values = ops::points_of(of.values);
  shape.causal = of.causal;
  shape.windowed = of.has_window();
  shape.masked = in.size() > mask;
  shape.begin = of.begin;
  constexpr double kFar = 1e15;
  shape.reach = shape.windowed ? static_cast<std::int64_t>(std::ceil(std::clamp(of.window, -kFar, kFar))) : 0;
  shape.factor = of.scale / of.divisor;
  if (shape.queries == 0 || shape.keys == 0 || shape.inner == 0 || shape.values == 0) return {nullptr};
  if (std::max(shape.inner, shape.values) > kWidestHead)
    return user_error(fmt::format("attention on the GPU supports heads up to {} wide, found {} and {}",
                                  kWidestHead, shape.inner, shape.values),
                      "SET rules = false to keep it as products and softmax");
  // Heads that share keys and values are consecutive.
  ops::DimList heads;
  for (const bool apart : {true, false})
    for (const plan::Dim& dim : of.rows) {
      const bool in_keys = node.input_type(1).has(dim.index), in_values = node.input_type(2).has(dim.index);
      if (gradient && in_keys != in_values)
        return user_error(
            "the gradient of attention on the GPU does not support heads that share keys but not values",
            "SET rules = false to keep it as products and softmax");
      if (dim.index == of.along.index || (in_keys && in_values) != apart) continue;
      heads.push_back(dim);
      shape.heads *= dim.size;
      if (!apart) shape.sharing *= dim.size;
    }
  std::vector<Named> places = {{"at_q", "kQ", &in[0], &of.along},
                               {"at_k", "kK", &in[1], &of.over},
                               {"at_v", "kV", &in[2], &of.over},
                               {"at_y", "kY", gradient ? &in[3] : &out[0], &of.along},
                               {"at_sum", "kSum", gradient ? &in[4] : &out[1], &of.along}};
  if (gradient) {
    places.push_back({"at_dy", "kDY", &in[5], &of.along});
    places.push_back({"at_dq", "kDQ", &out[0], &of.along});
    places.push_back({"at_dk", "kDK", &out[1], &of.over});
    places.push_back({"at_dv", "kDV", &out[2], &of.over});
  }
  // 16 bytes are eight narrow elements.
  shape.is_aligned = shape.inner % 8 == 0 && shape.values % 8 == 0;
  for (const Named& named : places) {
    shape.strides_source +=
        fmt::format("constexpr long long {} = {}ll;\n", named.step, named.place->stride(named.along->index));
    if (named.step == "kSum") continue;
    shape.is_aligned &= named.place->offset % 8 == 0 && named.place->stride(named.along->index) % 8 == 0;
    for (const plan::Dim& dim : heads) shape.is_aligned &= named.place->stride(dim.index) % 8 == 0;
  }
  if (shape.masked) {
    places.push_back({"at_mask", "kMaskQ", &in[mask], &of.along});
    shape.strides_source += fmt::format("constexpr long long kMaskQ = {}ll, kMaskK = {}ll;\n",
                                        in[mask].stride(of.along.index), in[mask].stride(of.over.index));
  }
  shape.heads_source = heads_source(places, heads);
  std::vector<TmaTensor> boxed = {{"q", &in[0], &of.along, shape.inner, call.in[0], shape.dtype},
                                  {"k", &in[1], &of.over, shape.inner, call.in[1], shape.dtype},
                                  {"v", &in[2], &of.over, shape.values, call.in[2], shape.dtype}};
  if (gradient) boxed.push_back({"dy", &in[5], &of.along, shape.values, call.in[5], shape.dtype});
  if (call.gpu.hopper() && supports_hopper(shape, gradient)) {
    const auto corners = coordinates_source(boxed, heads);
    shape.hopper = corners.has_value();
    shape.coordinates_source = corners.value_or("");
  }

  const std::string text = gradient ? gradient_source(shape) : forward_source(shape);
  std::vector<AttentionKernel::Part> parts;
  const auto add = [&](const char* name, const AttentionTiles& tiles, std::int64_t blocks,
                       std::vector<DevicePointer> pointers) -> Status {
    WEFT_TRY(function, call.gpu.function(text, name, tiles.shared_bytes));
    parts.push_back({function, blocks, tiles.threads, tiles.shared_bytes, std::move(pointers)});
    return {};
  };
  const auto cut = [](std::int64_t whole, std::int64_t tile) { return (whole + tile - 1) / tile; };
  std::vector<DevicePointer> from(call.in.begin(), call.in.begin() + 3);
  const auto box = [&](const AttentionTiles& tiles) {
    for (TmaTensor& one : boxed) one.box_rows = one.along == &of.over ? tiles.keys : tiles.queries;
    parts.back().tensors = boxed;
  };
  if (shape.hopper && !gradient) {
    const AttentionTiles tiles = forward_tiles(shape);
    std::vector<DevicePointer> to(call.out.begin(), call.out.end());
    if (shape.masked) to.insert(to.begin(), call.in[mask]);
    WEFT_TRY_STATUS(
        add("weft_attend_hopper", tiles, cut(shape.queries, tiles.queries) * shape.heads, std::move(to)));
    box(tiles);
    parts.back().goes_on = true;
    return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(std::move(parts), 0));
  }
  if (shape.hopper) {
    const AttentionTiles tiles = dk_dv_tiles(shape);
    const HopperScratch room = hopper_scratch(shape);
    WEFT_TRY_STATUS(
        add("weft_dots_hopper", {.threads = 256}, room.blocks, {call.in[3], call.in[5], call.in[4], 0}));
    std::vector<DevicePointer> to = {0, call.out[1], call.out[2]};
    if (shape.masked) to.insert(to.begin(), call.in[mask]);
    WEFT_TRY_STATUS(add("weft_attention_gradient_hopper", tiles,
                        cut(shape.keys, tiles.keys) * (shape.heads / shape.sharing), std::move(to)));
    box(tiles);
    WEFT_TRY_STATUS(
        add("weft_convert_dq_hopper", {.threads = 256}, room.rows / tiles.queries, {0, call.out[0]}));
    return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(std::move(parts), room.bytes));
  }
  if (!gradient) {
    if (shape.masked) from.push_back(call.in[mask]);
    from.insert(from.end(), call.out.begin(), call.out.end());
    const AttentionTiles tiles = forward_tiles(shape);
    WEFT_TRY_STATUS(add("weft_attend", tiles, cut(shape.queries, tiles.queries) * shape.heads, from));
    return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(std::move(parts), 0));
  }
  from.insert(from.end(), {call.in[4], call.in[5]});
  if (shape.masked) from.push_back(call.in[mask]);
  from.push_back(0);
  std::vector<DevicePointer> to_queries = from, to_keys = from;
  to_queries.push_back(call.out[0]);
  to_keys.insert(to_keys.end(), {call.out[1], call.out[2]});
  const AttentionTiles by_query = dq_tiles(shape), by_key = dk_dv_tiles(shape);
  const std::int64_t rows = shape.heads * shape.queries;
  WEFT_TRY_STATUS(add("weft_dots", {.threads = 256}, cut(rows, 8), {call.in[3], call.in[5], 0}));
  WEFT_TRY_STATUS(add("weft_attention_dk_dv", by_key,
                      cut(shape.keys, by_key.keys) * (shape.heads / shape.sharing), std::move(to_keys)));
  WEFT_TRY_STATUS(add("weft_attention_dq", by_query, cut(shape.queries, by_query.queries) * shape.heads,
                      std::move(to_queries)));
  return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(std::move(parts), rows * 4));
}

}  // namespace weft::device::cuda
