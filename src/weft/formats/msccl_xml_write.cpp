
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/formats/msccl_keywords.h"
#include "weft/formats/msccl_rules.h"
#include "weft/formats/msccl_xml.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

using namespace collective;

char letter(Buffer buffer) { return kBufferLetters[static_cast<std::size_t>(buffer)]; }

XmlDialect choose(const Program& program) {
  const bool msccl = program.placement != Placement::either && !word(program.collective.kind, false).empty();
  return msccl ? XmlDialect::msccl : XmlDialect::azure;
}

Status expressible(const Program& program, bool azure) {
  const Collective& collective = program.collective;
  if (word(collective.kind, azure).empty())
    return user_error(fmt::format("the {} dialect of MSCCL XML does not support the collective {}",
                                  azure ? "azure" : "msccl", name(collective.kind)),
                      azure ? "write it in the msccl dialect" : "write it in the azure dialect");
  if (!collective.counts.empty())
    return user_error("MSCCL XML does not support blocks of different sizes",
                      "use a collective with the same number of chunks per rank");
  if (program.placement == Placement::either && !azure)
    return user_error("the msccl dialect of MSCCL XML is in place or out of place, not either",
                      "write it in the azure dialect, or once for each");
  if (static_cast<std::size_t>(collective.ranks) != program.ranks.size())
    return user_error(fmt::format("the collective has {} ranks and the program {}", collective.ranks,
                                  program.ranks.size()));
  if (const auto broken = broken_rule(program))
    return user_error(fmt::format("{}: {}", print(broken->where), broken->text));
  return {};
}

// Appends to a string directly, for speed: a file is mostly steps of similar text.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  Writer& text(std::string_view text) {
    out_ += text;
    return *this;
  }
  Writer& number(std::int64_t value) {
    const fmt::format_int digits(value);
    out_.append(digits.data(), digits.size());
    return *this;
  }
  Writer& slot(std::string_view buffer, std::string_view offset, const Slot& slot) {
    text(buffer);
    out_ += letter(slot.buffer);
    return text(offset).number(slot.index);
  }

 private:
  std::string& out_;
};

void write_step(Writer& out, std::size_t position, const Step& step) {
  out.text("      <step s=\"").number(static_cast<std::int64_t>(position));
  out.text("\" type=\"").text(kStepTypes[static_cast<std::size_t>(step.op)]);
  if (step.op == Op::nop) {
    out.text("\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0");
  } else {
    out.slot("\" srcbuf=\"", "\" srcoff=\"", reads_source(step.op) ? step.source : step.target);
    out.slot("\" dstbuf=\"", "\" dstoff=\"", writes_target(step.op) ? step.target : step.source);
    out.text("\" cnt=\"").number(step.count);
  }
  out.text("\" depid=\"").number(step.wait_block).text("\" deps=\"").number(step.wait_step);
  out.text("\" hasdep=\"").text(step.publishes && step.op != Op::nop ? "1" : "0").text("\"/>\n");
}

std::string head(const Program& program, bool azure) {
  std::string out = fmt::format(
      R"(<algo name="{}" proto="{}" nchannels="{}" nchunksperloop="{}" ngpus="{}" coll="{}" inplace="{}")",
      escape_attribute(program.name), name(program.protocol), program.channels,
      chunks_per_loop(program.collective), program.collective.ranks, word(program.collective.kind, azure),
      program.placement == Placement::out_of_place ? 0 : 1);
  if (azure) {
    out +=
        fmt::format(R"( outofplace="{}" minBytes="{}" maxBytes="{}")",
                    program.placement == Placement::in_place ? 0 : 1, program.min_bytes, program.max_bytes);
  } else {  // msccl reads maxBytes="0" as an empty range
    if (program.min_bytes != 0) out += fmt::format(R"( minBytes="{}")", program.min_bytes);
    if (program.max_bytes != 0) out += fmt::format(R"( maxBytes="{}")", program.max_bytes);
  }
  return out + ">\n";
}

}  // namespace

Result<std::string> write_msccl_xml(const Program& program, XmlDialect dialect) {
  if (dialect == XmlDialect::automatic) dialect = choose(program);
  const bool azure = dialect == XmlDialect::azure;
  WEFT_TRY_STATUS(expressible(program, azure));
  constexpr std::int64_t kBytesOfStep = 128, kBytesOfBlock = 64;
  const Count sizes = count(program);
  std::string text = head(program, azure);
  text.reserve(text.size() + sizes.steps * kBytesOfStep +
               (sizes.blocks + program.ranks.size()) * kBytesOfBlock);
  Writer out(text);
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[r];
    out.text("  <gpu id=\"").number(static_cast<std::int64_t>(r));
    out.text("\" i_chunks=\"").number(rank.input_chunks).text("\" o_chunks=\"").number(rank.output_chunks);
    out.text("\" s_chunks=\"").number(rank.scratch_chunks).text("\">\n");
    for (std::size_t b = 0; b < rank.blocks.size(); ++b) {
      const Threadblock& block = rank.blocks[b];
      out.text("    <tb id=\"").number(static_cast<std::int64_t>(b));
      out.text("\" send=\"").number(block.send_to).text("\" recv=\"").number(block.receive_from);
      out.text("\" chan=\"").number(block.channel);
      if (!block.links.empty()) out.text(fmt::format("\" links=\"{}", fmt::join(block.links, " ")));
      out.text("\">\n");
      for (std::size_t s = 0; s < block.steps.size(); ++s) write_step(out, s, block.steps[s]);
      out.text("    </tb>\n");
    }
    out.text("  </gpu>\n");
  }
  out.text("</algo>\n");
  return text;
}

}  // namespace weft::formats
