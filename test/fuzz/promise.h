// promise.h -- the assertion of fuzz targets: it prints what was violated and aborts.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weft::fuzz {

inline void promise(bool kept, const char* what, std::string_view detail = "") {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n%.*s\n", what, static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
