#include "weft/measure/device_rates.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/exec/rank.h"
#include "weft/ops/operators.h"
#include "weft/plan/text.h"
#include "weft/program/program.h"

namespace weft::measure {
namespace {

using cluster::Precision;

// Numbers around zero: products of zeros are quicker than any that matter.
void fill_with_numbers(std::span<std::byte> bytes, plan::DType dtype) {
  Random random(1);
  const std::size_t each = static_cast<std::size_t>(plan::size_in_bytes(dtype));
  for (std::size_t at = 0; at + each <= bytes.size(); at += each) {
    const float number = static_cast<float>(random.between(-1000, 1000)) / 1000.0f;
    const auto bits = std::bit_cast<std::uint32_t>(number);
    // The upper half of an f32 is a bf16; as an f16 the same bits are a number of another size, and no infinity.
    const auto half =
        static_cast<std::uint16_t>(dtype == plan::DType::f16 ? (bits >> 16) & 0xbfff : bits >> 16);
    if (each == 4)
      std::memcpy(&bytes[at], &bits, 4);
    else
      std::memcpy(&bytes[at], &half, 2);
  }
}

// Seconds of a step of the plan, the median of some.
Result<double> step_seconds(const std::string& text, const std::shared_ptr<device::Device>& device,
                            int steps) {
  WEFT_TRY(graph, plan::read(text, ops::all()));
  WEFT_TRY(program, program::compile(std::make_shared<plan::Graph>(std::move(graph)),
                                     {.workers = 1, .any_float = true, .accelerated = true, .tiles = false}));
  WEFT_TRY(rank, exec::Rank::start(std::move(program), {.device = device}));
  for (const program::Port& port : rank->program().parameters)
    WEFT_TRY_STATUS(
        rank->write(port, [&](std::span<std::byte> bytes) { fill_with_numbers(bytes, port.place.dtype); }));
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

// a b, (a b) b, ..: each product waits for the one before it.
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
  WEFT_TRY(moved,
           step_seconds(fmt::format("plan memory\n%0 = parameter {{name=x, type=f32[i={0}], init=zeros}}\n"
                                    "%1 = relu %0 : f32[i={0}]\nreturn y=%1\n",
                                    kElements),
                        what.as_is, steps));
  rates.bytes_per_second = 8.0 * static_cast<double>(kElements) / moved;
  note("launches");
  constexpr int kFew = 32, kMany = 1056;
  WEFT_TRY(few, step_seconds(products_text("f32", 16, kFew), what.as_is, steps));
  WEFT_TRY(many, step_seconds(products_text("f32", 16, kMany), what.as_is, steps));
  rates.launch_seconds = std::max((many - few) / (kMany - kFew), 0.0);
  note("copies");
  WEFT_TRY(in, copy_rate(*what.as_is, true, steps));
  WEFT_TRY(out, copy_rate(*what.as_is, false, steps));
  rates.in_bytes_per_second = in;
  rates.out_bytes_per_second = out;
  return rates;
}

}  // namespace weft::measure
