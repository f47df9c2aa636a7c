#include "weft/app/command/tokenize.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/reply.h"
#include "weft/base/units.h"
#include "weft/formats/data_file.h"
#include "weft/formats/json_node.h"
#include "weft/text/token_file.h"
#include "weft/text/tokenizer.h"

namespace weft::command {
namespace {

struct TokenCounts {
  std::int64_t documents = 0, bytes = 0, tokens = 0;
};

// Tokenizes documents, one after another, into one file of tokens.
class DocumentWriter {
 public:
  DocumentWriter(const Tokenize& request, text::Tokenizer& tokenizer, text::TokenFileWriter& writer,
                 std::optional<std::int32_t> end)
      : request_(request), tokenizer_(tokenizer), writer_(writer), end_(end) {}

  Status add(std::string_view document) {
    if (request_.interrupted && request_.interrupted()) return user_error("interrupted");
    WEFT_TRY(ids, tokenizer_.encode(document, text::SpecialTokens::leave_out));
    if (end_) ids.push_back(*end_);
    ++counts_.documents;
    counts_.bytes += static_cast<std::int64_t>(document.size());
    counts_.tokens += static_cast<std::int64_t>(ids.size());
    return writer_.add_document(ids);
  }

  // {"text": "a document"}, one per line. Empty lines are skipped.
  Status add_lines(std::string_view lines) {
    for (std::int64_t line = 1; !lines.empty(); ++line) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      const std::string_view one = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 1, lines.size()));
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (Status added = add_line(one); !added.ok())
        return user_error(fmt::format("line {}: {}", line, added.error().message), added.error().hint);
    }
    return {};
  }

  const TokenCounts& counts() const { return counts_; }

 private:
  Status add_line(std::string_view line) {
    WEFT_TRY(json, formats::parse_json(line));
    WEFT_TRY(document, formats::JsonNode(json).text(request_.key.c_str()));
    return add(document);
  }

  const Tokenize& request_;
  text::Tokenizer& tokenizer_;
  text::TokenFileWriter& writer_;
  std::optional<std::int32_t> end_;
  TokenCounts counts_;
};

bool has_lines(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".jsonl");
}

Result<std::string> tokenize(const Tokenize& request) {
  WEFT_TRY(tokenizer, text::Tokenizer::read(request.tokenizer));
  std::optional<std::int32_t> end;
  if (!request.end.empty()) {
    end = tokenizer.find(request.end);
    if (!end)
      return user_error(fmt::format("--end: {} has no token '{}'", request.tokenizer, request.end),
                        "for example: --end '<|endoftext|>'");
  }
  WEFT_TRY(writer, text::TokenFileWriter::open(request.to, tokenizer.end()));
  DocumentWriter documents(request, tokenizer, writer, end);
  for (const std::string& file : request.files) {
    WEFT_TRY(bytes, formats::read_text(file));
    const Status added = has_lines(file) ? documents.add_lines(bytes) : documents.add(bytes);
    if (!added.ok()) {
      Error error = added.error();
      error.message = fmt::format("{}: {}", file, error.message);
      return error;
    }
  }
  WEFT_TRY_STATUS(writer.finish());
  const TokenCounts& counts = documents.counts();
  if (request.format == session::Format::json)
    return nlohmann::ordered_json{{"tokenized", request.to},
                                  {"documents", counts.documents},
                                  {"bytes", counts.bytes},
                                  {"tokens", counts.tokens},
                                  {"vocabulary", tokenizer.end()}}
               .dump() +
           "\n";
  return fmt::format(
      "wrote {} tokens of {} documents ({:.2f} bytes per token) to {}.bin and {}.idx\n",
      print_exact(counts.tokens), print_exact(counts.documents),
      static_cast<double>(counts.bytes) / static_cast<double>(std::max<std::int64_t>(1, counts.tokens)),
      request.to, request.to);
}

}  // namespace

session::Reply run(const Tokenize& request) { return session::to_reply(tokenize(request)); }

}  // namespace weft::command
