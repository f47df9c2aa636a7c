#include "weft/formats/model_json.h"

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/formats/model_build.h"
#include "weft/formats/model_file.h"

namespace weft::formats {

Result<plan::Graph> parse_model_json(std::string_view text) {
  WEFT_TRY(file, parse_model_file(text));
  return build_plan(file);
}

Result<plan::Graph> read_model_json(const std::string& path) {
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  WEFT_TRY(text, read_file(path, kMostBytes));
  auto graph = parse_model_json(text);
  if (!graph.ok()) return user_error(fmt::format("{}: {}", path, graph.error().message), graph.error().hint);
  return graph;
}

}  // namespace weft::formats
