#include "weft/device/cuda/kernel_source.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/embedded.h"

namespace weft {

std::span<const EmbeddedFile> embedded_kernels();

}  // namespace weft

namespace weft::device::cuda {
namespace {

class SourceReader {
 public:
  explicit SourceReader(std::string_view definitions) : definitions_(definitions) {}

  std::string read(std::string_view file) {
    include(file);
    return std::move(source_);
  }

 private:
  void include(std::string_view file) {
    if (std::ranges::find(included_, file) != included_.end()) return;
    included_.push_back(file);
    if (file.starts_with("preamble/")) {
      source_ += definitions_;
      return;
    }
    const std::string path = fmt::format("src/weft/device/cuda/kernels/{}", file);
    const auto found = std::ranges::find(embedded_kernels(), path, &EmbeddedFile::path);
    WEFT_CHECK(found != embedded_kernels().end(), "no such kernel file");
    constexpr std::string_view kInclude = "#include \"";
    for (std::string_view rest = found->text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      rest.remove_prefix(line.size());
      if (line.starts_with(kInclude))
        include(line.substr(kInclude.size(), line.rfind('"') - kInclude.size()));
      else if (!line.starts_with("#pragma once"))
        source_ += line;
    }
  }

  const std::string_view definitions_;
  std::vector<std::string_view> included_;
  std::string source_;
};

}  // namespace

std::string kernel_source(std::string_view name, std::string_view definitions) {
  return SourceReader(definitions).read(fmt::format("{}.cuh", name));
}

}  // namespace weft::device::cuda
