#include "weft/app/session/read_plan.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "weft/app/session/command_catalog.h"
#include "weft/app/session/state.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/formats/model_json.h"
#include "weft/language/bind.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::session {
namespace {

constexpr std::int64_t kLargestFile = std::int64_t{256} << 20;

Result<plan::Graph> read_plan_file(const std::string& path) {
  WEFT_TRY(text, read_file(path, kLargestFile));
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return formats::read_model_json(path);
  auto graph = plan::read(text, ops::all());
  if (graph.ok()) return graph;
  Error error = std::move(graph).error();
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

}  // namespace

Result<plan::Graph> read_plan(const std::string& reference) {
  std::error_code unused;
  if (std::filesystem::exists(reference, unused)) return read_plan_file(reference);
  language::Catalog catalog;
  load_known(catalog);
  if (!catalog.models.contains(reference)) {
    const bool is_path = reference.find_first_of("/.") != std::string::npos;
    std::string hint = did_you_mean(reference, language::names_of(catalog.models));
    if (hint.empty()) hint = "a model graph (.json), plan text, or a shipped model: SHOW MODELS lists them";
    return user_error(fmt::format("no such {}: {}", is_path ? "file" : "file or shipped model", reference),
                      hint);
  }
  language::syntax::Name name;
  name.text = reference;
  language::BindOptions options;
  options.mode = language::Mode::infer;
  WEFT_TRY(bound, language::bind(catalog, name, options));
  return std::move(bound.graph);
}

Result<cluster::Device> find_device(const std::string& name) {
  language::Catalog catalog;
  load_known(catalog);
  if (const auto found = catalog.devices.find(name); found != catalog.devices.end()) return found->second;
  std::string hint = did_you_mean(name, language::names_of(catalog.devices));
  if (hint.empty()) hint = "SHOW DEVICES lists them";
  return user_error(fmt::format("unknown device: {}", name), hint);
}

}  // namespace weft::session
