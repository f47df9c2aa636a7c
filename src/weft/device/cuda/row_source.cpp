#include "weft/device/cuda/row_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/row_sums.h"

namespace weft::device::cuda {
namespace {

using plan::Monoid;
using program::RowLoop;
using program::RowOperand;
using Kind = RowLine::Kind;

class Writer {
 public:
  Writer(const RowLoop& loop, const RowShape& shape) : loop_(loop), rows_(row_lines(loop)) {
    find_pack();
    // Sums over columns stay in the threads that own the columns, if there are enough rows to keep
    // those busy.
    constexpr std::int64_t kFewRows = 64, kLongest = 32'768;
    in_threads_ =
        !loop.accumulators.empty() && loop.rows() >= kFewRows && loop.length > 0 && loop.length <= kLongest &&
        std::ranges::all_of(loop.accumulators, [&](const program::Accumulator& accumulator) {
          const RowOperand& to = loop.operands[accumulator.memory];
          return to.along <= 1 && std::ranges::all_of(to.outer, [](auto step) { return step == 0; });
        });
    by_row_ = rows_.phases > 1 || in_threads_;
    if (!by_row_) {
      find_inside();
      return;
    }
    const std::int64_t length = loop.length, warp = pack_ > 1 ? 1024 : 256;
    threads_ = length <= warp ? 32 : length <= 4 * warp ? 128 : length <= 8 * warp ? 256 : 1024;
    most_blocks_ = threads_ >= 1024 ? 264 : threads_ >= 256 ? 528 : 1056;
    if (shape.threads > 0) threads_ = shape.threads;
    if (shape.most_blocks > 0) most_blocks_ = shape.most_blocks;
    rows_per_block_ = threads_ == 32 ? 4 : 1;
    const std::int64_t turn = std::int64_t{threads_} * pack_;
    turns_ = (length + turn - 1) / turn;
  }

  // Shapes with a few packs per thread, so that kept values stay in registers.
  std::vector<RowShape> shapes() const {
    if (!by_row_) return {};
    std::vector<RowShape> all = {{threads_, most_blocks_}};
    // Also the number of threads that gives one pack each.
    const std::int64_t a_pack_each = (loop_.length + 32 * pack_ - 1) / (32 * pack_) * 32;
    std::vector<int> counts = {32, 128, 256, 512};
    if (a_pack_each < 512 && std::ranges::find(counts, a_pack_each) == counts.end())
      counts.push_back(static_cast<int>(a_pack_each));
    for (const int threads : counts) {
      const std::int64_t turns =
          (loop_.length + std::int64_t{threads} * pack_ - 1) / (std::int64_t{threads} * pack_);
      const bool idles = turns == 1 && 2 * loop_.length <= std::int64_t{threads} * pack_;
      if (turns * pack_ > 32 || idles) continue;
      for (const std::int64_t blocks : {396, 528, 1056, 2112})
        if (const RowShape shape{threads, in_threads_ ? blocks : most_blocks_};
            std::ranges::find(all, shape) == all.end())
          all.push_back(shape);
    }
    return all;
  }

  RowSource write() {
    RowSource source;
    source.by_row = by_row_;
    source.sums_in_threads = in_threads_;
    source.threads = threads_;
    source.rows_per_block = rows_per_block_;
    source.each = pack_ * inside_;
    source.most_blocks = most_blocks_;
    source.text = std::string(prelude()) + std::string(pack_source());
    if (inside_ == 1) add_sums(source);
    source.text += by_row_ ? by_row() : by_element();
    return source;
  }

 private:
  void add_sums(RowSource& source) const {
    for (const program::Accumulator& accumulator : loop_.accumulators) {
      const auto k = source.sums.size();
      const bool run = loop_.operands[accumulator.memory].along != 0;
      source.sums.push_back({fmt::format("weft_sum{}", k), fmt::format("weft_join{}", k), accumulator.memory,
                             accumulator.elements, run ? loop_.length : 1,
                             in_threads_ ? 0 : addends_of_rows(loop_, accumulator)});
    }
    // One block per 32 elements: with many elements one thread each is enough.
    constexpr std::int64_t kFewAddends = 1024, kFewElements = 1 << 15;
    source.sums_at_once = !source.sums.empty() && std::ranges::all_of(source.sums, [](const SumSource& sum) {
      return sum.addends <= kFewAddends && sum.elements <= kFewElements;
    });
    if (source.sums_at_once) source.text += sums_at_once(loop_, source.sums, in_threads_);
    for (std::size_t k = 0; !source.sums_at_once && k < source.sums.size(); ++k)
      source.text += sum_of_rows(loop_, loop_.accumulators[k], source.sums[k]);
  }

  // As many elements as fit in 16 bytes, for the narrowest type along the row.
  void find_pack() {
    std::int64_t narrowest = 16;
    for (const RowLine& line : rows_.lines)
      if (line.kind == Kind::load || line.kind == Kind::store)
        if (const RowOperand& operand = loop_.operands[line.memory]; operand.along == 1)
          narrowest =
              std::min(narrowest, std::max<std::int64_t>(plan::size_in_bytes(operand.place.dtype), 2));
    pack_ = static_cast<int>(16 / narrowest);
    while (pack_ > 1 && loop_.length % pack_ != 0) pack_ /= 2;
  }
  // One thread sums a few consecutive rows, if enough parallel work remains.
  void find_inside() {
    constexpr std::int64_t kMostInside = 64, kLeastLeft = 1 << 14;
    std::int64_t inside = 1;
    std::size_t summed = 0;
    for (; summed < loop_.outer.size(); ++summed) {
      const std::size_t i = loop_.outer.size() - 1 - summed;
      if (!std::ranges::all_of(loop_.accumulators, [&](const program::Accumulator& accumulator) {
            return loop_.operands[accumulator.memory].outer[i] == 0;
          }))
        break;
      inside *= loop_.outer[i];
    }
    const bool all = std::ranges::all_of(loop_.accumulators, [&](const program::Accumulator& accumulator) {
      const RowOperand& to = loop_.operands[accumulator.memory];
      for (std::size_t i = 0; i + summed < loop_.outer.size(); ++i)
        if (to.outer[i] == 0 && loop_.outer[i] > 1) return false;
      return to.along != 0;
    });
    if (loop_.accumulators.empty() || !all || inside < 2 || inside > kMostInside) return;
    if (loop_.rows() / inside * loop_.length / pack_ >= kLeastLeft) inside_ = inside;
  }
  bool is_packed(std::uint16_t memory) const {
    const RowOperand& operand = loop_.operands[memory];
    return pack_ > 1 && operand.along == 1 && operand.place.offset % pack_ == 0 &&
           std::ranges::all_of(operand.outer, [&](std::int64_t step) { return step % pack_ == 0; });
  }

  std::string name(int r, int phase) const {
    if (!rows_.run(r)) return fmt::format("s{}", r);
    return rows_.is_kept(r) && phase > rows_.born[static_cast<std::size_t>(r)]
               ? fmt::format("k{}[e * {} + u]", r, pack_)
               : fmt::format("v{}", r);
  }
  std::string text_of(const RowLine& line) const {
    if (line.kind == Kind::load) {
      if (!rows_.run(line.result)) return fmt::format("float(q{}[0])", line.memory);
      if (is_packed(line.memory)) return fmt::format("float(l{}.x[u])", line.memory);
      return fmt::format("float(q{}[j * I({})])", line.memory, loop_.operands[line.memory].along);
    }
    std::vector<std::string> names;
    for (const int r : line.reads) names.push_back(name(r, line.phase));
    names.resize(3);
    return fmt::format(fmt::runtime(line.text), names[0], names[1], names[2]);
  }

  // I: a type that holds every offset.
  std::string_view offset_type() const {
    std::int64_t most = loop_.rows() * loop_.length;
    for (const RowOperand& operand : loop_.operands) {
      std::int64_t last = std::max<std::int64_t>(loop_.length, 1) * std::abs(operand.along);
      for (std::size_t i = 0; i < loop_.outer.size(); ++i)
        last += loop_.outer[i] * std::abs(operand.outer[i]);
      most = std::max(most, last);
    }
    return most < (std::int64_t{1} << 30) ? "int" : "long long";
  }

  std::string signature() const {
    std::string text =
        fmt::format("typedef {} I;\nextern \"C\" __global__ __launch_bounds__({}) void weft_rows(",
                    offset_type(), threads_ * rows_per_block_);
    std::string_view comma;
    for (std::size_t k = 0; k < loop_.operands.size(); ++k, comma = ", ")
      text += fmt::format("{}{}* p{}", comma, type_name(loop_.operands[k].place.dtype), k);
    for (std::size_t k = 0; inside_ == 1 && k < loop_.accumulators.size(); ++k, comma = ", ")
      text += fmt::format("{}float* c{}", comma, k);
    return text + ") {\n";
  }

  // The row's indices, and the address of each operand at this row.
  std::string at_row() const {
    std::string text;
    if (!loop_.outer.empty()) text += "  I rest = row;\n";
    for (std::size_t i = loop_.outer.size(); i-- > 0;)
      text += fmt::format("  const I at{} = rest % {};{}\n", i, loop_.outer[i],
                          i > 0 ? fmt::format(" rest /= {};", loop_.outer[i]) : "");
    for (std::size_t k = 0; k < loop_.operands.size(); ++k) {
      std::string offset;
      for (std::size_t i = 0; i < loop_.outer.size(); ++i)
        if (loop_.operands[k].outer[i] != 0)
          offset += fmt::format(" + at{} * I({})", i, loop_.operands[k].outer[i]);
      text +=
          fmt::format("  {}* const q{} = p{}{};\n", type_name(loop_.operands[k].place.dtype), k, k, offset);
    }
    return text;
  }

  std::size_t sum_of(std::uint16_t memory) const {
    for (std::size_t k = 0; k < loop_.accumulators.size(); ++k)
      if (loop_.accumulators[k].memory == memory) return k;
    WEFT_CHECK(false, "an accumulate step without an accumulator");
    return 0;
  }

  std::string accumulated(const RowLine& line) const {
    const std::size_t k = sum_of(line.memory);
    const bool run = loop_.operands[line.memory].along != 0;
    const std::string value = name(line.reads[0], line.phase);
    if (inside_ > 1)
      return fmt::format("a{0}[u] = {1};\n", k,
                         combined(loop_.accumulators[k].monoid, fmt::format("a{}[u]", k), value));
    if (!in_threads_)
      return run ? fmt::format("c{}[row * {}ll + j] = {};\n", k, loop_.length, value)
                 : fmt::format("c{}[row] = {};\n", k, value);
    const std::string part = run ? fmt::format("a{}[e * {} + u]", k, pack_) : fmt::format("a{}", k);
    return fmt::format("{} = {};\n", part, combined(loop_.accumulators[k].monoid, part, value));
  }

  // A line's statements, for an element of the row (v) or for the whole row (s).
  std::string body(const RowLine& line) const {
    switch (line.kind) {
      case Kind::load:
      case Kind::define: {
        std::string text = fmt::format(
            "const float {} = {};\n",
            rows_.run(line.result) ? fmt::format("v{}", line.result) : fmt::format("s{}", line.result),
            text_of(line));
        if (rows_.is_kept(line.result))
          text += fmt::format("    k{0}[e * {1} + u] = v{0};\n", line.result, pack_);
        return text;
      }
      case Kind::reduce: {
        const std::string part = fmt::format("t{}", line.result);
        return fmt::format("{} = {};\n", part, combined(line.monoid, part, name(line.reads[0], line.phase)));
      }
      case Kind::store: {
        const RowOperand& to = loop_.operands[line.memory];
        const std::string place = is_packed(line.memory) ? fmt::format("o{}.x[u]", line.memory)
                                  : to.along != 0 ? fmt::format("q{}[j * I({})]", line.memory, to.along)
                                                  : fmt::format("q{}[0]", line.memory);
        return fmt::format("{} = ({})({});\n", place, type_name(to.place.dtype),
                           name(line.reads[0], line.phase));
      }
      case Kind::accumulate: return accumulated(line);
    }
    return {};
  }

  // Whether a line is inside the loop over the row's elements. What is written once per row is then
  // written at the first element.
  bool along_row(const RowLine& line) const {
    if (line.kind == Kind::define || line.kind == Kind::load) return rows_.run(line.result);
    if (line.kind == Kind::reduce) return true;
    return loop_.operands[line.memory].along != 0 || rows_.run(line.reads[0]);
  }
  bool once_a_row(const RowLine& line) const {
    return (line.kind == Kind::store || line.kind == Kind::accumulate) &&
           loop_.operands[line.memory].along == 0;
  }

  std::string pack_type(std::uint16_t memory) const {
    return fmt::format("weft_pack<{}, {}>", type_name(loop_.operands[memory].place.dtype), pack_);
  }

  // Loads for later phases are issued at the start of the row, where few rows are in flight at a
  // time. This is safe since a loop does not read what it wrote.
  bool is_early(const RowLine& line) const {
    return line.kind == Kind::load && line.phase > 0 && in_threads_ && are_unrolled() &&
           rows_.run(line.result) && is_packed(line.memory);
  }
  std::string early_loads() const {
    std::string arrays, loads;
    for (const RowLine& line : rows_.lines) {
      if (!is_early(line)) continue;
      arrays += fmt::format("  {} h{}[{}];\n", pack_type(line.memory), line.result, turns_);
      loads += fmt::format("    h{}[e] = *reinterpret_cast<const {}*>(q{} + j0);\n", line.result,
                           pack_type(line.memory), line.memory);
    }
    return loads.empty() ? "" : arrays + over_places() + loads + "  }}\n";
  }

  // Elements j0 .. j0 + pack of the row: vector loads, their lines, vector stores.
  std::string places(int phase) const {
    std::string loads, lines, stores;
    for (const RowLine& line : rows_.lines) {
      if (line.phase != phase || !along_row(line)) continue;
      lines += once_a_row(line) ? "    if (j == 0) " : "    ";
      lines += body(line);
      if ((line.kind != Kind::load && line.kind != Kind::store) || !is_packed(line.memory)) continue;
      const std::string type = pack_type(line.memory);
      if (is_early(line))
        loads += fmt::format("    const {} l{} = h{}[e];\n", type, line.memory, line.result);
      else if (line.kind == Kind::load)
        loads += fmt::format("    const {0} l{1} = *reinterpret_cast<const {0}*>(q{1} + j0);\n", type,
                             line.memory);
      else
        loads += fmt::format("    {} o{};\n", type, line.memory),
            stores += fmt::format("    *reinterpret_cast<{0}*>(q{1} + j0) = o{1};\n", type, line.memory);
    }
    if (lines.empty()) return {};
    return loads +
           fmt::format("    #pragma unroll\n    for (int u = 0; u < {}; ++u) {{\n    const I j = j0 + u;\n",
                       pack_) +
           lines + "    }\n" + stores;
  }
  std::string singles(int phase, std::string_view first) const {
    std::string text;
    for (const RowLine& line : rows_.lines) {
      if (line.phase != phase) continue;
      if (line.kind == Kind::reduce)
        text += fmt::format("  float t{} = {};\n", line.result, identity(line.monoid));
      if (!along_row(line))
        text += once_a_row(line) ? fmt::format("  if ({}) {}", first, body(line)) : "  " + body(line);
    }
    return text;
  }

  std::string by_element() const {
    const std::int64_t packs = std::max<std::int64_t>(loop_.length / pack_, 1);
    std::string text = signature();
    text += "  const I step = I(gridDim.x) * blockDim.x;\n";
    text += fmt::format("  for (I i = I(blockIdx.x) * blockDim.x + threadIdx.x; i < I({}ll); i += step) {{\n",
                        loop_.rows() / inside_ * packs);
    text += fmt::format("  const I row{2} = i / I({0}ll), j0 = i % I({0}ll) * {1};\n", packs, pack_,
                        inside_ > 1 ? "s" : "");
    const std::string each = at_row() + singles(0, "j0 == 0") + places(0);
    return text + (inside_ > 1 ? sums_inside(each) : each) + "  }\n}\n";
  }

  // Loops over all rows of a sum and stores the totals.
  std::string sums_inside(const std::string& each) const {
    std::string starts, stores;
    for (std::size_t k = 0; k < loop_.accumulators.size(); ++k) {
      const program::Accumulator& accumulator = loop_.accumulators[k];
      const RowOperand& to = loop_.operands[accumulator.memory];
      const std::string_view dtype = type_name(to.place.dtype);
      starts += fmt::format(
          "  {0} a{1}[{2}];\n  #pragma unroll\n  for (int u = 0; u < {2}; ++u) a{1}[u] = {3};\n",
          accumulator.monoid == Monoid::sum ? "double" : "float", k, pack_, identity(accumulator.monoid));
      const bool packed = is_packed(accumulator.memory);
      if (packed) stores += fmt::format("  weft_pack<{}, {}> o{};\n", dtype, pack_, accumulator.memory);
      stores +=
          fmt::format("  #pragma unroll\n  for (int u = 0; u < {0}; ++u) {1} = {2}(float(a{3}[u]));\n", pack_,
                      packed ? fmt::format("o{}.x[u]", accumulator.memory)
                             : fmt::format("q{}[(j0 + u) * I({})]", accumulator.memory, to.along),
                      dtype, k);
      if (packed)
        stores += fmt::format("  *reinterpret_cast<weft_pack<{0}, {1}>*>(q{2} + j0) = o{2};\n", dtype, pack_,
                              accumulator.memory);
    }
    return starts +
           fmt::format("  #pragma unroll {0}\n  for (I row = rows * {1}; row < (rows + 1) * {1}; ++row) {{\n",
                       std::min<std::int64_t>(inside_, 4), inside_) +
           each + fmt::format("  }}\n  {{\n  const I row = rows * {};\n", inside_) + at_row() + stores +
           "  }\n";
  }

  std::string by_row() const {
    std::string text = signature();
    if (in_threads_)
      for (std::size_t k = 0; k < loop_.accumulators.size(); ++k) {
        const std::string_view start = identity(loop_.accumulators[k].monoid);
        const bool run = loop_.operands[loop_.accumulators[k].memory].along != 0;
        text += run ? fmt::format(
                          "  float a{0}[{1}];\n  #pragma unroll\n  for (int e = 0; e < {1}; ++e) a{0}[e] = "
                          "{2};\n",
                          k, turns_ * pack_, start)
                    : fmt::format("  float a{} = {};\n", k, start);
      }
    text += fmt::format(
        "  for (I row = I(blockIdx.x) * {0} + threadIdx.y; row < I({1}ll); row += I(gridDim.x) * {0}) {{\n",
        rows_per_block_, loop_.rows());
    text += at_row();
    for (std::size_t r = 0; r < rows_.is_run.size(); ++r)
      if (rows_.is_kept(static_cast<int>(r))) text += fmt::format("  float k{}[{}];\n", r, turns_ * pack_);
    text += early_loads();
    for (int phase = 0; phase < rows_.phases; ++phase) {
      // Reductions accumulated in the previous phase are combined over the row.
      for (const RowLine& line : rows_.lines) {
        if (line.kind != Kind::reduce || line.phase != phase - 1) continue;
        const std::string_view join = line.monoid == Monoid::max   ? "weft_join_max"
                                      : line.monoid == Monoid::min ? "weft_join_min"
                                                                   : "weft_join_sum";
        text += fmt::format("  const float s{} = weft_over_row<{}>(t{}, {}, {}()){};\n", line.result,
                            threads_, line.result, identity(line.monoid), join,
                            line.divisor == 1 ? "" : fmt::format(" / {}", number(line.divisor)));
      }
      text += singles(phase, "threadIdx.x == 0");
      if (const std::string inside = places(phase); !inside.empty())
        text += over_places() + inside + "  }}\n";
    }
    text += "  }\n";
    if (in_threads_ && rows_per_block_ > 1)
      text += fmt::format("  __shared__ float w[{}][{}];\n", rows_per_block_, turns_ * pack_ * threads_);
    for (std::size_t k = 0; in_threads_ && k < loop_.accumulators.size(); ++k) text += left_by_block(k);
    return text + "}\n";
  }

  // Combines the sums of a block's rows in order into one addend per block.
  std::string left_by_block(std::size_t k) const {
    const bool run = loop_.operands[loop_.accumulators[k].memory].along != 0;
    const std::int64_t slots = run ? turns_ * pack_ : 1;
    if (rows_per_block_ == 1) {
      if (!run) return fmt::format("  if (threadIdx.x == 0) c{0}[blockIdx.x] = a{0};\n", k);
      return over_places() +
             fmt::format(
                 "    #pragma unroll\n    for (int u = 0; u < {0}; ++u) c{1}[(long long)blockIdx.x * "
                 "{2}ll + j0 + u] = a{1}[e * {0} + u];\n  }}}}\n",
                 pack_, k, loop_.length);
    }
    const std::string total = fmt::format(
        "    float total = w[0][i];\n    #pragma unroll\n    for (int y = 1; y < {}; ++y) total = {};\n",
        rows_per_block_, combined(loop_.accumulators[k].monoid, "total", "w[y][i]"));
    std::string text = k > 0 ? "  __syncthreads();\n" : "";
    text +=
        run ? fmt::format(
                  "  #pragma unroll\n  for (int s = 0; s < {0}; ++s) w[threadIdx.y][s * {1} + threadIdx.x] = "
                  "a{2}[s];\n",
                  slots, threads_, k)
            : fmt::format("  w[threadIdx.y][threadIdx.x] = a{};\n", k);
    text += "  __syncthreads();\n";
    if (!run)
      return text + "  if (threadIdx.x == 0 && threadIdx.y == 0) {\n    const int i = 0;\n" + total +
             fmt::format("    c{}[blockIdx.x] = total;\n  }}\n", k);
    return text + fmt::format(
                      "  for (int i = threadIdx.y * {0} + threadIdx.x; i < {1}; i += {2}) {{\n"
                      "    const int j = (i / {0} / {3} * {0} + i % {0}) * {3} + i / {0} % {3};\n"
                      "    if (j >= {4}) continue;\n{5}"
                      "    c{6}[(long long)blockIdx.x * {4}ll + j] = total;\n  }}\n",
                      threads_, slots * threads_, rows_per_block_ * threads_, pack_, loop_.length, total, k);
  }

  bool are_unrolled() const { return turns_ * pack_ <= 64; }
  // The loop over the row: in each iteration a thread has one pack of adjacent elements.
  std::string over_places() const {
    std::string text = are_unrolled() ? "  #pragma unroll\n" : "";
    text += fmt::format("  for (int e = 0; e < {}; ++e) {{\n    const I j0 = (e * {} + threadIdx.x) * {};\n",
                        turns_, threads_, pack_);
    if (turns_ * threads_ * pack_ != loop_.length)
      text += fmt::format("    if (j0 < {}) {{\n", loop_.length);
    else
      text += "    {\n";
    return text;
  }

  const RowLoop& loop_;
  const RowLines rows_;
  bool by_row_ = false, in_threads_ = false;
  int threads_ = 256, rows_per_block_ = 1, pack_ = 1;
  std::int64_t turns_ = 1, most_blocks_ = 0;
  std::int64_t inside_ = 1;  // rows that one thread sums
};

}  // namespace

RowSource row_source(const program::RowLoop& loop, const RowShape& shape) {
  return Writer(loop, shape).write();
}

std::vector<RowShape> row_shapes(const program::RowLoop& loop) { return Writer(loop, {}).shapes(); }

}  // namespace weft::device::cuda
