// Any text is a tokenizer or a user error. The ids of a tokenizer are below its end, and it decodes
// them.

#include "promise.h"
#include "weft/text/tokenizer.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::text::SpecialTokens;
  auto tokenizer = weft::text::Tokenizer::parse({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) {
    promise(tokenizer.error().fault == weft::Fault::user, "a bad file is a user error");
    promise(!tokenizer.error().message.empty(), "an error has a message");
    return 0;
  }
  for (const char* text :
       {"", "Hello  world's 2025\n", "caf\u00e9 \u4e2d\u6587\u0301 <s>[CLS]", "<0x41>\t "}) {
    const auto ids = tokenizer->encode(text, SpecialTokens::add);
    if (!ids.ok()) continue;
    for (const std::int32_t id : *ids) promise(id >= 0 && id < tokenizer->end(), "an id is below the end");
    const auto decoded = tokenizer->decode(*ids, SpecialTokens::leave_out);
    promise(decoded.ok() || !decoded.error().message.empty(), "an error has a message");
  }
  return 0;
}
