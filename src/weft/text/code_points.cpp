#include "weft/text/code_points.h"

#include <algorithm>

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}

// The length of the longest beginning of `bytes` that some well-formed character begins with; at
// most 3, and 0 if there is none.
std::size_t begun_character(std::string_view bytes) {
  const unsigned lead = byte_at(bytes, 0), second = byte_at(bytes, 1);
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const unsigned least = lead == 0xE0 ? 0xA0u : lead == 0xF0 ? 0x90u : 0x80u;
  const unsigned most = lead == 0xED ? 0x9Fu : lead == 0xF4 ? 0x8Fu : 0xBFu;
  if (lead < 0xE0 || bytes.size() < 2 || second < least || second > most) return 1;
  if (lead < 0xF0 || (byte_at(bytes, 2) & 0xC0u) != 0x80u) return 2;
  return 3;
}

}  // namespace

std::string replace_ill_formed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length > 0) {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
      continue;
    }
    out += "\xEF\xBF\xBD";
    bytes.remove_prefix(std::max<std::size_t>(1, begun_character(bytes)));
  }
  return out;
}

std::size_t unfinished_bytes(std::string_view bytes) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(3, bytes.size()); ++length) {
    const std::string_view end = bytes.substr(bytes.size() - length);
    if (utf8_length(end) == 0 && begun_character(end) == length) return length;
  }
  return 0;
}

}  // namespace weft::text
