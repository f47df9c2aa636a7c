// bench/support/corpus.h -- location of published files, beside the checkout.
#pragma once
#include <filesystem>
#include <string_view>

namespace weft::bench {

inline std::filesystem::path corpus(std::string_view name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus" / name;
}

}  // namespace weft::bench
