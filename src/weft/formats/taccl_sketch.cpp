#include "weft/formats/taccl_sketch.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/json_node.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using synthesis::Sketch;
using synthesis::SketchLine;

constexpr std::int32_t kMostSketched = 1 << 16;  // nodes, devices, offsets

class SketchReader {
 public:
  SketchReader(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  Result<Sketch> read() {
    auto parsed = parse_json(text_);
    if (!parsed.ok()) return wrong(parsed.error().message);
    const Json& json = *parsed;
    if (!json.is_object()) return wrong("expected an object");
    WEFT_TRY(nodes, whole(json, "nnodes", 1));
    sketch_.nodes = nodes;
    sketch_.name = std::string(path_);
    if (const auto inside = json.find("intranode_sketch"); inside != json.end() && inside->is_object())
      if (const auto switches = inside->find("switches"); switches != inside->end()) {
        if (!switches->is_array()) return wrong("expected switches, a list of lists of devices");
        for (const Json& one : *switches) WEFT_TRY_STATUS(add("switches", SketchLine::Kind::switch_, 0, one));
      }
    if (const auto between = json.find("internode_sketch"); between != json.end() && between->is_object()) {
      WEFT_TRY_STATUS(read_map(*between, "internode_conn", SketchLine::Kind::connection));
      WEFT_TRY_STATUS(read_map(*between, "gpus_to_sender_rev_map", SketchLine::Kind::relay));
    }
    if (const auto offsets = json.find("symmetry_offsets"); offsets != json.end()) {
      if (!offsets->is_array()) return wrong("expected symmetry_offsets, a list of pairs");
      for (const Json& pair : *offsets) {
        if (!pair.is_array() || pair.size() != 2 || !is_whole(pair[0]) || !is_whole(pair[1]))
          return wrong("expected symmetry_offsets, a list of pairs of an offset and a size");
        WEFT_TRY_STATUS(add("symmetry_offsets", SketchLine::Kind::symmetry, pair[0].get<std::int32_t>(),
                            Json::array({pair[1]}), pair.dump()));
      }
    }
    if (const auto parameters = json.find("hyperparameters");
        parameters != json.end() && parameters->is_object())
      if (const auto chunks = parameters->find("input_chunkup"); chunks != parameters->end()) {
        if (!is_whole(*chunks)) return wrong("expected input_chunkup, a whole number");
        sketch_.chunks = chunks->get<std::int32_t>();
        WEFT_TRY_STATUS(
            add("input_chunkup", SketchLine::Kind::chunks, sketch_.chunks, Json::array(), chunks->dump()));
      }
    return std::move(sketch_);
  }

 private:
  Error wrong(std::string_view text) const { return user_error(fmt::format("{}: {}", path_, text)); }

  static bool is_whole(const Json& json) {
    return json.is_number_integer() && json.get<double>() >= -kMostSketched &&
           json.get<double>() <= kMostSketched;
  }

  Result<std::int32_t> whole(const Json& json, const char* key, std::int32_t least) const {
    const auto found = json.find(key);
    if (found == json.end() || !is_whole(*found) || found->get<std::int32_t>() < least)
      return wrong(fmt::format("expected {}, a whole number of at least {}", key, least));
    return found->get<std::int32_t>();
  }

  // The line of an entry of a key, as far as a text search can tell.
  std::int32_t line_of(std::string_view key, std::string_view entry) {
    std::size_t place = text_.find(fmt::format("\"{}\"", key));
    if (place == std::string_view::npos) return 1;
    if (!entry.empty()) {
      const std::size_t inner = text_.find(fmt::format("\"{}\"", entry), place + key.size() + 2);
      if (inner != std::string_view::npos) place = inner;
    }
    return 1 + static_cast<std::int32_t>(std::ranges::count(text_.substr(0, place), '\n'));
  }

  Status add(std::string_view key, SketchLine::Kind kind, std::int32_t device, const Json& devices,
             std::string text = {}, std::string_view entry = {}) {
    SketchLine line{kind, line_of(key, entry), {}, device, {}};
    if (!devices.is_array()) return wrong(fmt::format("expected a list of devices in {}", key));
    for (const Json& one : devices) {
      if (!is_whole(one)) return wrong(fmt::format("expected a list of devices in {}", key));
      line.devices.push_back(one.get<std::int32_t>());
    }
    line.text = fmt::format("{} {}", key, text.empty() ? shown(devices.dump()) : text);
    sketch_.lines.push_back(std::move(line));
    return {};
  }

  Status read_map(const Json& json, const char* key, SketchLine::Kind kind) {
    const auto found = json.find(key);
    if (found == json.end()) return {};
    if (!found->is_object()) return wrong(fmt::format("expected {}, an object of lists", key));
    for (const auto& [name, devices] : found->items()) {
      const auto device = read_number<std::int32_t>(name, 0, kMostSketched);
      if (!device)
        return wrong(fmt::format("{}: expected the number of a device, found {}", key, shown(name)));
      WEFT_TRY_STATUS(
          add(key, kind, *device, devices, fmt::format("\"{}\": {}", *device, shown(devices.dump())), name));
    }
    return {};
  }

  std::string_view text_, path_;
  Sketch sketch_;
};

}  // namespace

Result<Sketch> read_taccl_sketch(std::string_view text, std::string_view path) {
  return SketchReader(text, path).read();
}

}  // namespace weft::formats
