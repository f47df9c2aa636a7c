#include "weft/planner/statement/warnings.h"

#include <utility>

#include <fmt/format.h>

namespace weft::planner {

namespace {

std::string print_warning(std::string_view so, const Error& error) {
  std::string text = fmt::format("warning: {}: {}\n", so, error.message);
  if (!error.hint.empty()) text += fmt::format("  {}\n", error.hint);
  return text;
}

}  // namespace

void Warnings::add(std::string_view so, const Status& status) {
  if (status.ok()) return;
  std::string text = print_warning(so, status.error());
  if (known_.insert(text).second) untold_ += text;
}

void Warnings::add_now(std::string_view so, const Status& status,
                       const std::function<void(std::string_view)>& on_warning) {
  if (status.ok()) return;
  const std::string text = print_warning(so, status.error());
  if (on_warning)
    on_warning(text);
  else
    untold_ += text;
}

void Warnings::note(std::string_view what, std::string_view more) {
  untold_ += fmt::format("note: {}\n  {}\n", what, more);
}

void Warnings::note_once(std::string_view what, std::string_view more) {
  if (known_.emplace(what).second) untold_ += fmt::format("note: {}; {}\n", what, more);
}

std::string Warnings::take() { return std::exchange(untold_, {}); }

}  // namespace weft::planner
