#include "weft/formats/data_file.h"

#include <algorithm>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/base/units.h"
#include "weft/formats/byte_source.h"
#include "weft/formats/csv.h"
#include "weft/formats/npy.h"
#include "weft/formats/npz.h"
#include "weft/formats/table_buffer.h"

namespace weft::formats {
namespace {

// ".csv" of "digits.CSV".
std::string ending(const std::filesystem::path& path) { return lower(path.extension().string()); }

Error out_of_memory(const std::string& path) {
  return environment_error(fmt::format("cannot read {}: not enough memory", path), "split the file");
}

}  // namespace

Result<std::string> read_text(const std::string& path) try {
  const std::int64_t most =
      ending(path) == ".gz" ? std::min(kMostInflatedBytes, max_table_bytes()) : kMostFileBytes;
  WEFT_TRY(source, open_source(path));
  std::string text;
  for (;;) {
    WEFT_TRY(some, source->next());
    if (some.empty()) return text;
    if (static_cast<std::int64_t>(text.size() + some.size()) > most)
      return user_error(fmt::format("{} is too large: expected at most {} of text", path,
                                    print_bytes(static_cast<double>(most))),
                        "split the file");
    const auto likely =
        static_cast<std::size_t>(static_cast<double>(text.size() + some.size()) / source->share());
    if (text.capacity() < text.size() + some.size())
      text.reserve(std::min(std::max(likely + likely / 50, text.size() + text.size() / 2),
                            static_cast<std::size_t>(most)));
    text += some;
  }
} catch (const std::bad_alloc&) {
  return out_of_memory(path);
}

Result<Table> read_table(const std::string& path, std::span<const Field> fields,
                         std::int64_t most_bytes) try {
  std::string format = ending(path);
  const bool packed = format == ".gz";
  if (packed) format = ending(std::filesystem::path(path).stem());
  if (format != ".csv" && format != ".npy" && format != ".npz")
    return user_error(fmt::format("{}: expected a name that ends in .csv, .csv.gz, .npy or .npz", path));
  if (format == ".npz") {  // its directory is at the end of the file
    WEFT_TRY(bytes, packed ? read_text(path) : read_file(path, kMostFileBytes));
    return parse_npz(bytes, fields, path, most_bytes);
  }
  WEFT_TRY(source, open_source(path));
  return format == ".csv" ? read_csv(*source, fields, path, most_bytes)
                          : read_npy(*source, fields, path, most_bytes);
} catch (const std::bad_alloc&) {
  return out_of_memory(path);
}

}  // namespace weft::formats
