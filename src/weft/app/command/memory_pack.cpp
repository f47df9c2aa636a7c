#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "weft/app/command/memory.h"
#include "weft/app/session/reply.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/formats/buffers_csv.h"
#include "weft/formats/json_node.h"
#include "weft/program/memory/check.h"
#include "weft/program/memory/pack.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostBufferBytes = std::int64_t{256} << 20;

Result<std::int64_t> read_capacity(const std::string& text) {
  if (text.empty()) return memory::kUnlimited;
  const auto read = parse_quantity(text);
  const bool fits = read.ok() &&
                    (read->dimension == Dimension::bytes || read->dimension == Dimension::count) &&
                    read->value >= 0 && read->value < 9.2e18;
  if (!fits)
    return user_error(fmt::format("--capacity: expected {}, found '{}'", name(Dimension::bytes), text),
                      fmt::format("such as {}", example(Dimension::bytes)));
  return static_cast<std::int64_t>(read->value);
}

Result<std::string> answer(const MemoryPack& request) {
  WEFT_TRY(capacity, read_capacity(request.capacity));
  WEFT_TRY(text, read_file(request.file, kMostBufferBytes));
  const auto read = formats::read_buffers_csv(text);
  if (!read.ok()) {
    Error error = read.error();
    error.message = fmt::format("{}: {}", request.file, error.message);
    return error;
  }
  memory::PackOptions options{.capacity = capacity, .alignment = request.alignment};
  // Ten times the usual effort: here a user waits for the best packing, while the planner prefers
  // speed over the last percent.
  options.effort = request.effort > 0 ? request.effort : 10 * options.effort;
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY(packing, memory::pack(read->buffers, options));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Status judged = memory::check(read->buffers, packing, options);
  WEFT_CHECK(judged.ok(), judged.ok() ? "" : judged.error().message);
  const std::int64_t bound = memory::lower_bound(read->buffers, request.alignment);
  if (request.format == session::Format::json) {
    formats::Json json = {{"peak", packing.peak}, {"lower_bound", bound}, {"seconds", seconds}};
    formats::Json& offsets = json["offsets"] = formats::Json::object();
    for (std::size_t i = 0; i < read->ids.size(); ++i) offsets[read->ids[i]] = packing.offsets[i];
    return json.dump(-1, ' ', false, formats::Json::error_handler_t::replace) + "\n";
  }
  std::string shown = fmt::format("{} buffers, peak {} bytes, at least {}\n", read->ids.size(),
                                  print_exact(packing.peak), print_exact(bound));
  for (std::size_t i = 0; i < read->ids.size(); ++i)
    shown += fmt::format("{:<12} at {}\n", read->ids[i], packing.offsets[i]);
  return shown;
}

}  // namespace

session::Reply run(const MemoryPack& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
