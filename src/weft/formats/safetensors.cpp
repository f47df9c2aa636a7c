#include "weft/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/crc32c.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/parallel_for.h"
#include "weft/formats/mapped_file.h"
#include "weft/formats/safetensors_header.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are kept as they lie in the file");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostHeaderBytes = 100'000'000;                 // as in the format's own library
constexpr std::int64_t kMostCheckpointBytes = std::int64_t{1} << 40;  // of memory when loaded

constexpr std::string_view kWriter = "writer", kWeft = "weft";
constexpr std::string_view kChecksum = "checksum";

// How a checksum covers tensor data, as its prefix tells: by the CRC-32C of each 4 MiB block,
// several of which are computed in parallel; or by a hash of all bytes in sequence, as in files of
// earlier versions.
enum class Cover : std::uint8_t { stretches, bytes };
constexpr std::array<std::string_view, 2> kChecksumStarts = {"crc32c:", "weft:"};
constexpr std::size_t kStretchBytes = std::size_t{4} << 20;

std::optional<Cover> cover_of(std::string_view checksum) {
  for (const Cover cover : {Cover::stretches, Cover::bytes})
    if (checksum.starts_with(kChecksumStarts[static_cast<std::size_t>(cover)])) return cover;
  return std::nullopt;
}

struct StoredType {
  std::string_view name;
  std::int64_t size;  // bytes
  std::optional<plan::DType> dtype;
};

constexpr std::array<StoredType, 15> kStoredTypes = {{{"F32", 4, plan::DType::f32},
                                                      {"F64", 8, plan::DType::f64},
                                                      {"BF16", 2, plan::DType::bf16},
                                                      {"F16", 2, plan::DType::f16},
                                                      {"I32", 4, plan::DType::i32},
                                                      {"I64", 8, plan::DType::i64},
                                                      {"BOOL", 1, plan::DType::boolean},
                                                      {"U8", 1, std::nullopt},
                                                      {"I8", 1, std::nullopt},
                                                      {"U16", 2, std::nullopt},
                                                      {"I16", 2, std::nullopt},
                                                      {"U32", 4, std::nullopt},
                                                      {"U64", 8, std::nullopt},
                                                      {"F8_E4M3", 1, plan::DType::f8e4m3},
                                                      {"F8_E5M2", 1, plan::DType::f8e5m2}}};

const StoredType* find_stored(std::string_view name) {
  const auto found = std::ranges::find(kStoredTypes, name, &StoredType::name);
  return found == kStoredTypes.end() ? nullptr : &*found;
}

std::string_view stored_name(plan::DType dtype) {
  return std::ranges::find(kStoredTypes, dtype, &StoredType::dtype)->name;
}

// The tensor's size in bytes, or nothing on overflow.
std::optional<std::int64_t> bytes_of(std::span<const std::int64_t> shape, std::int64_t element) {
  // A dim of zero makes the tensor empty, whatever the others are.
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t bytes = element;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The CRC-32C of each block of the tensors, in order.
std::vector<std::uint32_t> stretch_checksums(std::span<const TensorEntry> tensors) {
  std::vector<std::span<const std::byte>> stretches;
  for (const TensorEntry& tensor : tensors)
    for (std::size_t at = 0; at < tensor.data.size(); at += kStretchBytes)
      stretches.push_back(tensor.data.subspan(at, std::min(kStretchBytes, tensor.data.size() - at)));
  std::vector<std::uint32_t> sums(stretches.size());
  // Each job covers at least one block's worth of bytes: starting a thread for less does not pay.
  std::vector<std::size_t> begins;
  std::size_t bytes = kStretchBytes;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (bytes >= kStretchBytes) begins.push_back(i), bytes = 0;
    bytes += stretches[i].size();
  }
  begins.push_back(stretches.size());
  parallel_for(begins.size() - 1, [&](std::size_t job) {
    for (std::size_t i = begins[job]; i < begins[job + 1]; ++i) sums[i] = crc32c(stretches[i]);
  });
  return sums;
}

// Covers everything that a reader could get wrong, in an order independent of the file's.
// REQUIRES: tensors are sorted by name.
std::string checksum(Cover cover, const std::map<std::string, std::string>& metadata,
                     std::span<const TensorEntry> tensors,
                     const std::map<std::string, std::string>& foreign = {}) {
  Hasher hasher;
  hasher.number(metadata.size() - metadata.count(std::string(kChecksum)));
  for (const auto& [key, value] : metadata)
    if (key != kChecksum) hasher.text(key).text(value);
  hasher.number(tensors.size());
  for (const TensorEntry& tensor : tensors) {
    hasher.text(tensor.name).text(stored_name(tensor.dtype)).number(tensor.shape.size());
    for (const std::int64_t size : tensor.shape) hasher.number(static_cast<std::uint64_t>(size));
    if (cover == Cover::bytes) hasher.text(as_text(tensor.data));
  }
  if (cover == Cover::stretches)
    for (const std::uint32_t sum : stretch_checksums(tensors)) hasher.number(sum);
  for (const auto& [name, dtype] : foreign) hasher.text(name).text(dtype);  // Weft writes none
  return std::string(kChecksumStarts[static_cast<std::size_t>(cover)]) + hasher.digest().hex();
}

// Succeeds iff the tensors are contiguous and fill all `data` bytes.
Status check_layout(std::vector<const HeaderTensor*> tensors, std::int64_t data, std::string_view path) {
  const auto place = [](const HeaderTensor* tensor) { return std::pair(tensor->begin, tensor->end); };
  std::ranges::sort(tensors, {}, place);
  std::int64_t promised = 0;
  for (const HeaderTensor* tensor : tensors) promised = std::max(promised, tensor->end);
  if (promised > data)
    return environment_error(
        fmt::format("{} is truncated: header states {} bytes, found {}", path, promised, data),
        "download or save the file again");
  std::int64_t at = 0;
  const HeaderTensor* before = nullptr;
  for (const HeaderTensor* tensor : tensors) {
    if (tensor->begin < at)
      return user_error(fmt::format("{}: tensors '{}' and '{}' overlap at byte {}", path, shown(before->name),
                                    shown(tensor->name), tensor->begin));
    if (tensor->begin > at)
      return user_error(fmt::format("{}: expected tensor '{}' to begin at byte {}, found {}", path,
                                    shown(tensor->name), at, tensor->begin));
    at = tensor->end;
    before = tensor;
  }
  if (at < data) return user_error(fmt::format("{}: expected {} bytes of tensors, found {}", path, at, data));
  return {};
}

Status check_tensor_size(const HeaderTensor& tensor, std::string_view path) {
  const StoredType* stored = find_stored(tensor.dtype);
  if (stored == nullptr) {
    std::vector<std::string_view> names;
    for (const StoredType& type : kStoredTypes) names.push_back(type.name);
    return user_error(fmt::format("{}: tensor '{}': expected a dtype of {}, found '{}'", path,
                                  shown(tensor.name), fmt::join(names, ", "), shown(tensor.dtype)));
  }
  const auto bytes = bytes_of(tensor.shape, stored->size);
  const std::int64_t found = tensor.end - tensor.begin;
  if (bytes == found) return {};
  return user_error(fmt::format("{}: tensor '{}': expected {} bytes for {} {}, found {}", path,
                                shown(tensor.name), bytes ? std::to_string(*bytes) : "too many", tensor.dtype,
                                shape_text(tensor.shape), found));
}

// Removes Weft's own keys from the metadata and verifies the file against them.
Status verify(Checkpoint& checkpoint, std::string_view path) {
  auto& metadata = checkpoint.metadata;
  const auto writer = metadata.find(std::string(kWriter));
  const auto sum = metadata.find(std::string(kChecksum));
  const bool ours = writer != metadata.end() && writer->second == kWeft;
  const auto cover = sum == metadata.end() ? std::nullopt : cover_of(sum->second);
  const bool summed = cover.has_value();
  if (!ours && !summed) return {};
  // The writer and checksum keys imply each other, so damage to either is detected.
  const std::string found =
      checksum(cover.value_or(Cover::stretches), metadata, checkpoint.tensors, checkpoint.foreign);
  if (!ours || !summed || sum->second != found)
    return environment_error(fmt::format("{} is damaged: expected checksum {}, found {}", path,
                                         summed ? shown(sum->second) : "none", found),
                             "load an older checkpoint");
  metadata.erase(writer);
  metadata.erase(sum);
  return {};
}

Status check_savable(const TensorEntry& tensor, const std::string& path) {
  const bool sound = std::ranges::all_of(tensor.shape, [](std::int64_t size) { return size >= 0; });
  WEFT_CHECK(sound, tensor.name);
  const auto bytes = bytes_of(tensor.shape, plan::size_in_bytes(tensor.dtype));
  WEFT_CHECK(bytes == static_cast<std::int64_t>(tensor.data.size()), tensor.name);
  if (tensor.name == "__metadata__")
    return user_error(fmt::format("cannot write {}: a tensor is named __metadata__", path),
                      "rename the tensor: the format reserves that name");
  return {};
}

}  // namespace

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &TensorEntry::name);
  return found == tensors.end() ? nullptr : &*found;
}

Status save(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<TensorEntry> tensors = checkpoint.tensors;
  std::ranges::sort(tensors, {}, &TensorEntry::name);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    WEFT_TRY_STATUS(check_savable(tensors[i], path));
    WEFT_CHECK(i == 0 || tensors[i].name != tensors[i - 1].name, tensors[i].name);
  }
  auto metadata = checkpoint.metadata;
  metadata[std::string(kWriter)] = kWeft;
  metadata[std::string(kChecksum)] = checksum(Cover::stretches, metadata, tensors);

  // Widest elements first, so that each tensor is aligned to its element size.
  std::ranges::stable_sort(tensors, std::greater(),
                           [](const TensorEntry& tensor) { return plan::size_in_bytes(tensor.dtype); });
  nlohmann::json header = {{"__metadata__", metadata}};
  std::size_t at = 0;
  for (const TensorEntry& tensor : tensors) {
    header[tensor.name] = {{"dtype", stored_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.data.size()}}};
    at += tensor.data.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    return user_error(fmt::format("cannot write {}: a name or a metadata entry is not UTF-8", path));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMostHeaderBytes)
    return user_error(fmt::format("cannot write {}: expected a header of at most {} bytes, found {}", path,
                                  kMostHeaderBytes, text.size()));
  char length[kLengthBytes];
  const std::uint64_t count = text.size();
  std::memcpy(length, &count, sizeof length);
  std::vector<std::string_view> pieces = {{length, sizeof length}, text};
  for (const TensorEntry& tensor : tensors) pieces.push_back(as_text(tensor.data));
  return write_file_atomically(path, pieces);
}

Result<Checkpoint> parse_safetensors(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kLengthBytes)
    return environment_error(fmt::format("{} is truncated: expected at least {} bytes, found {}", path,
                                         kLengthBytes, bytes.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  bytes.remove_prefix(kLengthBytes);
  if (length > kMostHeaderBytes)
    return user_error(
        fmt::format("{} is not a safetensors file: expected a header of at most {} bytes, found {}", path,
                    kMostHeaderBytes, length));
  if (length > bytes.size())
    return environment_error(
        fmt::format("{} is truncated: expected a header of {} bytes, found {}", path, length, bytes.size()),
        "download or save the file again");
  WEFT_TRY(header, read_safetensors_header(bytes.substr(0, length), path));
  bytes.remove_prefix(length);

  std::ranges::sort(header.tensors, {}, &HeaderTensor::name);
  std::vector<const HeaderTensor*> layout;
  for (const HeaderTensor& tensor : header.tensors) {
    WEFT_TRY_STATUS(check_tensor_size(tensor, path));
    layout.push_back(&tensor);
  }
  WEFT_TRY_STATUS(check_layout(std::move(layout), static_cast<std::int64_t>(bytes.size()), path));

  Checkpoint checkpoint;
  checkpoint.metadata = std::move(header.metadata);
  const auto data = std::as_bytes(std::span(bytes));
  for (HeaderTensor& tensor : header.tensors) {
    const auto dtype = find_stored(tensor.dtype)->dtype;
    if (!dtype) {
      checkpoint.foreign.emplace(std::move(tensor.name), std::move(tensor.dtype));
      continue;
    }
    const auto begin = static_cast<std::size_t>(tensor.begin), end = static_cast<std::size_t>(tensor.end);
    checkpoint.tensors.push_back(
        {std::move(tensor.name), *dtype, std::move(tensor.shape), data.subspan(begin, end - begin)});
  }
  WEFT_TRY_STATUS(verify(checkpoint, path));
  return checkpoint;
}

Result<Checkpoint> load(const std::string& path) try {
  if (auto mapped = MappedFile::open(path); mapped.ok()) {
    const auto storage = std::make_shared<const MappedFile>(std::move(*mapped));
    WEFT_TRY(checkpoint, parse_safetensors(storage->text(), path));
    checkpoint.storage = storage;
    return checkpoint;
  }
  // A pipe cannot be mapped. read_file() also reports why a file cannot be read.
  WEFT_TRY(bytes, read_file(path, kMostCheckpointBytes));
  const auto storage = std::make_shared<const std::string>(std::move(bytes));
  WEFT_TRY(checkpoint, parse_safetensors(*storage, path));
  checkpoint.storage = storage;
  return checkpoint;
} catch (const std::bad_alloc&) {
  return environment_error(fmt::format("cannot read {}: not enough memory", path));
}

}  // namespace weft::formats
