#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/routing.h"

namespace weft::device::cuda {

// One thread per pack of adjacent result elements; a position outside the table gives zero.
Made make_table(const Call& call) {
  if (&call.node.op() != &ops::gather()) return {nullptr};
  const plan::Type y = call.node.result_type(0);
  const program::Place &positions = call.what.operands[0], &table = call.what.operands[1],
                       &to = call.what.results[0];
  const Symbol along = call.node.symbol(0);
  const bool whole_rows = y.rank() > 0 && positions.find(y.dims.back().index) == nullptr;
  const std::int64_t pack = whole_rows ? pack_along(call, 1, y.dims.back().index) : 1;
  std::vector<IndexLoop> loops;
  for (const plan::Dim& dim : y.dims) {
    const std::int64_t each = pack > 1 && dim.index == y.dims.back().index ? pack : 1;
    loops.push_back({dim.size / each,
                     {positions.stride(dim.index) * each,
                      dim.index == along ? 0 : table.stride(dim.index) * each, to.stride(dim.index) * each}});
  }
  const std::string_view type = offset_type(call);
  const std::string body =
      fmt::format("    {0} p = 0, t = 0, o = 0;\n    {{\n", type) +
      walk(fmt::format("{}(i)", type == "int" ? "int" : ""), loops, {"p", "t", "o"}, type) +
      fmt::format(
          "    }}\n"
          "    typedef weft_pack<{0}, {1}> Pack;\n"
          "    const long long row = (long long)a[p] - {2}ll;\n"
          "    Pack got;\n"
          "    if (row >= 0 && row < {3}ll) {{\n"
          "      const {5} r = {5}(row);\n      {{\n{4}      }}\n"
          "      got = *reinterpret_cast<const Pack*>(b + t);\n"
          "    }} else {{\n      for (int u = 0; u < {1}; ++u) got.x[u] = ({0})(0);\n    }}\n"
          "    *reinterpret_cast<Pack*>(r0 + o) = got;\n",
          type_name(y.dtype), pack, call.node.integer(1), call.node.input_type(1).size_of(along),
          walk("r", row_parts(table, call.node.input_type(1), along), {"t"}, type), type);
  return elements_kernel(call, over_elements(call, body, {}, pack_source()), y.elements() / pack);
}

}  // namespace weft::device::cuda
