// weft collective convert and compile: checks programs and writes them in another format.
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/chunks/rings.h"
#include "weft/collectives/compile/out_of_place.h"
#include "weft/collectives/compile/passes.h"
#include "weft/collectives/one_sided/lower_one_sided.h"
#include "weft/formats/collective_source.h"
#include "weft/formats/mscclpp_json.h"
#include "weft/formats/nccl_graph_xml.h"

namespace weft::command {
namespace {

Result<formats::XmlDialect> find_dialect(const std::string& name) {
  if (name.empty()) return formats::XmlDialect::automatic;
  if (name == "msccl") return formats::XmlDialect::msccl;
  if (name == "azure" || name == "rccl") return formats::XmlDialect::azure;
  return user_error(fmt::format("unknown dialect: {}", name), "msccl, or azure, which RCCL reads too");
}

Result<formats::XmlOperands> find_operands(const std::string& name) {
  if (name.empty() || name == "runtime") return formats::XmlOperands::runtime;
  if (name == "sender") return formats::XmlOperands::sender;
  if (name == "automatic") return formats::XmlOperands::automatic;
  return user_error(
      fmt::format("unknown operands: {}", name),
      "runtime (the receiver's slot, which is what runs), sender (as MSCCLang writes them) or automatic");
}

Result<std::string> to_graph(const collective::Program& program) {
  WEFT_TRY(circuits, collective::circuits(program));
  formats::NcclGraph graph;
  graph.pattern =
      circuits.front().closed ? formats::NcclGraph::Pattern::ring : formats::NcclGraph::Pattern::tree;
  for (collective::Circuit& circuit : circuits) graph.channels.push_back({std::move(circuit.ranks), -1, -1});
  return formats::write_nccl_graphs({graph});
}

Status judge_report(const collective::Report& report) {
  return formats::expect_correct(report, "not written, because it is");
}

Result<std::string> to_json(const formats::CollectiveSource& source,
                            const collective::CompileOptions& options) {
  if (source.one_sided) {
    WEFT_TRY_STATUS(judge_report(collective::check(*source.one_sided)));
    return formats::write_mscclpp_json(*source.one_sided);
  }
  WEFT_TRY(program, formats::to_program(source, options));
  WEFT_TRY_STATUS(judge_report(collective::check(program)));
  WEFT_TRY(lowered, collective::lower_one_sided(program));
  WEFT_TRY_STATUS(judge_report(collective::check(lowered)));
  return formats::write_mscclpp_json(lowered);
}

// The contents of `path`; the format follows from its extension.
Result<std::string> render(const formats::CollectiveSource& source, const std::string& path,
                           const std::string& dialect_name, const collective::CompileOptions& options) {
  if (path.ends_with(".json")) return to_json(source, options);
  const bool is_graph = path.ends_with(".graph.xml");
  const bool is_xml = path.ends_with(".xml");
  if (!is_xml && !path.ends_with(".program"))
    return user_error(
        fmt::format("unknown file format: {}", path),
        ".xml (MSCCL), .json (MSCCL++), .program (Weft's text) or .graph.xml (NCCL_GRAPH_FILE)");
  WEFT_TRY(program, formats::to_program(source, options));
  WEFT_TRY_STATUS(judge_report(collective::check(program)));
  if (is_graph) return to_graph(program);
  if (!is_xml) return collective::print(program);
  WEFT_TRY(dialect, find_dialect(dialect_name));
  if (dialect == formats::XmlDialect::automatic && source.program && source.program->azure)
    dialect = formats::XmlDialect::azure;
  return formats::write_msccl_xml(program, dialect);
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Writes the file and describes its contents.
Result<std::string> write_dialect(const formats::CollectiveSource& source, const std::string& path,
                                  const std::string& dialect, const collective::CompileOptions& options,
                                  session::Format format) {
  WEFT_TRY(text, render(source, path, dialect, options));
  WEFT_TRY_STATUS(write_file_atomically(path, text));
  if (format == session::Format::json)
    return dump({{"file", path},
                 {"collective", name(source.collective().kind)},
                 {"ranks", source.collective().ranks},
                 {"checked", true}});
  return fmt::format("{}: {}, {} ranks, checked\n", path, name(source.collective().kind),
                     source.collective().ranks);
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');)
    if (!word.empty()) found.push_back(word);
  return found;
}

Result<std::string> convert(const CollectiveConvert& request) {
  WEFT_TRY(operands, find_operands(request.operands));
  WEFT_TRY(source, formats::read_collective(request.from, {.operands = operands, .effort = request.effort}));
  WEFT_TRY_STATUS(formats::check_as(source, request.as));
  return write_dialect(source, request.to, request.dialect, {}, request.format);
}

Result<std::string> compile(const CollectiveCompile& request) {
  WEFT_TRY(source, formats::read_collective(request.algorithm));
  if (!source.moves)
    return user_error(fmt::format("{} is already compiled", request.algorithm),
                      "weft collective convert rewrites it");
  collective::CompileOptions options;
  WEFT_TRY(protocol, formats::find_protocol(request.protocol));
  options.protocol = protocol;
  options.instances = request.instances;
  options.max_channels = request.max_channels;
  options.slots = request.slots;
  options.fuse = request.fuse;
  if (request.out_of_place) source.moves = collective::out_of_place(*source.moves);
  if (!request.passes.empty()) {
    const std::vector<std::string> names = words(request.passes);
    const std::vector<std::string_view> views(names.begin(), names.end());
    WEFT_TRY(shown, collective::run_passes(*source.moves, views, options));
    return request.format == session::Format::json ? dump({{"passes", names}, {"text", shown}}) : shown;
  }
  if (request.to.empty()) {
    WEFT_TRY(program, formats::to_program(source, options));
    const std::string text = collective::print(program);
    return request.format == session::Format::json ? dump({{"program", text}}) : text;
  }
  return write_dialect(source, request.to, request.dialect, options, request.format);
}

}  // namespace

session::Reply run(const CollectiveConvert& request) { return session::to_reply(convert(request)); }
session::Reply run(const CollectiveCompile& request) { return session::to_reply(compile(request)); }

}  // namespace weft::command
