#include "weft/plan/graph/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::plan {
namespace {

struct Spelling {
  std::string_view text;
  DType dtype;
};

constexpr std::array<std::string_view, kAllDTypes.size()> kNames = {"f32", "f64",  "bf16",   "f16",   "i32",
                                                                    "i64", "bool", "f8e4m3", "f8e5m2"};
constexpr std::array<std::int64_t, kAllDTypes.size()> kSizes = {4, 8, 2, 2, 4, 8, 1, 1, 1};

constexpr std::array<Spelling, 21> kSpellings = {{{"f32", DType::f32},
                                                  {"float32", DType::f32},
                                                  {"float", DType::f32},
                                                  {"f64", DType::f64},
                                                  {"float64", DType::f64},
                                                  {"double", DType::f64},
                                                  {"bf16", DType::bf16},
                                                  {"bfloat16", DType::bf16},
                                                  {"f16", DType::f16},
                                                  {"float16", DType::f16},
                                                  {"half", DType::f16},
                                                  {"i32", DType::i32},
                                                  {"int32", DType::i32},
                                                  {"i64", DType::i64},
                                                  {"int64", DType::i64},
                                                  {"bool", DType::boolean},
                                                  {"boolean", DType::boolean},
                                                  {"f8e4m3", DType::f8e4m3},
                                                  {"float8_e4m3fn", DType::f8e4m3},
                                                  {"f8e5m2", DType::f8e5m2},
                                                  {"float8_e5m2", DType::f8e5m2}}};

}  // namespace

std::string_view name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }
std::int64_t size_in_bytes(DType dtype) { return kSizes[static_cast<std::size_t>(dtype)]; }
bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
bool is_real(DType dtype) { return !is_integer(dtype) && dtype != DType::boolean; }

std::optional<DType> find_dtype(std::string_view text) {
  for (const Spelling& spelling : kSpellings)
    if (spelling.text == text) return spelling.dtype;
  return std::nullopt;
}

std::span<const std::string_view> dtype_spellings() {
  static constexpr auto kTexts = [] {
    std::array<std::string_view, kSpellings.size()> texts;
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = kSpellings[i].text;
    return texts;
  }();
  return kTexts;
}

std::string dtype_names() { return fmt::format("{}", fmt::join(kNames, ", ")); }

}  // namespace weft::plan
