#include "weft/device/cuda/row_source.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

using plan::Monoid;
using program::RowInstruction;
using program::RowLoop;
using program::RowOperand;
using program::RowStep;

// What the text is made of: softmax and norms are already taken apart.
struct Line {
  enum class Kind : std::uint8_t { define, reduce, store, accumulate };
  Kind kind = Kind::define;
  int result = -1;
  std::vector<int> reads;
  std::string text;  // of define: {0}, {1}.. are what it reads; j is the place in the row
  Monoid monoid = Monoid::sum;
  double divisor = 1;        // of reduce
  std::uint16_t memory = 0;  // of store and accumulate
  int phase = 0;
};

class Writer {
 public:
  explicit Writer(const RowLoop& loop) : loop_(loop), is_run_(loop.is_run.begin(), loop.is_run.end()) {
    for (const RowInstruction& instruction : loop.code) lower(instruction);
    find_phases();
  }

  RowSource write() {
    RowSource source;
    source.by_row = phases_ > 1;
    if (source.by_row) {
      source.threads = loop_.length <= 256    ? 32
                       : loop_.length <= 1024 ? 128
                       : loop_.length <= 4096 ? 256
                                              : 1024;
      source.rows_per_block = source.threads == 32 ? 4 : 1;
    }
    threads_ = source.threads;
    source.text = std::string(prelude());
    for (const program::Accumulator& accumulator : loop_.accumulators) {
      const auto k = source.sums.size();
      const RowOperand& operand = loop_.operands[accumulator.memory];
      SumSource sum{fmt::format("weft_sum{}", k), fmt::format("weft_join{}", k),         accumulator.memory,
                    accumulator.elements,         operand.along != 0 ? loop_.length : 1, 1};
      // Enough threads to keep a GPU busy, and segments long enough to be worth their second look.
      const std::int64_t addends = rows() * sum.width / std::max<std::int64_t>(sum.elements, 1);
      sum.segments = std::clamp<std::int64_t>(
          std::min((1 << 17) / std::max<std::int64_t>(sum.elements, 1), addends / 32), 1, 1024);
      source.text += sum_text(accumulator, operand, sum);
      source.sums.push_back(std::move(sum));
    }
    source.text += source.by_row ? by_row() : by_element();
    return source;
  }

 private:
  std::int64_t rows() const { return loop_.rows(); }

  int fresh(bool run) {
    is_run_.push_back(run);
    return static_cast<int>(is_run_.size()) - 1;
  }
  bool any_run(const std::vector<int>& reads) const {
    return std::any_of(reads.begin(), reads.end(),
                       [&](int r) { return is_run_[static_cast<std::size_t>(r)]; });
  }
  int define(std::vector<int> reads, std::string text, int result = -1) {
    if (result < 0) result = fresh(any_run(reads));
    lines_.push_back(
        {.kind = Line::Kind::define, .result = result, .reads = std::move(reads), .text = std::move(text)});
    return result;
  }
  int reduce(Monoid monoid, int of, double divisor = 1, int result = -1) {
    if (result < 0) result = fresh(false);
    lines_.push_back(
        {.kind = Line::Kind::reduce, .result = result, .reads = {of}, .monoid = monoid, .divisor = divisor});
    return result;
  }

  void lower(const RowInstruction& it) {
    const auto reg = [](std::uint16_t r) { return static_cast<int>(r); };
    std::vector<int> reads;
    for (const std::uint16_t r : it.operands)
      if (r != RowInstruction::kNone) reads.push_back(reg(r));
    const auto n = static_cast<double>(loop_.length);
    switch (it.step) {
      case RowStep::load: {
        const RowOperand& from = loop_.operands[it.memory];
        const bool run = is_run_[it.result];
        const std::string place =
            run ? fmt::format("q{}[j * I({})]", it.memory, from.along) : fmt::format("q{}[0]", it.memory);
        define({}, fmt::format("float({})", place), reg(it.result));
        break;
      }
      case RowStep::store:
        lines_.push_back({.kind = Line::Kind::store, .reads = reads, .memory = it.memory});
        break;
      case RowStep::number: define({}, number(it.number), reg(it.result)); break;
      case RowStep::position:
        define({},
               it.loop >= 0 ? fmt::format("float({} + at{})", it.first, it.loop)
                            : fmt::format("float({} + j / {} % {})", it.first, it.repeat,
                                          std::max<std::int64_t>(it.size, 1)),
               reg(it.result));
        break;
      case RowStep::spread: define(reads, "{0}", reg(it.result)); break;
      case RowStep::compute:
        if (it.op == &ops::cast()) {
          define(reads, it.to_truth ? "({0} != 0.0f ? 1.0f : 0.0f)" : "{0}", reg(it.result));
        } else {
          const std::vector<std::string> holes = {"{0}", "{1}", "{2}"};
          const auto text = expression(*it.op, std::span(holes).first(reads.size()));
          WEFT_CHECK(text.has_value(), "a row step that is no pointwise operator");
          define(reads, *text, reg(it.result));
        }
        break;
      case RowStep::reduce: reduce(it.monoid, reads[0], it.number, reg(it.result)); break;
      case RowStep::dot: reduce(Monoid::sum, define(reads, "({0} * {1})"), 1, reg(it.result)); break;
      case RowStep::softmax: {
        const int largest = reduce(Monoid::max, reads[0]);
        const int power = define({reads[0], largest}, "({1} == -WEFT_INFINITY ? 0.0f : expf({0} - {1}))");
        const int total = reduce(Monoid::sum, power);
        const int share = define({total}, "({0} == 0.0f ? 0.0f : 1.0f / {0})");
        define({power, share}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::layer_norm: {
        const int mean = reduce(Monoid::sum, reads[0], n);
        const int away = define({reads[0], mean}, "({0} - {1})");
        const int variance = reduce(Monoid::sum, define({away}, "({0} * {0})"), n);
        define({variance}, fmt::format("(1.0f / sqrtf({{0}} + {}))", number(it.number)), reg(it.second));
        define({away, reg(it.second)}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::rms_norm: {
        const int square = reduce(Monoid::sum, define({reads[0]}, "({0} * {0})"), n);
        define({square}, fmt::format("(1.0f / sqrtf({{0}} + {}))", number(it.number)), reg(it.second));
        define({reads[0], reg(it.second)}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::accumulate:
        if (reads.size() > 1) reads = {define(reads, "({0} * {1})")};
        lines_.push_back(
            {.kind = Line::Kind::accumulate, .reads = reads, .monoid = it.monoid, .memory = it.memory});
        break;
    }
  }

  // A register written twice would have two phases; the compiler of rows gives each value its own.
  void find_phases() {
    std::vector<int> known(is_run_.size(), 0);
    born_.assign(is_run_.size(), 0);
    lasts_.assign(is_run_.size(), 0);
    for (Line& line : lines_) {
      for (const int r : line.reads) line.phase = std::max(line.phase, known[static_cast<std::size_t>(r)]);
      for (const int r : line.reads)
        lasts_[static_cast<std::size_t>(r)] = std::max(lasts_[static_cast<std::size_t>(r)], line.phase);
      if (line.result < 0) continue;
      born_[static_cast<std::size_t>(line.result)] = line.phase;
      known[static_cast<std::size_t>(line.result)] = line.phase + (line.kind == Line::Kind::reduce ? 1 : 0);
    }
    for (const Line& line : lines_) {
      phases_ = std::max(phases_, line.phase + 1);
      if (line.kind == Line::Kind::reduce) phases_ = std::max(phases_, line.phase + 2);
    }
  }

  // Kept by a thread from one phase to the next, an element for each place that it has of the row.
  bool is_kept(int r) const {
    const auto i = static_cast<std::size_t>(r);
    return is_run_[i] && lasts_[i] > born_[i];
  }
  std::string name(int r, int phase) const {
    const auto i = static_cast<std::size_t>(r);
    if (!is_run_[i]) return fmt::format("s{}", r);
    return is_kept(r) && phase > born_[i] ? fmt::format("k{}[e]", r) : fmt::format("v{}", r);
  }
  std::string text_of(const Line& line) const {
    std::vector<std::string> names;
    for (const int r : line.reads) names.push_back(name(r, line.phase));
    names.resize(3);
    return fmt::format(fmt::runtime(line.text), names[0], names[1], names[2]);
  }

  // I: a type that holds every offset.
  std::string_view offset_type() const {
    std::int64_t most = rows() * loop_.length;
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
                    offset_type(), threads_ == 32 ? 128 : threads_);
    for (std::size_t k = 0; k < loop_.operands.size(); ++k)
      text += fmt::format("{}* p{}, ", type_name(loop_.operands[k].place.dtype), k);
    for (std::size_t k = 0; k < loop_.accumulators.size(); ++k) text += fmt::format("float* c{}, ", k);
    return text + "long long begin, long long end, long long first_row, long long end_row) {\n";
  }

  // Where the row is, and where each operand is at it.
  std::string at_row() const {
    std::string text;
    if (!loop_.outer.empty()) text += "  I rest = I(row);\n";
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

  // Lines of one phase, of all places of the row (runs) or of the row itself (singles).
  std::string body(const Line& line, std::string_view indent) const {
    switch (line.kind) {
      case Line::Kind::define: {
        std::string text =
            fmt::format("{}const float {} = {};\n", indent, name(line.result, line.phase), text_of(line));
        if (is_kept(line.result)) text += fmt::format("{}k{}[e] = v{};\n", indent, line.result, line.result);
        return text;
      }
      case Line::Kind::reduce: {
        const std::string part = fmt::format("t{}", line.result);
        return fmt::format("{}{} = {};\n", indent, part,
                           combined(line.monoid, part, name(line.reads[0], line.phase)));
      }
      case Line::Kind::store: {
        const RowOperand& to = loop_.operands[line.memory];
        const std::string_view type = type_name(to.place.dtype);
        return fmt::format("{}q{}[{}] = {}({});\n", indent, line.memory,
                           to.along != 0 ? fmt::format("j * I({})", to.along) : "0",
                           type == "unsigned char" ? "(unsigned char)" : std::string(type),
                           name(line.reads[0], line.phase));
      }
      case Line::Kind::accumulate: {
        const std::size_t k = sum_of(line.memory);
        const std::string row = loop_.operands[line.memory].along != 0
                                    ? fmt::format("(row - first_row) * {}ll + j", loop_.length)
                                    : std::string("row - first_row");
        return fmt::format("{}c{}[{}] = {};\n", indent, k, row, name(line.reads[0], line.phase));
      }
    }
    return {};
  }

  // Whether a line is done where the places of the row are; what is written once a row then waits for its first.
  bool along_row(const Line& line) const {
    if (line.kind == Line::Kind::define) return is_run_[static_cast<std::size_t>(line.result)];
    if (line.kind == Line::Kind::reduce) return true;
    return loop_.operands[line.memory].along != 0 || is_run_[static_cast<std::size_t>(line.reads[0])];
  }
  bool once_a_row(const Line& line) const {
    return (line.kind == Line::Kind::store || line.kind == Line::Kind::accumulate) &&
           loop_.operands[line.memory].along == 0;
  }

  std::string by_element() const {
    std::string text = signature();
    const std::int64_t blocks = loop_.blocks(), block = std::max<std::int64_t>(loop_.block, 1);
    // Where there are sums, whole rows: what another task does of them adds nothing here.
    const bool sums = !loop_.accumulators.empty();
    text += "  const long long step = (long long)gridDim.x * blockDim.x;\n";
    text += "  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n";
    if (sums) {
      text += fmt::format("  for (const long long n = (end_row - first_row) * {}ll; i < n; i += step) {{\n",
                          loop_.length);
      text += fmt::format("  const long long row = first_row + i / {}ll;\n  const I j = I(i % {}ll);\n",
                          loop_.length, loop_.length);
      text += fmt::format("  const long long item = row * {}ll + j / {}ll;\n", blocks, block);
      text += "  if (item < begin || item >= end) {\n";
      for (const Line& line : lines_)
        if (line.kind == Line::Kind::accumulate) {
          const std::size_t k = sum_of(line.memory);
          const bool run = loop_.operands[line.memory].along != 0;
          text += fmt::format("    {}c{}[{}] = {};\n", run ? "" : "if (j == 0) ", k,
                              run ? "i" : "row - first_row", identity(loop_.accumulators[k].monoid));
        }
      text += "    continue;\n  }\n";
    } else {
      text += fmt::format("  for (const long long n = (end - begin) * {}ll; i < n; i += step) {{\n", block);
      text += fmt::format("  const long long item = begin + i / {}ll;\n", block);
      text += fmt::format("  const long long row = item / {}ll;\n", blocks);
      text += fmt::format("  const I j = I(item % {}ll * {}ll + i % {}ll);\n", blocks, block, block);
      text += fmt::format("  if (j >= {}) continue;\n", loop_.length);
    }
    text += at_row();
    for (const Line& line : lines_) {
      text += body(line, once_a_row(line) ? "  if (j == 0) " : "  ");
    }
    return text + "  }\n}\n";
  }

  std::string by_row() const {
    std::string text = signature();
    const std::int64_t each = (loop_.length + threads_ - 1) / threads_;
    const bool warps = threads_ == 32;
    text += "  for (long long row = begin + (long long)blockIdx.x";
    text += warps ? " * 4 + threadIdx.y; row < end; row += (long long)gridDim.x * 4) {\n"
                  : "; row < end; row += gridDim.x) {\n";
    text += at_row();
    for (std::size_t r = 0; r < is_run_.size(); ++r)
      if (is_kept(static_cast<int>(r))) text += fmt::format("  float k{}[{}];\n", r, each);
    for (int phase = 0; phase < phases_; ++phase) {
      // What the row is reduced to was added up in the phase before.
      for (const Line& line : lines_) {
        if (line.kind != Line::Kind::reduce || line.phase != phase - 1) continue;
        const std::string_view join = line.monoid == Monoid::max   ? "weft_join_max"
                                      : line.monoid == Monoid::min ? "weft_join_min"
                                                                   : "weft_join_sum";
        text += fmt::format("  const float s{} = weft_over_row<{}>(t{}, {}, {}()){};\n", line.result,
                            threads_, line.result, identity(line.monoid), join,
                            line.divisor == 1 ? "" : fmt::format(" / {}", number(line.divisor)));
      }
      std::string singles, runs;
      for (const Line& line : lines_) {
        if (line.phase != phase) continue;
        if (line.kind == Line::Kind::reduce)
          singles += fmt::format("  float t{} = {};\n", line.result, identity(line.monoid));
        if (along_row(line))
          runs += body(line, once_a_row(line) ? "    if (j == 0) " : "    ");
        else
          singles += body(line, once_a_row(line) ? "  if (threadIdx.x == 0) " : "  ");
      }
      text += singles;
      if (runs.empty()) continue;
      if (each <= 16) text += "  #pragma unroll\n";
      text += fmt::format("  for (int e = 0; e < {}; ++e) {{\n    const I j = e * {} + threadIdx.x;\n", each,
                          threads_);
      if (each * threads_ != loop_.length) text += fmt::format("    if (j >= {}) break;\n", loop_.length);
      text += runs + "  }\n";
    }
    return text + "  }\n}\n";
  }

  std::string sum_text(const program::Accumulator& accumulator, const RowOperand& operand,
                       const SumSource& sum) const {
    const bool adds = accumulator.monoid == Monoid::sum;
    const std::string_view type = adds ? "double" : "float";
    std::string text = fmt::format(
        "extern \"C\" __global__ void {}(const float* from, {}* to, long long first_row, long long end_row) "
        "{{\n"
        "  const long long element = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (element >= {}ll) return;\n",
        sum.name, type, sum.elements);
    // Loops that move the accumulator are given by the element; the others are summed.
    std::int64_t stride = 1, summed = 1;
    std::string row = "0", walk;
    for (std::size_t i = loop_.outer.size(); i-- > 0; stride *= loop_.outer[i]) {
      if (operand.outer[i] != 0) {
        row += fmt::format(" + element / {}ll % {}ll * {}ll", operand.outer[i], loop_.outer[i], stride);
      } else {
        walk += fmt::format("    row += rest % {}ll * {}ll; rest /= {}ll;\n", loop_.outer[i], stride,
                            loop_.outer[i]);
        summed *= loop_.outer[i];
      }
    }
    const std::string column = operand.along != 0
                                   ? fmt::format("element / {}ll % {}ll", operand.along, loop_.length)
                                   : std::string("0");
    text += fmt::format(
        "  const long long base = {}, column = {};\n"
        "  const long long low = {}ll * blockIdx.y / gridDim.y, high = {}ll * (blockIdx.y + 1) / gridDim.y;\n"
        "  {} total = {};\n"
        "  for (long long k = low; k < high; ++k) {{\n"
        "    long long row = base, rest = k;\n{}"
        "    if (row < first_row || row >= end_row) continue;\n"
        "    const {} x = from[(row - first_row) * {}ll + column];\n"
        "    total = {};\n"
        "  }}\n"
        "  to[blockIdx.y * {}ll + element] = total;\n}}\n",
        row, column, summed, summed, type, identity(accumulator.monoid), walk, type, sum.width,
        adds ? "total + x" : combined(accumulator.monoid, "total", "x"), sum.elements);
    text += fmt::format(
        "extern \"C\" __global__ void {}(const {}* from, float* to, long long segments) {{\n"
        "  const long long element = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (element >= {}ll) return;\n"
        "  {} total = {};\n"
        "  for (int k = 0; k < segments; ++k) {{\n"
        "    const {} x = from[k * {}ll + element];\n"
        "    total = {};\n"
        "  }}\n"
        "  to[element] = float(total);\n}}\n",
        sum.join, type, sum.elements, type, identity(accumulator.monoid), type, sum.elements,
        adds ? "total + x" : combined(accumulator.monoid, "total", "x"));
    return text;
  }

  const RowLoop& loop_;
  std::vector<bool> is_run_;
  std::vector<Line> lines_;
  std::vector<int> born_, lasts_;  // phases, a register
  int phases_ = 1;
  int threads_ = 256;
};

}  // namespace

RowSource row_source(const program::RowLoop& loop) { return Writer(loop).write(); }

}  // namespace weft::device::cuda
