#include "weft/app/explain/step_page_parts.h"

#include <algorithm>
#include <span>

#include "weft/base/check.h"
#include "weft/base/embedded.h"

namespace weft {

std::span<const EmbeddedFile> embedded_step_page();

}  // namespace weft

namespace weft::explain {
namespace {

std::string_view page_file(std::string_view path) {
  const std::span<const EmbeddedFile> files = embedded_step_page();
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  WEFT_CHECK(found != files.end());
  return found->text;
}

}  // namespace

std::string_view step_page_style() { return page_file("web/step_page/style.css"); }
std::string_view step_page_tools() { return page_file("web/step_page/tools.html"); }
std::string_view step_page_drawing() { return page_file("web/step_page/drawing.js"); }
std::string_view step_page_controls() { return page_file("web/step_page/controls.js"); }

}  // namespace weft::explain
