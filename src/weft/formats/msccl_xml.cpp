#include "weft/formats/msccl_xml.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/formats/msccl_keywords.h"
#include "weft/formats/msccl_rules.h"
#include "weft/formats/msccl_target.h"
#include "weft/formats/msccl_xml_step.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

using namespace collective;

constexpr std::int64_t kAnyMscclNumber = std::numeric_limits<std::int32_t>::max();

Error placed(const Where& where, Error error) {
  error.message = fmt::format("{}: {}", print(where), error.message);
  return error;
}

// Parses the syntax element by element, then checks the meaning of the whole program.
class MscclReader {
 public:
  MscclReader(const XmlElement& algo, const XmlReadOptions& options) : algo_(algo), options_(options) {}

  Result<XmlProgram> read() {
    if (algo_.tag() != "algo")
      return algo_.error(fmt::format("the root of an MSCCL program is <algo>, not <{}>", algo_.tag()));
    WEFT_TRY_STATUS(read_algo());
    WEFT_TRY_STATUS(read_gpus());
    choose_operands();
    if (const auto broken = broken_rule(program_)) return explain(*broken);
    add_notes();
    return std::move(out_);
  }

 private:
  Status read_algo() {
    program_.name = algo_.find("name").value_or("");
    WEFT_TRY(proto, algo_.text("proto"));
    const auto protocol = std::ranges::find(kXmlProtocols, proto, [](Protocol p) { return name(p); });
    if (protocol == kXmlProtocols.end()) return algo_.unexpected("proto", "Simple, LL or LL128");
    program_.protocol = *protocol;
    WEFT_TRY(channels, algo_.integer("nchannels", 1, kMaxXmlRanks));
    program_.channels = static_cast<std::int32_t>(channels);
    WEFT_TRY(gpus, algo_.integer("ngpus", 1, kMaxXmlRanks));
    program_.collective.ranks = static_cast<std::int32_t>(gpus);
    WEFT_TRY_STATUS(read_collective());
    WEFT_TRY_STATUS(read_placement());
    return read_sizes();
  }

  Status read_collective() {
    WEFT_TRY(coll, algo_.text("coll"));
    out_.coll = coll;
    Collective& collective = program_.collective;
    const auto words = std::ranges::find_if(
        kCollectiveWords, [&](const CollectiveNames& w) { return w.msccl == coll || w.azure == coll; });
    if (words != kCollectiveWords.end() && !coll.empty()) {
      collective.kind = words->kind;
    } else if (coll == "recv") {
      collective.kind = Kind::send;
    } else if (coll == "alltoallv") {
      collective.kind = Kind::custom;
      note("the counts of an alltoallv are not in the file: it is read as a custom collective");
    } else {
      return algo_.unexpected("coll", "a collective of MSCCL", did_you_mean_collective(coll));
    }
    WEFT_TRY(chunks, algo_.integer("nchunksperloop", 1, kMaxXmlChunks));
    collective.chunks = 1;
    const std::int64_t blocks = chunks_per_loop(collective);
    if (chunks % blocks != 0)
      return algo_.unexpected("nchunksperloop",
                              fmt::format("a multiple of ngpus {}, as {} needs", blocks, coll));
    collective.chunks = static_cast<std::int32_t>(chunks / blocks);
    const bool block_per_rank = collective.kind == Kind::gather || collective.kind == Kind::scatter;
    if (block_per_rank && chunks * collective.ranks > kMaxXmlChunks)
      return algo_.unexpected("nchunksperloop", fmt::format("at most {} over all gpus", kMaxXmlChunks));
    return read_root();
  }

  Status read_root() {
    using enum Kind;
    Collective& collective = program_.collective;
    const Kind kind = collective.kind;
    if (kind != broadcast && kind != reduce && kind != gather && kind != scatter && kind != send) return {};
    const auto exists = [&](std::int32_t rank) { return rank >= 0 && rank < collective.ranks; };
    if (!exists(options_.root))
      return user_error(fmt::format("root is not one of the {} gpus: {}", collective.ranks, options_.root));
    collective.root = options_.root;
    if (kind != send) return {};
    if (!exists(options_.peer))
      return user_error(fmt::format("peer is not one of the {} gpus: {}", collective.ranks, options_.peer));
    collective.peer = options_.peer;
    return {};
  }

  static std::string did_you_mean_collective(std::string_view coll) {
    std::vector<std::string_view> known;
    for (const CollectiveNames& words : kCollectiveWords)
      for (const std::string_view word : {words.msccl, words.azure})
        if (!word.empty()) known.push_back(word);
    return did_you_mean(coll, known);
  }

  Status read_placement() {
    WEFT_TRY(in_place, algo_.integer("inplace", 0, 1));
    WEFT_TRY(out_of_place, algo_.integer_or("outofplace", 0, 1, 1 - in_place));
    if (!in_place && !out_of_place)
      return algo_.unexpected("outofplace", "1, although inplace is 0 too: no call would use the program");
    program_.placement = in_place == out_of_place ? Placement::either
                         : in_place               ? Placement::in_place
                                                  : Placement::out_of_place;
    return {};
  }

  Status read_sizes() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    WEFT_TRY(min_bytes, algo_.integer_or("minBytes", 0, kMost, 0));
    WEFT_TRY(max_bytes, algo_.integer_or("maxBytes", 0, kMost, 0));
    if (max_bytes != 0 && max_bytes < min_bytes)
      return algo_.unexpected("maxBytes", fmt::format("0 or at least minBytes {}", min_bytes));
    program_.min_bytes = min_bytes;
    program_.max_bytes = max_bytes;
    out_.azure = algo_.find("outofplace") && algo_.find("minBytes") && algo_.find("maxBytes");
    return {};
  }

  Status read_gpus() {
    program_.ranks.resize(program_.collective.ranks);
    std::vector<char> seen(program_.ranks.size(), 0);
    for (XmlElement gpu = algo_.first_child(); gpu; gpu = gpu.next_sibling()) {
      if (!expect(gpu, "gpu")) continue;
      WEFT_TRY(id, gpu.integer("id", 0, program_.collective.ranks - 1));
      if (std::exchange(seen[id], 1))
        return placed({static_cast<std::int32_t>(id), -1, -1},
                      gpu.error(fmt::format("a second gpu of this id at {}", gpu.place())));
      WEFT_TRY_STATUS(read_gpu(gpu, static_cast<std::int32_t>(id)));
    }
    if (const auto missing = std::ranges::find(seen, 0); missing != seen.end())
      return algo_.error(
          fmt::format("ngpus is {}, but no gpu has id {}", seen.size(), missing - seen.begin()));
    return {};
  }

  Status read_gpu(const XmlElement& gpu, std::int32_t id) {
    const Where where{id, -1, -1};
    RankProgram& rank = program_.ranks[id];
    const std::array<std::pair<std::string_view, std::int32_t*>, 3> sizes = {
        {{"i_chunks", &rank.input_chunks},
         {"o_chunks", &rank.output_chunks},
         {"s_chunks", &rank.scratch_chunks}}};
    for (const auto& [attribute, to] : sizes) {
      auto size = gpu.integer(attribute, 0, kMaxXmlChunks);
      if (!size.ok()) return placed(where, std::move(size).error());
      *to = static_cast<std::int32_t>(*size);
    }
    std::size_t blocks = 0;
    for (XmlElement tb = gpu.first_child(); tb; tb = tb.next_sibling()) blocks += expect(tb, "tb") ? 1 : 0;
    rank.blocks.resize(blocks);
    std::vector<char> seen(blocks, 0);
    for (XmlElement tb = gpu.first_child("tb"); tb; tb = tb.next_sibling("tb")) {
      auto block = tb.integer("id", 0, static_cast<std::int64_t>(blocks) - 1);
      if (!block.ok()) return placed(where, std::move(block).error());
      if (std::exchange(seen[*block], 1))
        return placed(where, tb.error(fmt::format("two tbs of id {}, the second at {}", *block, tb.place())));
      WEFT_TRY_STATUS(read_tb(tb, {id, static_cast<std::int32_t>(*block), -1}));
    }
    return {};
  }

  Status read_tb(const XmlElement& tb, Where where) {
    Threadblock& block = program_.ranks[where.rank].blocks[where.block];
    const std::array<std::pair<std::string_view, std::int32_t*>, 3> numbers = {
        {{"send", &block.send_to}, {"recv", &block.receive_from}, {"chan", &block.channel}}};
    for (const auto& [attribute, to] : numbers) {
      auto number = tb.integer(attribute, -1, kAnyMscclNumber);
      if (!number.ok()) return placed(where, std::move(number).error());
      *to = static_cast<std::int32_t>(*number);
    }
    if (const auto links = tb.find("links")) WEFT_TRY_STATUS(read_way(tb, *links, where));
    for (XmlElement step = tb.first_child(); step; step = step.next_sibling()) {
      if (!expect(step, "step")) continue;
      where.step = static_cast<std::int32_t>(block.steps.size());
      if (++steps_ > kMaxXmlSteps) return step.error(fmt::format("more than {} steps", kMaxXmlSteps));
      Step& read = block.steps.emplace_back();
      if (auto status = read_msccl_step(step, where.step, read); !status.ok())
        return placed(where, std::move(status).error());
      count_oddities(read);
    }
    return {};
  }

  // Weft's own attribute, which loaders ignore: the links that the threadblock's transfers use.
  Status read_way(const XmlElement& tb, std::string_view links, Where where) {
    while (!links.empty()) {
      const std::string_view word = links.substr(0, links.find(' '));
      links.remove_prefix(std::min(links.size(), word.size() + 1));
      const auto link = read_number<std::int64_t>(word, 0, kAnyMscclNumber);
      if (!link) return placed(where, tb.unexpected("links", "numbers of links"));
      program_.ranks[where.rank].blocks[where.block].links.push_back(static_cast<std::int32_t>(*link));
    }
    return {};
  }

  void count_oddities(Step& step) {
    if (step.op != Op::nop) return;
    deaf_nops_ += std::exchange(step.publishes, false) ? 1 : 0;  // runtimes do not publish nops
    idle_nops_ += step.wait_block == -1 ? 1 : 0;
  }

  // Unknown elements are skipped, as loaders do.
  bool expect(const XmlElement& element, std::string_view tag) {
    if (element.tag() == tag) return true;
    if (skipped_++ == 0) first_skipped_ = element.tag();
    return false;
  }

  template <class Visit>
  void for_each_reduction(Visit visit) {
    for (RankProgram& rank : program_.ranks)
      for (Threadblock& block : rank.blocks)
        for (Step& step : block.steps)
          if (receives(step.op) && reads_source(step.op)) visit(rank, step);
  }

  void choose_operands() {
    bool sender = options_.operands == XmlOperands::sender;
    if (options_.operands == XmlOperands::automatic)
      for_each_reduction([&](const RankProgram& rank, const Step& step) {
        sender = sender || !declared(rank, step.source, step.count);
      });
    for_each_reduction([&](const RankProgram&, Step& step) {
      if (step.source == step.target) return;
      ++different_;
      if (sender) step.source = step.target;
      if (!writes_target(step.op)) step.target = step.source;
    });
    out_.operands_rewritten = sender && different_ > 0;
  }

  Error explain(const BrokenRule& broken) const {
    const XmlElement element = locate(broken.where);
    Error error = element.error(fmt::format("{} (<{}> at {})", broken.text, element.tag(), element.place()));
    if (broken.attribute == "srcoff" && options_.operands == XmlOperands::runtime && different_ > 0)
      error.hint =
          "if MSCCLang wrote the file, its rrc steps name the sender's slot: read it with operands sender";
    return placed(broken.where, std::move(error));
  }

  XmlElement locate(const Where& where) const {
    const auto by_id = [](const XmlElement& parent, std::string_view tag, std::int32_t id) {
      XmlElement it = parent.first_child(tag);
      while (it && !read_number<std::int64_t>(it.find("id").value_or(""), id, id)) it = it.next_sibling(tag);
      return it;
    };
    XmlElement found = by_id(algo_, "gpu", where.rank);
    if (where.block >= 0) found = by_id(found, "tb", where.block);
    if (where.step < 0) return found;
    found = found.first_child("step");
    for (std::int32_t i = 0; i < where.step; ++i) found = found.next_sibling("step");
    return found;
  }

  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void add_notes() {
    if (skipped_ > 0)
      note(fmt::format("unknown elements are skipped: {} such as <{}>", skipped_, first_skipped_));
    if (deaf_nops_ > 0)
      note(fmt::format("hasdep=\"1\" on a nop means nothing to the runtimes: {} nops have it", deaf_nops_));
    if (idle_nops_ > 0)
      note(fmt::format("a nop that waits for nothing upsets how msccl numbers later steps: {} nops",
                       idle_nops_));
    if (out_.operands_rewritten)
      note(fmt::format("the operand of {} reducing receives was read as the sender's slot", different_));
    else if (different_ > 0)
      note(
          fmt::format("{} reducing receives add another slot than dstbuf/dstoff names; if MSCCLang wrote the "
                      "file, it meant the sender's",
                      different_));
    if (const auto chain = broken_nop_chain(program_))
      note(fmt::format("{}: a nop is followed by a step without depid, which the loaders refuse",
                       print(*chain)));
  }

  XmlElement algo_;
  XmlReadOptions options_;
  XmlProgram out_;
  Program& program_ = out_.program;
  std::int64_t steps_ = 0;
  std::int64_t different_ = 0, deaf_nops_ = 0, idle_nops_ = 0;
  std::int64_t skipped_ = 0;
  std::string first_skipped_;
};

}  // namespace

Result<XmlProgram> read_msccl_xml(std::string_view text, const XmlReadOptions& options) {
  WEFT_TRY(document, XmlDocument::parse(text, Quotes::double_only));
  return MscclReader(document.root(), options).read();
}

}  // namespace weft::formats
