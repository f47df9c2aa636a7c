// weft/app/command/profile_fit.h -- `weft profile fit`: the rates of a device from tables of measured kernels.
//
//   weft profile fit gemm.csv.gz attention_prefill.csv.gz --device mine -o mine.rates
//   weft profile fit gemm.csv.gz --check            errors of the shipped rates on the tables
//
// The answer is the errors on held-out shapes; the rates go to -o, or to a folder if the tables are of
// several devices. See runtime/measure/fit_rates.h.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct ProfileFit {
  std::vector<std::string> files;
  std::string device = {};   // only its rows; names the rows of a table without a column gpu
  std::string to = {};       // a file, or a folder that exists; empty: none
  std::string comment = {};  // first lines of the rates: the tables' source and licence
  bool check = false;        // fit nothing
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
  std::function<void(std::string_view)> on_note = {};
};
session::Reply run(const ProfileFit& request);

}  // namespace weft::command
