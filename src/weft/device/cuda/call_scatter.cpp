// Scatter-add: adds rows of x to the rows of a result that positions select, in one order per
// result row.
//
//   points   one thread per point: counts the points per row and records the first few that arrive
//   rows     one warp per result row, or part of one: sums its points from first to last. If a row has more
//            points than were recorded, the warp searches all points
//
// So every element of the result is written once, including rows that no position selects. With few
// points no list is needed.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/routing.h"

namespace weft::device::cuda {
namespace {

constexpr std::int64_t kNoted = 8;      // points recorded per row
constexpr std::int64_t kFewPoints = 8;  // up to here every element searches all points

// The loops of a scatter-add by role, with strides in positions, x and the result.
struct Loops {
  std::vector<IndexLoop> kept;     // in positions and the result: independent tables
  std::vector<IndexLoop> summed;   // only in positions: points
  std::vector<IndexLoop> inner;    // in x and the result: a row
  std::vector<IndexLoop> dropped;  // only in x: summed within a point
  std::vector<IndexLoop> rows;     // the result's rows, with a stride only there
  std::int64_t pack = 1;           // elements of the last inner loop moved together
};

std::int64_t count(const std::vector<IndexLoop>& loops) {
  std::int64_t points = 1;
  for (const IndexLoop& loop : loops) points *= loop.size;
  return points;
}

Loops find_loops(const Call& call) {
  const program::Place &positions = call.what.operands[0], &x = call.what.operands[1],
                       &y = call.what.results[0];
  Loops loops;
  const auto strides = [&](Symbol index) {
    return std::vector{positions.stride(index), x.stride(index), y.stride(index)};
  };
  for (const plan::Dim& dim : call.node.input_type(0).dims)
    (y.find(dim.index) != nullptr ? loops.kept : loops.summed).push_back({dim.size, strides(dim.index)});
  std::vector<plan::Dim> inner;
  for (const plan::Dim& dim : call.node.input_type(1).dims) {
    if (positions.find(dim.index) != nullptr) continue;
    if (y.find(dim.index) != nullptr)
      inner.push_back(dim);
    else
      loops.dropped.push_back({dim.size, strides(dim.index)});
  }
  std::ranges::stable_sort(inner, std::greater{}, [&](const plan::Dim& dim) { return y.stride(dim.index); });
  if (!inner.empty()) loops.pack = pack_along(call, 1, inner.back().index);
  for (const plan::Dim& dim : inner) loops.inner.push_back({dim.size, strides(dim.index)});
  loops.rows = row_parts(y, call.node.result_type(0), call.node.symbol(0));
  if (loops.pack > 1) {
    IndexLoop& last = loops.inner.back();
    last.size /= loops.pack;
    for (std::int64_t& stride : last.strides) stride *= loops.pack;
  }
  return loops;
}

// Adds x at offset `at` to `total`; "got" is one pack.
std::string added(const Loops& loops, std::string_view type, std::string_view at) {
  const std::string add = fmt::format(
      "{{ const Pack got = *reinterpret_cast<const Pack*>(b + {}); _Pragma(\"unroll\") for (int u = 0; u < "
      "{}; ++u) total[u] += float(got.x[u]); }}",
      loops.dropped.empty() ? at : "xm", loops.pack);
  if (loops.dropped.empty()) return add + "\n";
  return fmt::format("for ({0} m = 0; m < {1}; ++m) {{ {0} xm = {2}, pm = 0, ym = 0;\n{3}    {4} }}\n", type,
                     count(loops.dropped), at, walk("m", loops.dropped, {"pm", "xm", "ym"}, type), add);
}

std::string beginning(const Call& call, const Loops& loops, std::string_view type) {
  return fmt::format(
      "{}{}typedef {} I;\ntypedef weft_pack<{}, {}> Pack;\ntypedef weft_pack<{}, {}> Stored;\n", prelude(),
      pack_source(), type, type_name(call.what.operands[1].dtype), loops.pack,
      type_name(call.what.results[0].dtype), loops.pack);
}

std::string stored(const Call& call, const Loops& loops) {
  return fmt::format(
      "    Stored out;\n    _Pragma(\"unroll\") for (int u = 0; u < {}; ++u) out.x[u] = ({})(total[u]);\n"
      "    *reinterpret_cast<Stored*>(r0 + y0) = out;\n",
      loops.pack, type_name(call.what.results[0].dtype));
}

std::string zeros(const Loops& loops) {
  return fmt::format("    float total[{0}];\n    for (int u = 0; u < {0}; ++u) total[u] = 0.0f;\n",
                     loops.pack);
}

// One thread per pack of adjacent result elements, which searches every point.
std::string by_element(const Call& call, const Loops& loops, std::string_view type) {
  const std::int64_t rows = call.node.result_type(0).size_of(call.node.symbol(0));
  return beginning(call, loops, type) +
         fmt::format(
             "extern \"C\" __global__ void weft_call({0}long long begin, long long end) {{\n"
             "  const long long step = (long long)gridDim.x * blockDim.x;\n"
             "  for (long long n = begin + (long long)blockIdx.x * blockDim.x + threadIdx.x; n < end; n += "
             "step) {{\n"
             "    const I i = I(n), e = i % {1}, row = i / {1} % {2}, table = i / {1} / {2};\n"
             "    I p0 = 0, x0 = 0, y0 = 0;\n    {{\n{3}    }}\n    {{\n{4}    }}\n    {{\n{5}    }}\n",
             parameters(call), count(loops.inner), rows, walk("row", loops.rows, {"y0"}, "I"),
             walk("table", loops.kept, {"p0", "x0", "y0"}, "I"),
             walk("e", loops.inner, {"p0", "x0", "y0"}, "I")) +
         zeros(loops) +
         fmt::format(
             "    for (int point = 0; point < {0}; ++point) {{\n"
             "      I pq = p0, xq = x0, yq = 0;\n      {{\n{1}      }}\n      (void)yq;\n"
             "      if ((long long)a[pq] - {2}ll == (long long)row) {3}    }}\n",
             count(loops.summed), walk("point", loops.summed, {"pq", "xq", "yq"}, "I"), call.node.integer(3),
             added(loops, "I", "xq")) +
         stored(call, loops) + "  }\n}\n";
}

std::string by_warp(const Call& call, const Loops& loops, std::string_view type) {
  const std::int64_t rows = call.node.result_type(0).size_of(call.node.symbol(0)),
                     points = count(loops.summed), first = call.node.integer(3);
  const std::int64_t elements = count(loops.inner), turns = (elements + 31) / 32;
  const std::string at_point = walk("point", loops.summed, {"pq", "xq", "yq"}, "I");
  std::string text =
      beginning(call, loops, type) +
      fmt::format(
          "extern \"C\" __global__ void weft_points(const {0}* a, int* counts, int* noted, long long items) "
          "{{\n"
          "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
          "  if (i >= items) return;\n"
          "  const I table = I(i) / {1}, point = I(i) % {1};\n"
          "  I pq = 0, xq = 0, yq = 0;\n  {{\n{2}  }}\n  {{\n{3}  }}\n"
          "  const long long row = (long long)a[pq] - {4}ll;\n"
          "  if (row < 0 || row >= {5}ll) return;\n"
          "  const long long at = (long long)table * {5}ll + row;\n"
          "  const int which = atomicAdd(counts + at, 1);\n"
          "  if (which < {6}) noted[at * {6} + which] = int(point);\n}}\n",
          type_name(call.what.operands[0].dtype), points, walk("table", loops.kept, {"pq", "xq", "yq"}, "I"),
          at_point, first, rows, kNoted);
  text += fmt::format(
      "extern \"C\" __global__ __launch_bounds__(256) void weft_call({0}const int* counts, const int* noted, "
      "long long items) {{\n"
      "  const long long warp = (long long)blockIdx.x * 8 + threadIdx.x / 32;\n"
      "  if (warp >= items) return;\n"
      "  const int lane = threadIdx.x % 32;\n"
      "  const I at = I(warp / {1}), table = at / {2}, row = at % {2}, e = I(warp % {1}) * 32 + lane;\n"
      "  const bool inside = e < {3};\n"
      "  I p0 = 0, x0 = 0, y0 = 0;\n  {{\n{4}  }}\n  {{\n{5}  }}\n  {{\n{6}  }}\n",
      parameters(call), turns, rows, elements, walk("row", loops.rows, {"y0"}, "I"),
      walk("table", loops.kept, {"p0", "x0", "y0"}, "I"), walk("e", loops.inner, {"p0", "x0", "y0"}, "I"));
  text += zeros(loops);
  // In point order, whatever the order in which they were recorded.
  text += fmt::format(
      "  const int all = counts[at];\n"
      "  if (all <= {0}) {{\n"
      "    int last = -1;\n"
      "    for (int k = 0; k < all; ++k) {{\n"
      "      int next = 0x7fffffff;\n"
      "      for (int other = 0; other < all; ++other) {{\n"
      "        const int candidate = noted[(long long)at * {0} + other];\n"
      "        if (candidate > last && candidate < next) next = candidate;\n      }}\n"
      "      last = next;\n"
      "      const I point = next;\n"
      "      I pq = p0, xq = x0, yq = 0;\n      {{\n{1}      }}\n      (void)pq; (void)yq;\n"
      "      if (inside) {2}    }}\n  }} else {{\n",
      kNoted, at_point, added(loops, "I", "xq"));
  // Fetches eight at a time before adding them.
  constexpr int kTogether = 8;
  text += fmt::format(
      "    for (I base = 0; base < {0}; base += 32) {{\n"
      "      const I point = base + lane < {0} ? base + lane : 0;\n"
      "      I pq = p0, xq = x0, yq = 0;\n      {{\n{1}      }}\n      (void)yq;\n"
      "      const bool mine = base + lane < {0} && (long long)a[pq] - {2}ll == (long long)row;\n"
      "      unsigned votes = __ballot_sync(0xffffffffu, mine);\n",
      points, at_point, first);
  // Offset in x of another lane's point, for this lane's element.
  const std::string theirs = "x0 + __shfl_sync(0xffffffffu, xq - x0, __ffs(votes) - 1)";
  if (loops.dropped.empty())
    text += fmt::format(
        "      while (votes != 0) {{\n"
        "        Pack got[{0}];\n        int fetched = 0;\n"
        "        _Pragma(\"unroll\") for (int g = 0; g < {0}; ++g) {{\n"
        "          if (votes == 0) continue;\n"
        "          const I from = {1};\n"
        "          if (inside) got[g] = *reinterpret_cast<const Pack*>(b + from);\n"
        "          ++fetched;\n          votes &= votes - 1;\n        }}\n"
        "        _Pragma(\"unroll\") for (int g = 0; g < {0}; ++g)\n"
        "          if (inside && g < fetched)\n"
        "            _Pragma(\"unroll\") for (int u = 0; u < {2}; ++u) total[u] += float(got[g].x[u]);\n"
        "      }}\n",
        kTogether, theirs, loops.pack);
  else
    text += fmt::format(
        "      for (; votes != 0; votes &= votes - 1) {{\n        const I from = {};\n"
        "        if (inside) {}      }}\n",
        theirs, added(loops, "I", "from"));
  return text + "    }\n  }\n  if (!inside) return;\n" + stored(call, loops) + "}\n";
}

class ScatterKernel final : public Kernel {
 public:
  struct Sizes {
    std::int64_t points = 0, rows = 0, warps = 0;  // over all tables
  };
  ScatterKernel(Handle points, Handle rows, std::vector<DevicePointer> pointers, const Sizes& sizes)
      : points_(points), rows_(rows), pointers_(std::move(pointers)), sizes_(sizes) {}

  std::int64_t scratch_bytes() const override { return counts_bytes() + sizes_.rows * kNoted * 4; }

  Code launch(const LaunchContext& at, const program::Task&) const override {
    if (sizes_.warps == 0) return 0;
    const DevicePointer counts = at.scratch, noted = counts + static_cast<DevicePointer>(counts_bytes());
    if (const Code code =
            at.gpu.driver().fill(counts, 0, static_cast<std::size_t>(counts_bytes()), at.stream);
        code != 0)
      return code;
    if (sizes_.points > 0) {
      Parameters points;
      points.pointer(pointers_[0]).pointer(counts).pointer(noted).whole(sizes_.points);
      if (const Code code = points.launch(at, points_, {blocks_for(sizes_.points, 256), 1}, {256, 1});
          code != 0)
        return code;
    }
    Parameters rows;
    for (const DevicePointer value : pointers_) rows.pointer(value);
    rows.pointer(counts).pointer(noted).whole(sizes_.warps);
    return rows.launch(at, rows_, {blocks_for(sizes_.warps, 8), 1}, {256, 1});
  }

 private:
  std::int64_t counts_bytes() const { return (sizes_.rows * 4 + 255) / 256 * 256; }

  const Handle points_, rows_;
  const std::vector<DevicePointer> pointers_;
  const Sizes sizes_;
};

}  // namespace

Made make_scatter(const Call& call) {
  if (&call.node.op() != &ops::scatter_add()) return {nullptr};
  const Loops loops = find_loops(call);
  const std::string_view type = offset_type(call);
  const std::int64_t points = count(loops.summed), tables = count(loops.kept), elements = count(loops.inner),
                     rows = tables * call.node.result_type(0).size_of(call.node.symbol(0));
  if (rows * elements == 0) return elements_kernel(call, over_elements(call, ""), 0);
  if (points <= kFewPoints) return elements_kernel(call, by_element(call, loops, type), rows * elements);
  const std::string text = by_warp(call, loops, type);
  WEFT_TRY(listing, call.gpu.function(text, "weft_points"));
  WEFT_TRY(adding, call.gpu.function(text, "weft_call"));
  return std::unique_ptr<Kernel>(std::make_unique<ScatterKernel>(
      listing, adding, call.pointers(),
      ScatterKernel::Sizes{tables * points, rows, rows * ((elements + 31) / 32)}));
}

}  // namespace weft::device::cuda
