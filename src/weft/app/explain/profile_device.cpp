#include "weft/app/explain/profile_device.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "weft/app/explain/profile_cluster.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using cluster::Precision;

constexpr std::array<Precision, 4> kMeasured = {Precision::f32, Precision::tf32, Precision::f16,
                                                Precision::bf16};

std::string in_teraflops(double flops) { return fmt::format("{:.4g} TFLOP/s", flops / 1e12); }

}  // namespace

Result<std::string> print_device(const measure::DeviceRates& rates, std::string_view model,
                                 std::string_view name) {
  WEFT_TRY_STATUS(check_cluster_name(name));
  std::string text = fmt::format(
      "-- {}, measured by weft profile --device gpu.\n--\n-- products, TFLOP/s by side\n--", model);
  std::vector<std::int64_t> sides;
  for (const measure::ProductRate& rate : rates.products)
    if (std::find(sides.begin(), sides.end(), rate.side) == sides.end()) sides.push_back(rate.side);
  text += fmt::format("{:>7}", "");
  for (const std::int64_t side : sides) text += fmt::format("{:>8}", side);
  text += "\n";
  std::string stated, kernels;
  for (const Precision precision : kMeasured) {
    if (rates.best(precision) <= 0) continue;
    text += fmt::format("--{:>7}", cluster::name(precision));
    for (const measure::ProductRate& rate : rates.products)
      if (rate.precision == precision) text += fmt::format("{:>8.4g}", rate.flops_per_second / 1e12);
    text += "\n";
    stated += fmt::format("{} = {}, ", cluster::name(precision), in_teraflops(rates.best(precision)));
  }
  for (std::size_t k = 0; k < cluster::kKernelKinds; ++k) {
    const auto kind = static_cast<cluster::KernelKind>(k);
    if (rates.typical(kind) <= 0) continue;
    for (const measure::KernelRate& rate : rates.kernels)
      if (rate.kind == kind)
        text += fmt::format("-- {}, {}: {}\n", cluster::name(kind), rate.shape,
                            in_teraflops(rate.flops_per_second));
    kernels += fmt::format(", {} = {}", cluster::name(kind), in_teraflops(rates.typical(kind)));
  }
  text += fmt::format("-- copies from the host {}, to it {}\n", print_rate(rates.in_bytes_per_second),
                      print_rate(rates.out_bytes_per_second));
  for (const measure::Beside& pair : rates.beside)
    text += fmt::format("-- {} concurrent with {}: {:.0f} and {:.0f} % of the rate alone\n", pair.computing,
                        pair.moving, 100 * pair.computes, 100 * pair.moves);
  text +=
      fmt::format("CREATE OR REPLACE DEVICE {} ({}memory = {}, bandwidth = {}, launch = {}, reach = 1{});\n",
                  name, stated, print_bytes(static_cast<double>(rates.memory_bytes)),
                  print_rate(rates.bytes_per_second), print_seconds(rates.launch_seconds), kernels);
  return text;
}

}  // namespace weft::explain
