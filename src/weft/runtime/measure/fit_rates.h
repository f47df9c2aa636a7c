// weft/runtime/measure/fit_rates.h -- fits a device's rates (plan/cluster/rates.h) to measured kernels.
//
//   WEFT_TRY(rows, read_rate_rows(csv, "gemm.csv"));
//   WEFT_TRY(fits, fit_rates(rows, {}));           // one per device of the rows
//   cluster::print(fits[0].rates)
//
// Rows fall into two halves by a hash of their shape: (n, k) of a product; the heads of attention; the
// layer of experts and Mamba-2; the GPUs of a collective. One half is fitted and the other gives the
// errors. The rates returned are then fitted to both.
//
// A table's base takes the fastest rows' rates. Its grids are fitted to the logarithm of what is left,
// by least squares with weights of 1/residual, which minimizes absolute errors. A penalty on second
// differences fills nodes without rows. Collectives are fitted over all devices of the rows at once,
// since tables rarely have every collective for every number of GPUs: see fit_collectives.cpp.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/rates.h"

namespace weft::measure {

struct RateRow {
  std::string device;
  cluster::RateKind kind = cluster::RateKind::product;
  std::string variant;
  std::vector<double> sizes;  // as rate_sizes() names them
  double seconds = 0;
};

// CSV whose first line names the columns. They tell the kind: gpu, the sizes, us, and dtype, kernel or
// collective. `path` is for errors. `device` names rows without a column `gpu`.
Result<std::vector<RateRow>> read_rate_rows(std::string_view text, std::string_view path,
                                            std::string_view device = {});

// Whether the row is in the half that is fitted.
bool is_fitted(const RateRow& row);

// Errors of one table on rows.
struct RateErrors {
  std::string device;
  cluster::RateKind kind = cluster::RateKind::product;
  std::string part, variant;   // part of the rows: "m > 512", or empty
  std::int64_t rows = 0;       // that the errors are of
  double median = 0, p90 = 0;  // relative
};

struct FittedRates {
  cluster::Rates rates;
  std::vector<RateErrors> errors;  // of the half held out, by a fit to the other half
};

struct FitOptions {
  std::string device;  // only this one; empty: all of the rows
  std::function<void(std::string_view)> on_note = {};
};
Result<std::vector<FittedRates>> fit_rates(const std::vector<RateRow>& rows, const FitOptions& options);

// Errors of rates on rows of their device, by table; rows without a table are left out.
std::vector<RateErrors> errors_of(const cluster::Rates& rates, const std::vector<RateRow>& rows);

// The tables of collectives of every device in the rows, by device.
std::vector<std::pair<std::string, std::vector<cluster::RateTable>>> fit_collectives(
    const std::vector<const RateRow*>& rows);

}  // namespace weft::measure
