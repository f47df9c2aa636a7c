#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

// A thread an element of the result; a position outside the table gives zero.
Made make_gather(const Call& call) {
  const plan::Type positions = call.node.input_type(0), table = call.node.input_type(1),
                   y = call.node.result_type(0);
  const Symbol along = call.node.symbol(0);
  std::vector<Walked> loops;
  for (const plan::Dim& dim : y.dims)
    loops.push_back(
        {dim.size,
         {plain_stride(positions, dim.index), dim.index == along ? 0 : plain_stride(table, dim.index)}});
  const std::string body =
      "    long long p = 0, t = 0;\n" + walk("i", loops, {"p", "t"}) +
      fmt::format(
          "    const long long row = (long long)a[p] - {}ll;\n"
          "    r0[i] = row >= 0 && row < {}ll ? b[t + row * {}ll] : ({})(0);\n",
          call.node.integer(1), table.size_of(along), plain_stride(table, along), type_name(y.dtype));
  return elements_kernel(call, over_elements(call, body), y.elements());
}

// Points that are summed come in one order: a block takes the first point of each row that it finds, and adds
// all later ones of the same row, at 256 places of it. Rows that nobody names are zero.
Made make_scatter(const Call& call) {
  const plan::Type positions = call.node.input_type(0), x = call.node.input_type(1),
                   y = call.node.result_type(0);
  const Symbol along = call.node.symbol(0);
  const std::int64_t first = call.node.integer(3), rows = y.size_of(along), row = plain_stride(y, along);
  // Loops of the positions that y lacks are summed; the others are tables side by side.
  // Indices of x alone are summed too, inside of a point.
  std::vector<Walked> summed, kept, inner, dropped;
  std::int64_t points = 1, tables = 1, elements = 1, each = 1;
  for (const plan::Dim& dim : positions.dims) {
    Walked loop{dim.size,
                {plain_stride(positions, dim.index), plain_stride(x, dim.index), plain_stride(y, dim.index)}};
    if (y.has(dim.index))
      tables *= dim.size, kept.push_back(loop);
    else
      points *= dim.size, summed.push_back(loop);
  }
  for (const plan::Dim& dim : x.dims) {
    if (positions.has(dim.index)) continue;
    if (!y.has(dim.index)) {
      dropped.push_back({dim.size, {plain_stride(x, dim.index)}});
      each *= dim.size;
      continue;
    }
    inner.push_back({dim.size, {0, plain_stride(x, dim.index), plain_stride(y, dim.index)}});
    elements *= dim.size;
  }
  const std::int64_t turns = std::max<std::int64_t>((elements + 255) / 256, 1);
  std::string body = fmt::format(
      "    const long long e0 = i % {1}ll * 256, table = i / {1}ll / {0}ll, point = i / {1}ll % {0}ll;\n"
      "    long long p0 = 0, x0 = 0, y0 = 0;\n",
      points, turns);
  body += "    {\n" + walk("table", kept, {"p0", "x0", "y0"}) + "    }\n";
  body += "    long long p1 = p0;\n    {\n    long long xs = 0, ys = 0;\n" +
          walk("point", summed, {"p1", "xs", "ys"}) + "    (void)xs; (void)ys; }\n";
  body += fmt::format(
      "    const long long row = (long long)a[p1] - {}ll;\n"
      "    if (row < 0 || row >= {}ll) continue;\n"
      "    int earlier = 0;\n"
      "    for (long long q = threadIdx.x; q < point && !earlier; q += 256) {{\n"
      "      long long at = p0, xs = 0, ys = 0;\n{}"
      "      (void)xs; (void)ys;\n"
      "      earlier = (long long)a[at] - {}ll == row;\n    }}\n"
      "    if (__syncthreads_or(earlier)) continue;\n",
      first, rows, walk("q", summed, {"at", "xs", "ys"}), first);
  // The points in turns of 256 that are looked at together.
  body += fmt::format(
      "    __shared__ long long found[256];\n    __shared__ int counts[8];\n"
      "    {{\n"
      "      const long long e = e0 + threadIdx.x;\n"
      "      long long xe = x0, ye = y0 + row * {1}ll, pe = 0;\n"
      "      {{\n{2}      }}\n      (void)pe;\n"
      "      float total = 0.0f;\n"
      "      for (long long base = point; base < {3}ll; base += 256) {{\n"
      "        const long long q = base + threadIdx.x;\n"
      "        long long at = p0, xq = 0, ys = 0;\n"
      "        {{\n{4}        }}\n        (void)ys;\n"
      "        const bool mine = q < {3}ll && (long long)a[q < {3}ll ? at : p1] - {5}ll == row;\n"
      "        __syncthreads();\n"
      "        const unsigned votes = __ballot_sync(0xffffffffu, mine), lane = threadIdx.x % 32;\n"
      "        if (lane == 0) counts[threadIdx.x / 32] = __popc(votes);\n"
      "        __syncthreads();\n"
      "        int before = 0, all = 0;\n"
      "        for (int w = 0; w < 8; ++w) {{\n"
      "          if (w < int(threadIdx.x / 32)) before += counts[w];\n"
      "          all += counts[w];\n"
      "        }}\n"
      "        if (mine) found[before + __popc(votes & ((1u << lane) - 1))] = xq;\n"
      "        __syncthreads();\n"
      "        for (int k = 0; k < all; ++k)\n"
      "          if (e < {0}ll) {6}\n"
      "      }}\n"
      "      if (e < {0}ll) r0[ye] = total;\n    }}\n",
      elements, row, walk("e", inner, {"pe", "xe", "ye"}), points, walk("q", summed, {"at", "xq", "ys"}),
      first,
      dropped.empty()
          ? std::string("total += b[xe + found[k]];")
          : fmt::format(
                "for (long long m = 0; m < {}ll; ++m) {{ long long xm = xe + found[k]; {} total += b[xm]; }}",
                each, walk("m", dropped, {"xm"})));
  WEFT_TRY(function, call.gpu.function(over_blocks(call, body), "weft_call"));
  return std::unique_ptr<Kernel>(
      std::make_unique<TextKernel>(function, call.pointers(),
                                   TextKernel::Shape{.by_block = true,
                                                     .items = tables * points * turns,
                                                     .zeroed = y.elements() * plan::size_in_bytes(y.dtype)}));
}

}  // namespace

Made make_table(const Call& call) {
  if (&call.node.op() == &ops::gather()) return make_gather(call);
  if (&call.node.op() == &ops::scatter_add()) return make_scatter(call);
  return {nullptr};
}

}  // namespace weft::device::cuda
