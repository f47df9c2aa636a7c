#include "weft/plan/dtype.h"

namespace weft::plan {
namespace {

struct Spelling {
  std::string_view text;
  DType dtype;
};

constexpr std::array<std::string_view, 7> kNames = {"f32", "f64", "bf16", "f16", "i32", "i64", "bool"};
constexpr std::array<std::int64_t, 7> kSizes = {4, 8, 2, 2, 4, 8, 1};

constexpr std::array<Spelling, 17> kSpellings = {{{"f32", DType::f32},
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
                                                  {"boolean", DType::boolean}}};

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

}  // namespace weft::plan
