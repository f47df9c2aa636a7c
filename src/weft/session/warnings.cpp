#include "weft/session/warnings.h"

#include <utility>

#include <fmt/format.h>

namespace weft::session {

void Warnings::add(std::string_view so, const Status& status) {
  if (status.ok()) return;
  std::string text = fmt::format("warning: {}: {}\n", so, status.error().message);
  if (!status.error().hint.empty()) text += fmt::format("  {}\n", status.error().hint);
  if (known_.insert(text).second) untold_ += text;
}

std::string Warnings::take() { return std::exchange(untold_, {}); }

}  // namespace weft::session
