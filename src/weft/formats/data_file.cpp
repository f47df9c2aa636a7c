#include "weft/formats/data_file.h"

#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/formats/csv.h"
#include "weft/formats/gzip.h"
#include "weft/formats/npy.h"
#include "weft/formats/npz.h"

namespace weft::formats {
namespace {

// ".csv" of "digits.CSV".
std::string ending(const std::filesystem::path& path) { return lower(path.extension().string()); }

Error out_of_memory(const std::string& path) {
  return world_error(fmt::format("cannot read {}: not enough memory", path), "split the file");
}

}  // namespace

Result<std::string> read_text(const std::string& path) try {
  WEFT_TRY(bytes, read_file(path, kMostFileBytes));
  if (ending(path) != ".gz") return bytes;
  return inflate_gzip(bytes, kMostInflatedBytes, path);
} catch (const std::bad_alloc&) {
  return out_of_memory(path);
}

Result<Table> read_table(const std::string& path, std::span<const Field> fields) try {
  std::string format = ending(path);
  if (format == ".gz") format = ending(std::filesystem::path(path).stem());
  if (format != ".csv" && format != ".npy" && format != ".npz")
    return user_error(fmt::format("{}: expected a name that ends in .csv, .csv.gz, .npy or .npz", path));
  WEFT_TRY(bytes, read_text(path));
  if (format == ".npz") return parse_npz(bytes, fields, path);
  return format == ".csv" ? parse_csv(bytes, fields, path) : parse_npy(bytes, fields, path);
} catch (const std::bad_alloc&) {
  return out_of_memory(path);
}

}  // namespace weft::formats
