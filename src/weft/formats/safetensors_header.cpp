#include "weft/formats/safetensors_header.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMostDims = 64;

// The parser's state. Each state allows a few kinds of token; any other ends parsing, and `problem`
// says what was expected.
enum class Place : std::uint8_t { before, names, metadata, tensor, shape, offsets, after };

class SafetensorsReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool start_object(std::size_t) override {
    if (place_ == Place::before) return go(Place::names);
    if (place_ != Place::names) return refuse("an object");
    if (key_ == kMetadata) return go(Place::metadata);
    header.tensors.push_back({.name = key_, .dtype = {}, .shape = {}});
    fields_.clear();
    return go(Place::tensor);
  }

  bool end_object() override {
    if (place_ == Place::names) return go(Place::after);
    if (place_ == Place::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.contains(field)) return fail(fmt::format("{}: expected {}, found none", where(), field));
    }
    return go(Place::names);
  }

  bool key(std::string& text) override {
    key_ = std::move(text);
    if (place_ == Place::names && !names_.insert(key_).second)
      return fail(fmt::format("expected every name once, found '{}' twice", shown(key_)));
    if (place_ == Place::metadata && header.metadata.contains(key_))
      return fail(fmt::format("metadata: expected every key once, found '{}' twice", shown(key_)));
    if (place_ != Place::tensor) return true;
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      return fail(
          fmt::format("{}: expected dtype, shape and data_offsets, found '{}'", where(), shown(key_)));
    if (!fields_.insert(key_).second) return fail(fmt::format("{}: found {} twice", where(), key_));
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::tensor && key_ == "shape") return go(Place::shape);
    if (place_ == Place::tensor && key_ == "data_offsets") {
      offsets_.clear();
      return go(Place::offsets);
    }
    return refuse("a list");
  }

  bool end_array() override {
    if (place_ == Place::offsets) {
      if (offsets_.size() != 2 || offsets_[0] > offsets_[1])
        return fail(fmt::format("{}: expected data_offsets [begin, end], found [{}]", where(),
                                fmt::join(offsets_, ", ")));
      header.tensors.back().begin = offsets_[0];
      header.tensors.back().end = offsets_[1];
    }
    return go(Place::tensor);
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header.metadata.emplace(key_, std::move(text));
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") return refuse("a string");
    header.tensors.back().dtype = std::move(text);
    return true;
  }

  bool number_unsigned(std::uint64_t number) override {
    if (!std::in_range<std::int64_t>(number)) return refuse(std::to_string(number));
    if (place_ == Place::shape) {
      auto& shape = header.tensors.back().shape;
      if (shape.size() == kMostDims)
        return fail(fmt::format("{}: expected at most {} dims, found more", where(), kMostDims));
      shape.push_back(static_cast<std::int64_t>(number));
      return true;
    }
    if (place_ != Place::offsets || offsets_.size() > 2) return refuse("a number");
    offsets_.push_back(static_cast<std::int64_t>(number));
    return true;
  }

  bool number_integer(std::int64_t number) override { return refuse(std::to_string(number)); }
  bool number_float(double, const std::string& text) override { return refuse(shown(text)); }
  bool boolean(bool truth) override { return refuse(truth ? "true" : "false"); }
  bool null() override { return refuse("null"); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return broken_at(position);
  }

  bool broken_at(std::size_t position) {
    return fail(fmt::format("expected JSON, found an error at byte {} of the header", position));
  }

 private:
  bool go(Place place) {
    place_ = place;
    return true;
  }

  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }

  std::string where() const { return fmt::format("tensor '{}'", shown(header.tensors.back().name)); }

  // Reports what the current state allows in place of `found`.
  bool refuse(std::string_view found) {
    switch (place_) {
      case Place::names:
        return fail(fmt::format("expected an object for '{}', found {}", shown(key_), found));
      case Place::metadata:
        return fail(fmt::format("metadata '{}': expected a string, found {}", shown(key_), found));
      case Place::shape:
      case Place::offsets:
        return fail(fmt::format("{}: expected whole numbers in {}, found {}", where(), key_, found));
      case Place::tensor:
        return fail(fmt::format("{}: expected {} in {}, found {}", where(),
                                key_ == "dtype" ? "a string" : "a list", key_, found));
      default: return fail(fmt::format("expected an object, found {}", found));
    }
  }

  Place place_ = Place::before;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;  // of the current tensor
  std::vector<std::int64_t> offsets_;
};

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(std::string_view json, std::string_view path) {
  SafetensorsReader reader;
  // The parser treats a zero byte as the end of the text and would ignore the rest.
  const std::size_t zero = json.find('\0');
  if (zero != std::string_view::npos)
    reader.broken_at(zero + 1);
  else if (nlohmann::json::sax_parse(json, &reader))
    return std::move(reader.header);
  return user_error(fmt::format("{}: {}", path, reader.problem));
}

}  // namespace weft::formats
