// weft/text/token_file.h -- memory-mapped files of tokens, in the format of Megatron-LM.
//
//   data.bin    the tokens of all documents, one after another
//   data.idx    "MMIDIDX", two zero bytes, version 1 (8 bytes), type of a token (1 byte: 4 int32, 8 uint16),
//               number of sequences and of document boundaries (8 bytes each), then per sequence its
//               tokens (4 bytes) and its offset in the .bin (8 bytes), then the sequence that each
//               document begins with, and the number of sequences (8 bytes each)
//
// All numbers are little-endian.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/mapped_file.h"

namespace weft::text {

enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };

struct TokenIndex {
  TokenType type = TokenType::i32;
  std::int64_t tokens = 0, sequences = 0, documents = 0;
};

// Parses the bytes of a .idx file. `path` is only for error messages.
Result<TokenIndex> parse_token_index(std::string_view bytes, const std::string& path);

class TokenFile {
 public:
  // `path` is that of the .bin or of the .idx; both must exist.
  static Result<TokenFile> open(const std::string& path);

  std::int64_t size() const { return index_.tokens; }
  std::int64_t documents() const { return index_.documents; }
  std::int64_t operator[](std::int64_t at) const;
  std::span<const std::byte> bytes() const { return tokens_.bytes(); }

  // The position of the first token that is not from 0 to `limit` - 1; size() if there is none.
  std::int64_t find_outside(std::int64_t limit) const;

 private:
  TokenFile(TokenIndex index, formats::MappedFile tokens) : index_(index), tokens_(std::move(tokens)) {}

  TokenIndex index_;
  formats::MappedFile tokens_;
};

bool is_token_file(std::string_view path);

// Writes prefix.bin and prefix.idx. Until finish() there is only prefix.bin.partial, which is removed if
// finish() is not reached.
class TokenFileWriter {
 public:
  // Ids below `end` are written: as uint16 if they fit.
  static Result<TokenFileWriter> open(const std::string& prefix, std::int64_t end);
  ~TokenFileWriter();
  TokenFileWriter(TokenFileWriter&&) noexcept = default;

  Status add_document(std::span<const std::int32_t> ids);
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  TokenFileWriter(std::string prefix, TokenType type, std::FILE* file)
      : prefix_(std::move(prefix)), type_(type), file_(file) {}

  std::string partial() const { return prefix_ + ".bin.partial"; }

  std::string prefix_;
  TokenType type_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::int32_t> sizes_;
};

}  // namespace weft::text
