#include "weft/text/token_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "weft/base/file.h"

namespace weft::text {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr std::int64_t kEndOfU16 = 65500;  // from which Megatron uses int32

std::int64_t width_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8: return 1;
    case TokenType::i16:
    case TokenType::u16: return 2;
    case TokenType::i32: return 4;
    case TokenType::i64: return 8;
  }
  return 0;
}

template <class T>
T number_at(const void* bytes, std::int64_t at) {
  T number;
  std::memcpy(&number, static_cast<const char*>(bytes) + at * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return number;
}

template <class T>
void add_number(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

Error cannot_write(const std::string& path) {
  return environment_error(fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
}

// Each sequence begins where the one before ends.
Status check_sequences(const char* sizes, const char* offsets, std::int64_t count, std::int64_t width,
                       const std::string& path, std::int64_t& tokens) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto size = number_at<std::int32_t>(sizes, i);
    const auto offset = number_at<std::int64_t>(offsets, i);
    if (size < 0) return user_error(fmt::format("{}: sequence {} has {} tokens", path, i, size));
    if (offset != tokens * width)
      return user_error(fmt::format("{}: expected sequence {} at byte {} of the .bin, found {}", path, i,
                                    tokens * width, offset),
                        "write the file again with weft tokenize");
    tokens += size;
  }
  return {};
}

// The sequences that documents begin with increase from 0 to the number of sequences.
Status check_documents(const char* begins, std::int64_t count, std::int64_t sequences,
                       const std::string& path) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = number_at<std::int64_t>(begins, i);
    if (begin < before || begin > sequences || (i == 0 && begin != 0) ||
        (i + 1 == count && begin != sequences))
      return user_error(
          fmt::format("{}: document {} begins with sequence {} of {}", path, i, begin, sequences));
    before = begin;
  }
  return {};
}

}  // namespace

Result<TokenIndex> parse_token_index(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with(kMagic))
    return user_error(fmt::format("{}: expected an index of tokens, which begins with MMIDIDX", path),
                      "weft tokenize writes .bin and .idx");
  if (bytes.size() < kHeaderBytes)
    return user_error(
        fmt::format("{}: expected at least {} bytes, found {}", path, kHeaderBytes, bytes.size()));
  const char* at = bytes.data() + kMagic.size();
  if (const auto version = number_at<std::uint64_t>(at, 0); version != kVersion)
    return user_error(fmt::format("{}: expected version 1, found {}", path, version));
  const auto code = number_at<std::uint8_t>(at + 8, 0);
  const auto sequences = number_at<std::uint64_t>(at + 9, 0), bounds = number_at<std::uint64_t>(at + 9, 1);
  TokenIndex index;
  index.type = static_cast<TokenType>(code);
  if (width_of(index.type) == 0)
    return user_error(
        fmt::format("{}: expected a type of whole numbers (1 to 5, or 8), found {}", path, code));
  const std::uint64_t rest = bytes.size() - kHeaderBytes;
  // Divided, since the product of a wrong count could wrap.
  if (sequences > rest / 12 || bounds > rest / 8 || sequences * 12 + bounds * 8 != rest)
    return user_error(
        fmt::format("{}: expected {} bytes for {} sequences and {} document boundaries, found {}", path,
                    sequences > rest || bounds > rest
                        ? "more"
                        : fmt::format("{}", kHeaderBytes + sequences * 12 + bounds * 8),
                    sequences, bounds, bytes.size()),
        "the file may be truncated");
  index.sequences = static_cast<std::int64_t>(sequences);
  index.documents = std::max<std::int64_t>(0, static_cast<std::int64_t>(bounds) - 1);
  const char* sizes = bytes.data() + kHeaderBytes;
  const char* offsets = sizes + 4 * index.sequences;
  WEFT_TRY_STATUS(check_sequences(sizes, offsets, index.sequences, width_of(index.type), path, index.tokens));
  WEFT_TRY_STATUS(check_documents(offsets + 8 * index.sequences, static_cast<std::int64_t>(bounds),
                                  index.sequences, path));
  return index;
}

bool is_token_file(std::string_view path) { return path.ends_with(".bin") || path.ends_with(".idx"); }

Result<TokenFile> TokenFile::open(const std::string& path) {
  const std::string prefix = path.substr(0, path.size() - 4);
  WEFT_TRY(index_file, formats::MappedFile::open(prefix + ".idx"));
  WEFT_TRY(index, parse_token_index(index_file.text(), prefix + ".idx"));
  WEFT_TRY(tokens, formats::MappedFile::open(prefix + ".bin"));
  const auto expected = static_cast<std::uint64_t>(index.tokens * width_of(index.type));
  if (tokens.bytes().size() != expected)
    return user_error(fmt::format("{}.bin: expected {} bytes for {} tokens, found {}", prefix, expected,
                                  index.tokens, tokens.bytes().size()),
                      "the file may be truncated, or belong to another .idx");
  return TokenFile(index, std::move(tokens));
}

std::int64_t TokenFile::operator[](std::int64_t at) const {
  const void* const bytes = tokens_.bytes().data();
  switch (index_.type) {
    case TokenType::u8: return number_at<std::uint8_t>(bytes, at);
    case TokenType::i8: return number_at<std::int8_t>(bytes, at);
    case TokenType::i16: return number_at<std::int16_t>(bytes, at);
    case TokenType::u16: return number_at<std::uint16_t>(bytes, at);
    case TokenType::i32: return number_at<std::int32_t>(bytes, at);
    case TokenType::i64: return number_at<std::int64_t>(bytes, at);
  }
  return 0;
}

std::int64_t TokenFile::find_outside(std::int64_t limit) const {
  for (std::int64_t at = 0; at < size(); ++at)
    if (const std::int64_t token = (*this)[at]; token < 0 || token >= limit) return at;
  return size();
}

Result<TokenFileWriter> TokenFileWriter::open(const std::string& prefix, std::int64_t end) {
  const TokenType type = end < kEndOfU16 ? TokenType::u16 : TokenType::i32;
  const std::string path = prefix + ".bin.partial";
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return cannot_write(path);
  return TokenFileWriter(prefix, type, file);
}

TokenFileWriter::~TokenFileWriter() {
  std::error_code ignored;
  if (file_ != nullptr) std::filesystem::remove(partial(), ignored);
}

Status TokenFileWriter::add_document(std::span<const std::int32_t> ids) {
  if (ids.size() > INT32_MAX)
    return user_error(fmt::format("a document has {} tokens, expected at most {}", ids.size(), INT32_MAX),
                      "divide the file");
  std::string bytes;
  bytes.reserve(ids.size() * static_cast<std::size_t>(width_of(type_)));
  for (const std::int32_t id : ids)
    if (type_ == TokenType::u16)
      add_number(bytes, static_cast<std::uint16_t>(id));
    else
      add_number(bytes, id);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return cannot_write(partial());
  sizes_.push_back(static_cast<std::int32_t>(ids.size()));
  return {};
}

Status TokenFileWriter::finish() {
  if (std::fclose(file_.release()) != 0) return cannot_write(partial());
  std::string index(kMagic);
  add_number(index, kVersion);
  add_number(index, static_cast<std::uint8_t>(type_));
  add_number(index, static_cast<std::uint64_t>(sizes_.size()));
  add_number(index, static_cast<std::uint64_t>(sizes_.size() + 1));
  for (const std::int32_t size : sizes_) add_number(index, size);
  std::int64_t offset = 0;
  for (const std::int32_t size : sizes_) {
    add_number(index, offset);
    offset += size * width_of(type_);
  }
  // One sequence per document.
  for (std::size_t i = 0; i <= sizes_.size(); ++i) add_number(index, static_cast<std::int64_t>(i));
  std::error_code failed;
  std::filesystem::rename(partial(), prefix_ + ".bin", failed);
  if (failed) return environment_error(fmt::format("cannot write {}.bin: {}", prefix_, failed.message()));
  return write_file_atomically(prefix_ + ".idx", index);
}

}  // namespace weft::text
