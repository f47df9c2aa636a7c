#include "weft/app/command/profile_fit.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "weft/app/explain/rate_errors.h"
#include "weft/app/session/command_catalog.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/formats/gzip.h"
#include "weft/runtime/measure/fit_rates.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostTableBytes = std::int64_t{512} << 20;

Result<std::vector<measure::RateRow>> read_tables(const ProfileFit& request) {
  if (request.files.empty())
    return user_error("expected tables of measured kernels", "weft profile fit gemm.csv");
  std::vector<measure::RateRow> all;
  for (const std::string& path : request.files) {
    WEFT_TRY(text, read_file(path, kMostTableBytes));
    if (path.ends_with(".gz")) {
      WEFT_TRY(inflated, formats::inflate_gzip(text, kMostTableBytes, path));
      text = std::move(inflated);
    }
    WEFT_TRY(rows, measure::read_rate_rows(text, path, request.device));
    all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  }
  return all;
}

std::string print_errors(const ProfileFit& request, const std::vector<measure::RateErrors>& errors) {
  return request.format == session::Format::json ? explain::print_json(errors)
                                                 : explain::print_text(errors, request.width);
}

// Errors of the rates that devices of the catalog have.
Result<std::string> check_rates(const ProfileFit& request, const std::vector<measure::RateRow>& rows) {
  language::Catalog catalog;
  session::load_known(catalog);
  std::set<std::string> names;
  for (const measure::RateRow& row : rows)
    if (request.device.empty() || row.device == request.device) names.insert(row.device);
  if (names.empty()) return user_error(fmt::format("no rows of the device {}", request.device));
  std::vector<measure::RateErrors> errors;
  for (const std::string& name : names) {
    const auto device = catalog.devices.find(name);
    if (device == catalog.devices.end()) {
      std::vector<std::string_view> known;
      for (const auto& [other, is] : catalog.devices) known.push_back(other);
      const std::string hint = did_you_mean(name, known);
      return user_error(fmt::format("unknown device: {}", name),
                        hint.empty() ? "weft -c 'SHOW DEVICES' lists them" : hint);
    }
    if (device->second.rates == nullptr)
      return user_error(fmt::format("the device {} has no rates", name),
                        "weft profile fit without --check fits some");
    cluster::Rates rates = *device->second.rates;
    rates.device = name;
    const auto found = errors_of(rates, rows);
    errors.insert(errors.end(), found.begin(), found.end());
  }
  return print_errors(request, errors);
}

Result<std::string> fit_tables(const ProfileFit& request) {
  WEFT_TRY(rows, read_tables(request));
  if (request.check) return check_rates(request, rows);
  WEFT_TRY(fits, measure::fit_rates(rows, {.device = request.device, .on_note = request.on_note}));
  const bool folder = !request.to.empty() && std::filesystem::is_directory(request.to);
  if (!request.to.empty() && !folder && fits.size() > 1)
    return user_error(fmt::format("the tables have {} devices, and {} is one file", fits.size(), request.to),
                      "name one of them with --device, or a folder with -o");
  std::vector<measure::RateErrors> errors;
  for (measure::FittedRates& of : fits) {
    errors.insert(errors.end(), of.errors.begin(), of.errors.end());
    of.rates.comment = request.comment;
    if (request.to.empty()) continue;
    const std::string path =
        folder ? (std::filesystem::path(request.to) / (of.rates.device + ".rates")).string() : request.to;
    WEFT_TRY_STATUS(write_file_atomically(path, cluster::print(of.rates)));
  }
  return print_errors(request, errors);
}

}  // namespace

session::Reply run(const ProfileFit& request) { return session::to_reply(fit_tables(request)); }

}  // namespace weft::command
