// Chunk programs in MSCCL's XML: what is read, what is rejected with which message, and that a
// round trip loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/formats/msccl_target.h"
#include "weft/formats/msccl_xml.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

using namespace collective;

// Two ranks exchange and sum two chunks: rank 0 the first, rank 1 the second.
constexpr std::string_view kHead =
    R"(<algo name="pair" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">)";

std::string step(std::string_view s, std::string_view type, int source, int target,
                 std::string_view rest = R"(cnt="1" depid="-1" deps="-1" hasdep="0")") {
  return fmt::format(
      "\n"
      R"(<step s="{}" type="{}" srcbuf="i" srcoff="{}" dstbuf="i" dstoff="{}" {}/>)",
      s, type, source, target, rest);
}

std::string rank(int id, int first) {
  const int peer = 1 - id;
  return fmt::format(R"(<gpu id="{}" i_chunks="2" o_chunks="0" s_chunks="0"><tb id="0" send="{}" recv="{}" )"
                     R"(chan="0">{}{}{}</tb></gpu>)",
                     id, peer, peer, step("0", "s", 1 - first, 1 - first), step("1", "rrcs", first, first),
                     step("2", "r", 1 - first, 1 - first));
}

std::string pair_file() { return fmt::format("{}{}{}</algo>", kHead, rank(0, 0), rank(1, 1)); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << "the case changes nothing: " << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(std::string_view text, XmlReadOptions options = {}) {
  const auto read = read_msccl_xml(text, options);
  return read.ok() ? "no error" : read.error().message;
}

// The error after `from` is replaced by `to` in the file above.
std::string error_with(std::string_view from, std::string_view to) {
  return error_of(replaced(pair_file(), from, to));
}

class MscclXml : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto probe = XmlDocument::parse("<a/>"); !probe.ok()) GTEST_SKIP() << probe.error().message;
  }
};

// The link lists of connections are an attribute that loaders ignore.
TEST_F(MscclXml, LinksReadBack) {
  const auto with = [](std::string_view links) {
    return replaced(pair_file(), R"(recv="1" chan="0")",
                    fmt::format(R"(recv="1" chan="0" links="{}")", links));
  };
  const auto read = read_msccl_xml(with("4 0 17"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->program.ranks[0].blocks[0].links, (std::vector<std::int32_t>{4, 0, 17}));
  EXPECT_TRUE(read->program.ranks[1].blocks[0].links.empty());
  const auto text = write_msccl_xml(read->program, XmlDialect::automatic);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto again = read_msccl_xml(*text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->program == read->program);
  for (const char* wrong : {"x", "-1", "4,5", "4  5", "99999999999"})
    EXPECT_NE(error_of(with(wrong)).find("links"), std::string::npos)
        << wrong << ": " << error_of(with(wrong));
}

TEST_F(MscclXml, ReadsAFile) {
  const auto read = read_msccl_xml(pair_file());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Program& program = read->program;
  EXPECT_EQ(program.name, "pair");
  EXPECT_EQ(program.protocol, Protocol::ll);
  EXPECT_EQ(program.placement, Placement::in_place);
  EXPECT_EQ(program.collective.kind, Kind::all_reduce);
  EXPECT_EQ(program.collective.chunks, 2);
  ASSERT_EQ(program.ranks.size(), 2u);
  EXPECT_EQ(program.ranks[1].input_chunks, 2);
  ASSERT_EQ(program.ranks[1].blocks.size(), 1u);
  const Threadblock& block = program.ranks[1].blocks[0];
  EXPECT_EQ(block.send_to, 0);
  ASSERT_EQ(block.steps.size(), 3u);
  EXPECT_EQ(block.steps[1].op, Op::receive_reduce_copy_send);
  EXPECT_EQ(block.steps[1].source, (Slot{Buffer::input, 1}));
  EXPECT_FALSE(read->azure);
  EXPECT_TRUE(read->notes.empty());
}

TEST_F(MscclXml, CountsBlocksPerRankIfTheCollectiveHasThem) {
  const std::string file =
      R"(<algo name="a" proto="Simple" nchannels="1" nchunksperloop="6" ngpus="2" coll="reduce_scatter" inplace="0">)"
      R"(<gpu id="1" i_chunks="6" o_chunks="3" s_chunks="0"/><gpu id="0" i_chunks="6" o_chunks="3" s_chunks="9"/></algo>)";
  const auto read = read_msccl_xml(file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->program.collective.chunks, 3);
  EXPECT_EQ(read->program.ranks[0].scratch_chunks, 9);
  EXPECT_EQ(error_of(replaced(file, "nchunksperloop=\"6\"", "nchunksperloop=\"5\"")),
            "attribute nchunksperloop of <algo> at line 1 column 45 is not a multiple of ngpus 2, as "
            "reduce_scatter "
            "needs: 5");
}

// Operands that a step does not use are informative, so they do not distinguish programs.
TEST_F(MscclXml, IgnoresUnusedOperands) {
  const auto plain = read_msccl_xml(pair_file());
  const auto odd =
      read_msccl_xml(replaced(pair_file(), R"(type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1")",
                              R"(type="s" srcbuf="i" srcoff="1" dstbuf="s" dstoff="77")"));
  ASSERT_TRUE(plain.ok() && odd.ok());
  EXPECT_EQ(plain->program, odd->program);
}

TEST_F(MscclXml, AzureFilesStatePlacementAndSizes) {
  const std::string file = replaced(pair_file(), R"(inplace="1")",
                                    R"(inplace="1" outofplace="1" minBytes="1024" maxBytes="4096")");
  const auto read = read_msccl_xml(replaced(file, R"(o_chunks="0")", R"(o_chunks="2")"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->azure);
  EXPECT_EQ(read->program.placement, Placement::either);
  EXPECT_EQ(read->program.min_bytes, 1024);
  EXPECT_EQ(read->program.max_bytes, 4096);
  EXPECT_FALSE(write_msccl_xml(read->program, XmlDialect::msccl).ok());
  const auto written = write_msccl_xml(read->program);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(read_msccl_xml(*written)->program, read->program);
}

// MSCCLang writes the sender's buffer: rank 1 has no scratch to add from.
TEST_F(MscclXml, ReadsOperandsOfTheSenderOnRequest) {
  const std::string file = replaced(pair_file(), R"(type="rrcs" srcbuf="i")", R"(type="rrcs" srcbuf="s")");
  const auto refused = read_msccl_xml(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.substr(0, 20), "gpu 0 tb 0 step 1: s");
  EXPECT_NE(refused.error().hint.find("sender"), std::string::npos);
  for (const XmlOperands operands : {XmlOperands::sender, XmlOperands::automatic}) {
    const auto read = read_msccl_xml(file, {.operands = operands});
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read->operands_rewritten);
    EXPECT_EQ(read->program, read_msccl_xml(pair_file())->program);
  }
  EXPECT_FALSE(read_msccl_xml(pair_file(), {.operands = XmlOperands::automatic})->operands_rewritten);
}

TEST_F(MscclXml, ReportsErrorsWithTheirLocation) {
  EXPECT_EQ(
      error_with("type=\"rrcs\"", "type=\"rx\""),
      "gpu 0 tb 0 step 1: attribute type of <step> at line 3 column 13 is not one of nop cpy re s r rcs rrc "
      "rrs rrcs: rx");
  EXPECT_EQ(error_with(" deps=\"-1\"", ""),
            "gpu 0 tb 0 step 0: <step> at line 2 column 2 has no attribute deps");
  EXPECT_EQ(error_with("cnt=\"1\"", "cnt=\"0\""),
            "gpu 0 tb 0 step 0: cnt must be at least 1, found 0 (<step> at line 2 column 2)");
  EXPECT_EQ(
      error_with(" s=\"2\"", " s=\"3\""),
      "gpu 0 tb 0 step 2: attribute s of <step> at line 4 column 7 is not its place among the steps, 2: 3");
}

TEST_F(MscclXml, RejectsWhatLoadersAccept) {
  const auto mentions = [](const std::string& message, std::string_view what) {
    return message.find(what) != message.npos ? "" : message;
  };
  struct Case {
    std::string_view from, to, what;
  };
  const std::vector<Case> cases = {
      {"cnt=\"1\"", "cnt=\"2\"", "outside the input buffer of 2 chunks"},
      {"srcoff=\"1\"", "srcoff=\"-1\"", "outside the input buffer"},
      {"srcoff=\"1\"", "srcoff=\"2147483648\"", "a whole number from -1 to"},
      {"srcoff=\"1\"", "srcoff=\"1e0\"", "a whole number"},
      {"srcbuf=\"i\"", "srcbuf=\"x\"", "one of i o s"},
      {"chan=\"0\"", "chan=\"1\"", "not one of the 1 of nchannels"},
      {"chan=\"0\"", "chan=\"-1\"", "not one of the 1 of nchannels"},
      {"send=\"1\"", "send=\"0\"", "its send peer is its own gpu"},
      {"send=\"1\"", "send=\"2\"", "its send peer is not one of the 2 gpus"},
      {"recv=\"1\"", "recv=\"-1\"", "it receives, but its tb has no recv peer"},
      {"send=\"1\"", "send=\"-1\"", "it sends, but its tb has no send peer"},
      {"depid=\"-1\"", "depid=\"1\"", "does not have: depid 1"},
      {"depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"3\"", "does not have: deps 3"},
      {"depid=\"-1\"", "depid=\"0\"", "does not have: deps -1"},
      {"hasdep=\"0\"", "hasdep=\"2\"", "from 0 to 1: 2"},
      {"i_chunks=\"2\"", "i_chunks=\"3\"", "is 2 by nchunksperloop, not 3"},
      {"proto=\"LL\"", "proto=\"ll\"", "Simple, LL or LL128"},
      {"coll=\"allreduce\"", "coll=\"allredcue\"", "a collective of MSCCL"},
      {"inplace=\"1\"", "inplace=\"0\" outofplace=\"0\"", "no call would use"},
      {"inplace=\"1\"", "inplace=\"1\" minBytes=\"9\" maxBytes=\"8\"", "at least minBytes 9"},
      {"id=\"1\"", "id=\"0\"", "a second gpu of this id"},
      {"ngpus=\"2\"", "ngpus=\"3\"", "no gpu has id 2"},
      {"ngpus=\"2\"", "ngpus=\"1000000000\"", "from 1 to 65536"},
      {"nchunksperloop=\"2\"", "nchunksperloop=\"1000000000\"", "from 1 to 16777216"},
      {"s_chunks=\"0\"", "s_chunks=\"1000000000\"", "from 0 to 16777216"},
      {"<tb id=\"0\"", "<tb id=\"1\"", "from 0 to 0: 1"},
      {"<algo name=\"pair\"", "<algo name='pair'", "single quotes"},
      {"<algo name=\"pair\"", "<algo name=\"pair\" name=\"two\"", "an attribute twice: name"},
      {"</gpu>", "", "mismatched end tag, or ends too early"},
      {"</algo>", "</algo><algo/>", "second root"},
      {"<algo", "<!DOCTYPE a [<!ENTITY b \"bb\">]><algo", "DOCTYPE"},
      {"<algo", "<also", "mismatched end tag"},
  };
  for (const Case& c : cases) EXPECT_EQ(mentions(error_with(c.from, c.to), c.what), "") << c.to;
}

TEST_F(MscclXml, RejectsTwoBlocksOnOneConnection) {
  const std::string block =
      R"(<tb id="1" send="1" recv="-1" chan="0">)" + step("0", "s", 0, 0) + "</tb></gpu>";
  EXPECT_EQ(error_with("</gpu>", block).substr(0, 62),
            "gpu 0 tb 1: it shares its send peer 1 and channel 0 with tb 0 ");
  const std::string idle = R"(<tb id="1" send="1" recv="-1" chan="0"></tb></gpu>)";
  EXPECT_EQ(error_with("</gpu>", idle), "no error");
}

TEST_F(MscclXml, NotesOddities) {
  const std::string waits = R"(cnt="0" depid="0" deps="0" hasdep="1")";
  const std::string block = R"(<copy i_off="0"/><tb id="1" send="-1" recv="-1" chan="0">)" +
                            step("0", "nop", -1, -1, waits) + step("1", "cpy", 0, 1) + "</tb></gpu>";
  const auto read = read_msccl_xml(replaced(pair_file(), "</gpu>", block));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::vector<std::string> expected = {
      "unknown elements are skipped: 1 such as <copy>",
      "hasdep=\"1\" on a nop means nothing to the runtimes: 1 nops have it",
      "gpu 0 tb 1 step 1: a nop is followed by a step without depid, which the loaders refuse"};
  EXPECT_EQ(read->notes, expected);
  EXPECT_EQ(read->program.ranks[0].blocks[1].steps[0].op, Op::nop);
  EXPECT_FALSE(read->program.ranks[0].blocks[1].steps[0].publishes);
}

TEST_F(MscclXml, RejectsTruncatedFiles) {
  const std::string file = pair_file();
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(error_of(std::string_view(file).substr(0, length)), "no error") << length;
}

TEST_F(MscclXml, LimitsHostileFiles) {
  std::string deep;
  for (int i = 0; i < 20000; ++i) deep += "<a>";
  for (int i = 0; i < 20000; ++i) deep += "</a>";
  EXPECT_EQ(error_of(deep).substr(0, 35), "elements are nested deeper than 32:");
  std::string wide = "<a";
  for (int i = 0; i < 20000; ++i) wide += fmt::format(" a{}=\"\"", i);
  EXPECT_NE(error_of(wide + "/>").find("more than 64 attributes"), std::string::npos);
  EXPECT_NE(error_of(std::string("<a b=\"\0\"/>", 10)).find("zero byte"), std::string::npos);
  EXPECT_EQ(error_of(""), "XML has no element");
  EXPECT_EQ(error_of("<system/>"), "the root of an MSCCL program is <algo>, not <system>");
}

TEST_F(MscclXml, EscapesNames) {
  auto program = read_msccl_xml(pair_file())->program;
  program.name = "a<b>\"c\" & 'd'\n\xc3\xa9";
  const auto written = write_msccl_xml(program);
  ASSERT_TRUE(written.ok());
  const auto again = read_msccl_xml(*written);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->program.name, program.name);
}

// A program in which every field is random, within what files can express.
Program random_program(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  Program program;
  const Kind kinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all,
                        Kind::broadcast,  Kind::gather,     Kind::send,           Kind::custom};
  program.name = fmt::format("p{}", below(1000));
  program.collective.kind = kinds[below(8)];
  program.collective.ranks = 2 + below(4);
  program.collective.chunks = 1 + below(3);
  if (program.collective.kind == Kind::send) program.collective.peer = 1;
  program.protocol = static_cast<Protocol>(below(3));
  program.channels = 64;
  program.min_bytes = below(2) * 100;
  program.max_bytes = below(2) * 1000;
  for (std::int32_t r = 0; r < program.collective.ranks; ++r) {
    RankProgram& rank = program.ranks.emplace_back();
    const bool custom = program.collective.kind == Kind::custom;
    rank.input_chunks = custom ? 4 : extent(program.collective, Buffer::input, r);
    rank.output_chunks = custom ? 5 : extent(program.collective, Buffer::output, r);
    rank.scratch_chunks = 1 + below(4);
    rank.blocks.resize(below(4));
    for (std::size_t b = 0; b < rank.blocks.size(); ++b) {
      Threadblock& block = rank.blocks[b];
      block.send_to = block.receive_from = (r + 1) % program.collective.ranks;
      block.channel = static_cast<std::int32_t>(b);
      block.steps.resize(1 + below(5));
    }
    for (Threadblock& block : rank.blocks)
      for (Step& step : block.steps) {
        step.op = static_cast<Op>(below(kOps));
        if (below(2) == 0) {
          step.wait_block = below(static_cast<int>(rank.blocks.size()));
          step.wait_step = below(static_cast<int>(rank.blocks[step.wait_block].steps.size()));
        }
        if (step.op == Op::nop) continue;
        step.publishes = below(2) == 0;
        const auto slot = [&] {
          const auto buffer = static_cast<Buffer>(below(3));
          const std::int32_t sizes[] = {rank.input_chunks, rank.output_chunks, rank.scratch_chunks};
          return Slot{buffer, below(sizes[static_cast<int>(buffer)])};
        };
        step.source = slot();
        step.target = writes_target(step.op) ? slot() : step.source;
        if (!reads_source(step.op)) step.source = step.target;
      }
  }
  return program;
}

TEST_F(MscclXml, WrittenFilesReadBackUnchanged) {
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    const Program program = random_program(random);
    const auto written = write_msccl_xml(program);
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto read = read_msccl_xml(*written);
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << *written;
    ASSERT_EQ(read->program, program) << *written;
    ASSERT_EQ(*write_msccl_xml(read->program), *written);
  }
}

TEST_F(MscclXml, DoesNotWriteWhatADialectCannotExpress) {
  const auto pair = read_msccl_xml(pair_file())->program;
  const auto refusal = [](const Program& program, XmlDialect dialect) {
    const auto written = write_msccl_xml(program, dialect);
    return written.ok() ? "no error" : written.error().message;
  };
  Program program = pair;
  program.collective.kind = Kind::barrier;
  EXPECT_EQ(refusal(program, XmlDialect::automatic),
            "the azure dialect of MSCCL XML does not support the collective barrier");
  program.collective.kind = Kind::custom;
  EXPECT_EQ(refusal(program, XmlDialect::azure),
            "the azure dialect of MSCCL XML does not support the collective custom");
  program.collective.kind = Kind::gather;
  EXPECT_EQ(refusal(program, XmlDialect::msccl),
            "the msccl dialect of MSCCL XML does not support the collective gather");
  program = pair;
  program.collective.counts = {1, 1};
  EXPECT_EQ(refusal(program, XmlDialect::msccl), "MSCCL XML does not support blocks of different sizes");
  program = pair;
  program.ranks[1].blocks[0].steps[0].source.index = 2;
  EXPECT_EQ(refusal(program, XmlDialect::msccl),
            "gpu 1 tb 0 step 0: srcoff 2 with cnt 1 is outside the input buffer of 2 chunks");
}

TEST_F(MscclXml, TargetsHaveLimits) {
  auto file = *read_msccl_xml(pair_file());
  EXPECT_TRUE(check_target(file, Target::msccl).empty());
  ASSERT_EQ(check_target(file, Target::rccl).size(), 1u);
  EXPECT_EQ(print(check_target(file, Target::rccl)[0]),
            "rccl needs the attributes outofplace, minBytes and maxBytes");
  Threadblock& block = file.program.ranks[1].blocks[0];
  block.steps.resize(257, block.steps[0]);
  block.steps[4].count = 72;
  block.steps[5].wait_block = 128;
  file.program.channels = 33;
  std::vector<std::string> found;
  for (const TargetFinding& finding : check_target(file, Target::msccl)) found.push_back(print(finding));
  const std::vector<std::string> expected = {
      "33 channels, but msccl allows 32", "gpu 1 tb 0: 257 steps, but msccl allows 256",
      "gpu 1 tb 0 step 4: 72 chunks in a transfer, but msccl allows 71",
      "gpu 1 tb 0 step 5: 128 as depid, but msccl allows 127"};
  EXPECT_EQ(found, expected);
}

// Simple holds 2 transfers of up to 2 MiB; two chunks share one while both fit.
TEST_F(MscclXml, HangsFromTheSizeAtWhichChunksFillSlots) {
  Program program = read_msccl_xml(pair_file())->program;
  program.protocol = Protocol::simple;
  EXPECT_EQ(slot_bytes(Protocol::simple, Target::msccl), 2 << 20);
  EXPECT_EQ(slot_bytes(Protocol::ll, Target::msccl), 32 << 10);
  EXPECT_EQ(slot_bytes(Protocol::ll, Target::rccl), 16 << 10);
  EXPECT_EQ(hang_size(program, 2, 1, Target::msccl), std::nullopt);
  EXPECT_EQ(hang_size(program, 3, 1, Target::msccl), 2 * ((1 << 20) + 1));
  EXPECT_EQ(hang_size(program, 3, 3, Target::msccl), 0);
  program.protocol = Protocol::ll;
  EXPECT_EQ(hang_size(program, 3, 3, Target::msccl), std::nullopt);
}

class MscclCorpus : public MscclXml {
 protected:
  void SetUp() override {
    MscclXml::SetUp();
    if (!std::filesystem::exists(kRoot)) GTEST_SKIP() << "the corpus is not installed";
  }
  static nlohmann::json manifest(const std::string& folder) {
    return nlohmann::json::parse(text(folder + "/manifest.json"));
  }
  static std::string text(const std::string& path) { return *read_file(kRoot + ("/" + path), 1 << 28); }
  // The list follows limits and attributes; it does not mention that msccl reads maxBytes="0" as no
  // message.
  static void expect_listed_targets(const XmlProgram& file, const nlohmann::json& entry) {
    const auto listed = entry["within_limits_of"].get<std::vector<std::string>>();
    const std::pair<Target, std::string> targets[] = {
        {Target::msccl, "microsoft/msccl"}, {Target::azure, "Azure executor"}, {Target::rccl, "RCCL"}};
    for (const auto& [target, title] : targets) {
      if (target == Target::msccl && file.azure) continue;
      const auto found = check_target(file, target);
      EXPECT_EQ(found.empty(), std::ranges::find(listed, title) != listed.end())
          << entry["file"] << " " << title << (found.empty() ? "" : ": " + print(found[0]));
    }
  }
  static inline const std::string kRoot = WEFT_SOURCE_DIR "/../shared/corpus";
};

// A build with assertions takes ten times as long, so it skips the large files.
#ifdef NDEBUG
constexpr std::int64_t kLargest = kMaxXmlBytes;
#else
constexpr std::int64_t kLargest = 50000;
#endif

TEST_F(MscclCorpus, EveryValidFileSurvivesARoundTrip) {
  int files = 0;
  for (const auto& entry : manifest("msccl-xml")) {
    const auto name = entry["file"].get<std::string>();
    if (entry["bytes"].get<std::int64_t>() > kLargest) continue;
    ++files;
    const auto read = read_msccl_xml(text("msccl-xml/" + name));
    ASSERT_TRUE(read.ok()) << name << ": " << read.error().message;
    const Program& program = read->program;
    const Count sizes = count(program);
    EXPECT_EQ(program.collective.ranks, entry["ranks"].get<int>()) << name;
    EXPECT_EQ(sizes.steps, entry["steps"].get<int>()) << name;
    EXPECT_EQ(sizes.blocks, entry["threadblocks"].get<int>()) << name;
    EXPECT_EQ(sizes.most_steps, entry["max_steps_per_tb"].get<int>()) << name;
    EXPECT_EQ(!broken_nop_chain(program), entry["nop_chain_rule_ok"].get<bool>()) << name;
    const auto written = write_msccl_xml(program, read->azure ? XmlDialect::azure : XmlDialect::msccl);
    ASSERT_TRUE(written.ok()) << name << ": " << written.error().message;
    const auto again = read_msccl_xml(*written);
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message;
    EXPECT_EQ(again->program, program) << name;
    EXPECT_EQ(again->azure, read->azure) << name;
    expect_listed_targets(*read, entry);
  }
  EXPECT_GT(files, 80);
}

TEST_F(MscclCorpus, RejectsMalformedFilesOnly) {
  for (const auto& entry : manifest("msccl-xml-broken")) {
    const auto name = entry["file"].get<std::string>();
    const auto read = read_msccl_xml(text("msccl-xml-broken/" + name));
    EXPECT_EQ(read.ok(), entry["verdict"] != "malformed") << name;
    const auto& what = entry["what"].get_ref<const std::string&>();
    if (read.ok() || !what.starts_with("gpu") || entry["verdict"] != "malformed") continue;
    const std::string place = what.substr(0, what.find(' ', 4));  // "gpu 4", or "gpu 1:"
    EXPECT_TRUE(read.error().message.starts_with(place)) << name << ": " << read.error().message;
  }
}

}  // namespace
}  // namespace weft::formats
