#include "weft/runtime/measure/device_rates.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/convolution_cost.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/program/tasks/program.h"
#include "weft/runtime/exec/rank.h"

namespace weft::measure {
namespace {

using cluster::Precision;

// Fills with values around zero, because products of zeros are faster. Repeats the same values,
// because drawing them all would take seconds for a measurement of milliseconds.
void fill_with_numbers(std::span<std::byte> bytes, plan::DType dtype) {
  Random random(1);
  constexpr std::size_t kDrawn = std::size_t{1} << 20;
  const std::size_t each = static_cast<std::size_t>(plan::size_in_bytes(dtype));
  for (std::size_t at = 0; at + each <= std::min(bytes.size(), kDrawn); at += each) {
    const float number = static_cast<float>(random.between(-1000, 1000)) / 1000.0f;
    const auto bits = std::bit_cast<std::uint32_t>(number);
    // The upper half of an f32 is a bf16. As f16 the same bits are another value; the mask excludes
    // infinities.
    const auto half =
        static_cast<std::uint16_t>(dtype == plan::DType::f16 ? (bits >> 16) & 0xbfff : bits >> 16);
    if (each == 4)
      std::memcpy(&bytes[at], &bits, 4);
    else
      std::memcpy(&bytes[at], &half, 2);
  }
  for (std::size_t at = kDrawn; at < bytes.size(); at += kDrawn)
    std::memcpy(&bytes[at], bytes.data(), std::min(kDrawn, bytes.size() - at));
}

// Starts the plan on the device and fills its parameters.
Result<std::unique_ptr<exec::Rank>> start(const std::string& text,
                                          const std::shared_ptr<device::Device>& device) {
  WEFT_TRY(graph, plan::read(text, ops::all()));
  WEFT_TRY(program, program::compile(std::make_shared<plan::Graph>(std::move(graph)),
                                     {.workers = 1, .any_float = true, .accelerated = true, .tiles = false}));
  WEFT_TRY(rank, exec::Rank::start(std::move(program), {.device = device}));
  for (const program::Port& port : rank->program().parameters)
    WEFT_TRY_STATUS(
        rank->write(port, [&](std::span<std::byte> bytes) { fill_with_numbers(bytes, port.place.dtype); }));
  return rank;
}

// The median step time of the plan in seconds.
Result<double> step_seconds(const std::string& text, const std::shared_ptr<device::Device>& device,
                            int steps) {
  WEFT_TRY(rank, start(text, device));
  constexpr int kWarm = 3;
  std::vector<double> seconds;
  for (int step = 0; step < kWarm + steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    WEFT_TRY_STATUS(rank->step());
    if (step >= kWarm)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

// a b, (a b) b, ..: each product depends on the previous one.
std::string products_text(std::string_view dtype, std::int64_t side, int products) {
  std::string text = fmt::format(
      "plan products\n%0 = parameter {{name=a, type={0}[m={1},k={1}], init=zeros}}\n"
      "%1 = parameter {{name=b, type={0}[k={1},n={1}], init=zeros}}\n"
      "%2 = parameter {{name=c, type={0}[n={1},k={1}], init=zeros}}\n",
      dtype, side);
  for (int i = 0; i < products; ++i) {
    const bool even = i % 2 == 0;
    text += fmt::format("%{} = contract %{}, %{} {{to=[m,{}]}} : {}[m={},{}={}]\n", i + 3, i == 0 ? 0 : i + 2,
                        even ? 1 : 2, even ? "n" : "k", dtype, side, even ? "n" : "k", side);
  }
  return text + fmt::format("return y=%{}\n", products + 2);
}

// A memory-bound loop that reads and writes.
std::string memory_text(std::int64_t elements) {
  return fmt::format(
      "plan memory\n%0 = parameter {{name=x, type=f32[i={0}], init=zeros}}\n%1 = relu %0 : "
      "f32[i={0}]\nreturn "
      "y=%1\n",
      elements);
}

// Runs four independent calls, so that launch time does not count. Rates are based on the
// operators' own FLOP counts. `figures` holds what is known of the device so far.
Result<KernelRate> kernel_rate(cluster::KernelKind kind, std::string shape, std::string_view sources,
                               std::string_view call, const std::shared_ptr<device::Device>& device,
                               int steps, const cluster::Device& figures) {
  constexpr int kTimes = 4;
  constexpr double kMostApart = 0.75;
  std::string text = fmt::format("plan kernels\n{}", sources), returned;
  int next = static_cast<int>(std::ranges::count(sources, '\n'));
  for (int i = 0; i < kTimes; ++i) {
    const int results = kind == cluster::KernelKind::attention            ? 2
                        : kind == cluster::KernelKind::attention_gradient ? 3
                                                                          : 1;
    std::string made;
    for (int r = 0; r < results; ++r) {
      made += fmt::format("{}%{}", r == 0 ? "" : ", ", next);
      returned += fmt::format("{}y{}=%{}", returned.empty() ? "" : ", ", next, next);
      ++next;
    }
    text += fmt::format("{} = {}\n", made, call);
  }
  text += fmt::format("return {}\n", returned);
  WEFT_TRY(graph, plan::read(text, ops::all()));
  double flops = 0, efficiency = 1, apart = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (node.input_count() == 0) continue;
    flops += node.op().work(node).flops;
    if (ops::is_attention_operator(node.op())) efficiency = cost::attention_efficiency(node);
    if (!ops::is_convolution(node.op())) continue;
    const cost::ConvolutionCost cost = cost::convolution_cost(node, figures);
    efficiency = cost.efficiency;
    apart += cost.layout_conversion_seconds;
  }
  WEFT_TRY(seconds, step_seconds(text, device, steps));
  // Limits the share of time spent on layout conversion, in case it was overestimated.
  efficiency *= 1 - std::min(apart / seconds, kMostApart);
  return KernelRate{kind, std::move(shape), flops / seconds, efficiency};
}

Result<std::vector<KernelRate>> kernel_rates(const std::shared_ptr<device::Device>& device, int steps,
                                             const cluster::Device& figures) {
  std::vector<KernelRate> rates;
  using enum cluster::KernelKind;
  struct Heads {
    int b, h, s, e;
  };
  for (const Heads& of : {Heads{16, 12, 1024, 64}, Heads{4, 32, 2048, 64}, Heads{2, 16, 4096, 128}}) {
    const std::string q = fmt::format("bf16[b={},s={},h={},e={}]", of.b, of.s, of.h, of.e),
                      k = fmt::format("bf16[b={},t={},h={},e={}]", of.b, of.s, of.h, of.e),
                      sums = fmt::format("f32[b={},s={},h={}]", of.b, of.s, of.h);
    const std::string sources = fmt::format(
        "%0 = parameter {{name=q, type={0}}}\n%1 = parameter {{name=k, type={1}}}\n%2 = parameter {{name=v, "
        "type={1}}}\n"
        "%3 = parameter {{name=o, type={0}}}\n%4 = parameter {{name=l, type={2}}}\n",
        q, k, sums);
    const std::string shape = fmt::format("b {} h {} s {} e {}", of.b, of.h, of.s, of.e),
                      how = "{over=t, along=s, inner=[e], causal=1, divisor=8}";
    WEFT_TRY(forward,
             kernel_rate(attention, shape, sources, "attention %0, %1, %2 " + how, device, steps, figures));
    rates.push_back(std::move(forward));
    WEFT_TRY(backward,
             kernel_rate(attention_gradient, shape, sources,
                         "attention-gradient %0, %1, %2, %3, %4, %3 " + how, device, steps, figures));
    rates.push_back(std::move(backward));
  }
  struct Image {
    int channels, side, kernel;
  };
  // Kernels of size 1 are left out: they are memory-bound matrix products.
  for (const Image& of : {Image{64, 56, 3}, Image{128, 28, 3}, Image{256, 14, 3}, Image{512, 7, 3}}) {
    const std::string x = fmt::format("bf16[b=64,c={0},h={1},w={1}]", of.channels, of.side),
                      y = fmt::format("bf16[b=64,o={0},h={1},w={1}]", of.channels, of.side),
                      w = fmt::format("bf16[o={0},c={0},r={1},q={1}]", of.channels, of.kernel);
    const std::string sources = fmt::format(
        "%0 = parameter {{name=x, type={}}}\n%1 = parameter {{name=w, type={}}}\n%2 = parameter {{name=y, "
        "type={}}}\n",
        x, w, y);
    const std::string shape = fmt::format("b 64 c {} side {} kernel {}", of.channels, of.side, of.kernel);
    const auto call = [&](std::string_view name, std::string_view operands, std::string_view type) {
      return fmt::format("{} {} {{padding={}{}}}", name, operands, of.kernel / 2,
                         type.empty() ? std::string() : fmt::format(", type={}", type));
    };
    WEFT_TRY(forward,
             kernel_rate(convolution, shape, sources, call("conv2d", "%0, %1", ""), device, steps, figures));
    rates.push_back(std::move(forward));
    WEFT_TRY(input, kernel_rate(convolution_gradient, shape, sources,
                                call("conv2d-input-gradient", "%2, %1", x), device, steps, figures));
    rates.push_back(std::move(input));
    WEFT_TRY(weight, kernel_rate(convolution_gradient, shape, sources,
                                 call("conv2d-weight-gradient", "%2, %0", w), device, steps, figures));
    rates.push_back(std::move(weight));
  }
  return rates;
}

Result<std::vector<Beside>> overlaps(const std::shared_ptr<device::Device>& device, bool quick) {
  std::vector<Doing> computing;
  const std::int64_t side = quick ? 1024 : 4096, elements = std::int64_t{1} << (quick ? 24 : 27);
  for (const auto& [name, text] : {std::pair("products of bf16", products_text("bf16", side, 2)),
                                   std::pair("a loop over memory", memory_text(elements))}) {
    WEFT_TRY(rank, start(text, device));
    computing.push_back({name, [rank = std::shared_ptr(std::move(rank))] { return rank->step(); }});
  }
  WEFT_TRY(moving, movements(device));
  return measure_overlap(computing, moving, std::chrono::milliseconds(quick ? 50 : 300));
}

Result<double> copy_rate(device::Device& device, bool in, int times) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  WEFT_TRY(memory, device.allocate(kBytes));
  WEFT_TRY(host, device.allocate_host(kBytes));
  WEFT_TRY(stream, device.make_stream({}));
  double best = 0;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (in)
      stream->copy_in(memory->address(), host->bytes());
    else
      stream->copy_out(host->bytes(), memory->address());
    WEFT_TRY_STATUS(stream->synchronize());
    best =
        std::max(best, static_cast<double>(kBytes) /
                           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

double DeviceRates::best(Precision precision) const {
  double most = 0;
  for (const ProductRate& rate : products)
    if (rate.precision == precision) most = std::max(most, rate.flops_per_second);
  return most;
}

double DeviceRates::typical(cluster::KernelKind kind) const {
  double inverse = 0, count = 0;
  for (const KernelRate& rate : kernels)
    if (rate.kind == kind && rate.flops_per_second > 0)
      inverse += rate.efficiency / rate.flops_per_second, count += 1;
  return count > 0 ? count / inverse : 0;
}

Result<DeviceRates> measure_device(const DeviceToMeasure& what) {
  const auto note = [&](std::string_view text) {
    if (what.on_note) what.on_note(text);
  };
  const int steps = what.quick ? 5 : 20;
  DeviceRates rates;
  rates.memory_bytes = what.as_is->available_memory();
  struct Kind {
    Precision precision;
    std::string_view dtype;
    std::shared_ptr<device::Device> device;
  };
  for (const Kind& kind :
       {Kind{Precision::f32, "f32", what.exact}, Kind{Precision::tf32, "f32", what.as_is},
        Kind{Precision::f16, "f16", what.as_is}, Kind{Precision::bf16, "bf16", what.as_is}}) {
    if (kind.device == nullptr) continue;
    note(fmt::format("products of {}", cluster::name(kind.precision)));
    for (const std::int64_t side : {256, 512, 1024, 2048, 4096, 8192}) {
      if (what.quick && side != 1024 && side != 8192) continue;
      const int products = side <= 1024 ? 64 : side <= 4096 ? 16 : 4;
      WEFT_TRY(seconds, step_seconds(products_text(kind.dtype, side, products), kind.device, steps));
      const auto n = static_cast<double>(side);
      rates.products.push_back({kind.precision, side, 2 * n * n * n * products / seconds});
    }
  }
  note("memory");
  constexpr std::int64_t kElements = std::int64_t{1} << 28;
  WEFT_TRY(moved, step_seconds(memory_text(kElements), what.as_is, steps));
  rates.bytes_per_second = 8.0 * static_cast<double>(kElements) / moved;
  note("launches");
  constexpr int kFew = 32, kMany = 1056;
  WEFT_TRY(few, step_seconds(products_text("f32", 16, kFew), what.as_is, steps));
  WEFT_TRY(many, step_seconds(products_text("f32", 16, kMany), what.as_is, steps));
  rates.launch_seconds = std::max((many - few) / (kMany - kFew), 0.0);
  note("attention and convolutions");
  cluster::Device figures;
  figures.memory_bytes_per_second = rates.bytes_per_second;
  figures.launch_seconds = rates.launch_seconds;
  WEFT_TRY(kernels, kernel_rates(what.as_is, steps, figures));
  rates.kernels = std::move(kernels);
  note("copies");
  WEFT_TRY(in, copy_rate(*what.as_is, true, steps));
  WEFT_TRY(out, copy_rate(*what.as_is, false, steps));
  rates.in_bytes_per_second = in;
  rates.out_bytes_per_second = out;
  note("overlap of computation and transfers");
  WEFT_TRY(beside, overlaps(what.as_is, what.quick));
  rates.beside = std::move(beside);
  return rates;
}

}  // namespace weft::measure
