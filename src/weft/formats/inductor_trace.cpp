#include "weft/formats/inductor_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/formats/inductor_operations.h"
#include "weft/plan/ops/sequences.h"

namespace weft::formats {
namespace {

using TraceJson = nlohmann::ordered_json;
using program::Exchange;
using program::MatrixProduct;
using Dims = std::vector<std::int64_t>;

constexpr double kMicroseconds = 1e6;
// PyTorch chooses one of these for scaled_dot_product_attention.
constexpr std::string_view kAttentions[] = {"aten::_scaled_dot_product_flash_attention",
                                            "aten::_scaled_dot_product_efficient_attention",
                                            "aten::_scaled_dot_product_cudnn_attention"};
enum Thread : int { host = 0, compute = 1, other_layouts = 2, communicate = 3 };

// rows x columns, stored row by row, or column by column if `transposed`.
void add_operand(const ProfiledProduct& product, std::int64_t rows, std::int64_t columns, bool transposed,
                 TraceJson& args) {
  Dims dims = {rows, columns}, strides = {columns, 1};
  if (transposed) strides = {1, rows};
  if (product.batch > 1) {
    dims.insert(dims.begin(), product.batch);
    strides.insert(strides.begin(), rows * columns);
  }
  args["Input Dims"].push_back(std::move(dims));
  args["Input Strides"].push_back(std::move(strides));
  args["Input type"].push_back(profiler_name(product.dtype).operand);
}

class TraceWriter {
 public:
  TraceWriter(const program::Program& program, const program::Timeline& timeline, const plan::Mesh& mesh,
              std::int32_t rank)
      : program_(program), timeline_(timeline), mesh_(mesh), rank_(rank) {}

  std::string write() {
    WEFT_CHECK(timeline_.tasks.size() == program_.tasks.size(), "a time per task");
    for (std::size_t unit = 0; unit < program_.units.size(); ++unit) {
      const auto span = span_of(static_cast<std::uint32_t>(unit));
      if (!span || !(span->seconds > 0)) continue;
      const program::Unit& one = program_.units[unit];
      if (const auto* const exchange = std::get_if<Exchange>(&one.kernel))
        add_collective(*exchange, *span, describe(program_, one));
      else if (const auto* const product = std::get_if<MatrixProduct>(&one.kernel))
        add_product(product_of(*product), *span);
      else if (const auto* const call = std::get_if<program::OperatorCall>(&one.kernel);
               call != nullptr && &program_.graph->view(call->node).op() == &ops::attention())
        add_attention(attention_of(program_.graph->view(call->node)), *span);
      else
        add_kernel(describe(program_, one), compute, *span, {});
    }
    add_other_layouts();
    const TraceJson json = {
        {"schemaVersion", 1},
        {"distributedInfo",
         {{"backend", "nccl"}, {"rank", rank_}, {"world_size", mesh_.ranks()}, {"pg_config", groups_}}},
        {"displayTimeUnit", "ms"},
        {"traceEvents", std::move(events_)}};
    return json.dump(-1, ' ', false, TraceJson::error_handler_t::replace) + "\n";
  }

 private:
  // When a unit ran, and for how long without pauses between its tasks.
  struct Span {
    double begin = 0, end = 0, seconds = 0;
  };
  struct Total {
    double seconds = 0;
    std::int64_t count = 0;
  };

  std::optional<Span> span_of(std::uint32_t unit) {
    if (spans_.empty()) {
      spans_.resize(program_.units.size());
      for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
        std::optional<Span>& span = spans_[program_.tasks[t].unit];
        const program::TaskTime& time = timeline_.tasks[t];
        if (!span) span = Span{time.begin, time.end, 0};
        span->begin = std::min(span->begin, time.begin);
        span->end = std::max(span->end, time.end);
        span->seconds += time.end - time.begin;
      }
    }
    return spans_[unit];
  }

  void add_event(std::string_view category, std::string name, int thread, double begin, double seconds,
                 TraceJson args) {
    events_.push_back({{"ph", "X"},
                       {"cat", category},
                       {"name", std::move(name)},
                       {"pid", rank_},
                       {"tid", thread},
                       {"ts", begin * kMicroseconds},
                       {"dur", seconds * kMicroseconds},
                       {"args", args.is_null() ? TraceJson::object() : std::move(args)}});
  }

  void add_kernel(std::string name, int thread, const Span& span, TraceJson args) {
    add_event("kernel", std::move(name), thread, span.begin, span.seconds, std::move(args));
  }

  void add_product(const ProfiledProduct& product, const Span& span) {
    add_operation(product, /*with_bias=*/false, {false, true}, compute, span);
    Total& total = products_[product];
    total.seconds += span.seconds;
    ++total.count;
  }

  void add_attention(const ProfiledAttention& attention, const Span& span) {
    add_attention(attention, kAttentions[0], /*heads_first=*/false, compute, span);
    Total& total = attentions_[attention];
    total.seconds += span.seconds;
    ++total.count;
  }

  // Heads are stored before the positions, or after them as a linear layer makes them.
  void add_attention(const ProfiledAttention& attention, std::string_view name, bool heads_first, int thread,
                     const Span& span) {
    const std::int64_t id = ++operations_;
    TraceJson args = {{"External id", id}};
    const auto [batch, heads, key_heads, queries, keys, width, value_width, dtype] = attention;
    for (const auto& [h, s, e] : {std::array{heads, queries, width}, std::array{key_heads, keys, width},
                                  std::array{key_heads, keys, value_width}}) {
      args["Input Dims"].push_back(Dims{batch, h, s, e});
      args["Input Strides"].push_back(heads_first ? Dims{h * s * e, s * e, e, 1}
                                                  : Dims{h * s * e, e, h * e, 1});
      args["Input type"].push_back(profiler_name(dtype).operand);
    }
    add_event("cpu_op", std::string(name), host, span.begin, span.seconds, std::move(args));
    add_kernel(fmt::format("attention {} x {} x {}", batch * heads, queries, keys), thread, span,
               {{"External id", id}});
  }

  // An operation and its kernel. `transposed`: the operands.
  void add_operation(const ProfiledProduct& product, bool with_bias, std::array<bool, 2> transposed,
                     int thread, const Span& span) {
    const std::int64_t id = ++operations_;
    TraceJson args = {{"External id", id}};
    if (with_bias) {
      args["Input Dims"].push_back(Dims{product.n});
      args["Input Strides"].push_back(Dims{1});
      args["Input type"].push_back(profiler_name(product.dtype).operand);
    }
    add_operand(product, product.m, product.k, transposed[0], args);
    add_operand(product, product.k, product.n, transposed[1], args);
    const char* const name = product.batch > 1 ? "aten::bmm" : with_bias ? "aten::addmm" : "aten::mm";
    add_event("cpu_op", name, host, span.begin, span.seconds, std::move(args));
    add_kernel(fmt::format("gemm {} x {} x {}", product.m, product.n, product.k), thread, span,
               {{"External id", id}});
  }

  // After the step, with the mean time of each product. PyTorch may compute the transposed product.
  void add_other_layouts() {
    double at = timeline_.seconds;
    for (const auto& [product, total] : products_) {
      const double seconds = total.seconds / static_cast<double>(total.count);
      add_layouts(product, seconds, /*in_step=*/true, at);
      ProfiledProduct transposed = product;
      std::swap(transposed.m, transposed.n);
      if (!products_.contains(transposed)) add_layouts(transposed, seconds, /*in_step=*/false, at);
    }
    for (const auto& [attention, total] : attentions_)
      for (const std::string_view name : kAttentions)
        for (const bool heads_first : {false, true}) {
          if (name == kAttentions[0] && !heads_first) continue;  // in the step
          const double seconds = total.seconds / static_cast<double>(total.count);
          add_attention(attention, name, heads_first, other_layouts, {at, at + seconds, seconds});
          at += seconds;
        }
  }

  void add_layouts(const ProfiledProduct& product, double seconds, bool in_step, double& at) {
    for (const bool with_bias : {false, true})
      for (const bool first : {false, true})
        for (const bool second : {false, true}) {
          const bool is_drawn = in_step && !with_bias && !first && second;
          if (is_drawn || (with_bias && product.batch > 1)) continue;
          add_operation(product, with_bias, {first, second}, other_layouts, {at, at + seconds, seconds});
          at += seconds;
        }
  }

  // The number of the group of ranks.
  std::size_t group_of(const std::vector<std::int32_t>& ranks) {
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (groups_[i]["ranks"] == TraceJson(ranks)) return i;
    groups_.push_back({{"pg_name", fmt::format("{}", groups_.size())}, {"ranks", ranks}});
    return groups_.size() - 1;
  }

  void add_collective(const Exchange& exchange, const Span& span, std::string name) {
    const std::vector<std::int32_t> ranks =
        mesh_.group(rank_, static_cast<std::size_t>(mesh_.find(exchange.axis)));
    const auto sum = [](const std::vector<std::int64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    const auto place = static_cast<std::size_t>(std::ranges::find(ranks, rank_) - ranks.begin());
    const auto own = [&] { return place < exchange.counts.size() ? exchange.counts[place] : 0; };
    std::string_view collective;
    std::int64_t in = sum(exchange.counts), out = in;
    switch (exchange.kind) {
      case Exchange::Kind::all_reduce: collective = "allreduce"; break;
      case Exchange::Kind::all_gather: collective = "_allgather_base", in = own(); break;
      case Exchange::Kind::reduce_scatter: collective = "_reduce_scatter_base", out = own(); break;
      case Exchange::Kind::all_to_all: {
        const bool equal =
            std::ranges::count(exchange.counts, own()) + std::ranges::count(exchange.takes, own()) ==
            static_cast<std::ptrdiff_t>(2 * ranks.size());
        collective = equal ? "all_to_all" : "all_to_allv";
        out = sum(exchange.takes);
        break;
      }
      default: return add_kernel(std::move(name), communicate, span, {});  // messages
    }
    // PyTorch counts the time from a rank's arrival, too.
    const std::size_t group = group_of(ranks);
    add_event("kernel", std::move(name), communicate, span.begin, span.end - span.begin,
              {{"Collective name", collective},
               {"Process Group Name", groups_[group]["pg_name"]},
               {"Process Group Ranks", fmt::format("[{}]", fmt::join(ranks, ", "))},
               {"Group size", ranks.size()},
               {"In msg nelems", in},
               {"Out msg nelems", out},
               {"dtype", profiler_name(exchange.dtype).message}});
  }

  const program::Program& program_;
  const program::Timeline& timeline_;
  const plan::Mesh& mesh_;
  const std::int32_t rank_;
  std::vector<std::optional<Span>> spans_;  // by unit
  std::map<ProfiledProduct, Total> products_;
  std::map<ProfiledAttention, Total> attentions_;
  std::int64_t operations_ = 0;
  TraceJson groups_ = TraceJson::array(), events_ = TraceJson::array();
};

}  // namespace

std::string print_inductor_trace(const program::Program& program, const program::Timeline& timeline,
                                 const plan::Mesh& mesh, std::int32_t rank) {
  return TraceWriter(program, timeline, mesh, rank).write();
}

Status write_inductor_trace(const sim::Prediction& prediction, const plan::Mesh& mesh,
                            const std::string& path) {
  constexpr std::int32_t kRank = 0;
  for (const sim::RankClass& alike : prediction.classes)
    if (std::ranges::count(alike.ranks, kRank) > 0 &&
        alike.timeline.tasks.size() == alike.program->tasks.size())
      return write_file_atomically(path, print_inductor_trace(*alike.program, alike.timeline, mesh, kRank));
  return user_error("the prediction has no timelines to export");
}

}  // namespace weft::formats
