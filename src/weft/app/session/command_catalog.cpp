#include "weft/app/session/command_catalog.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/measured_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/language/shipped.h"

namespace weft::session {
namespace {

// A process runs one command; the scripts given before it apply to all of it.
std::optional<language::Catalog>& before_command() {
  static std::optional<language::Catalog> catalog;
  return catalog;
}

}  // namespace

Result<Created> create_all(language::Catalog& catalog, const std::string& script, OtherStatements others) {
  using enum language::syntax::StatementKind;
  auto parsed = language::parse_and_keep(script);
  if (!parsed.ok()) return in_text(script, std::move(parsed).error());
  Created last;
  for (const language::syntax::Statement* statement : (*parsed)->script.statements) {
    switch (statement->kind) {
      case create_model: last.model = statement->as<language::syntax::CreateModel>().name.text; break;
      case create_cluster: last.cluster = statement->as<language::syntax::CreateCluster>().name.text; break;
      case create_device:
      case create_stack:
      case create_function:
      case create_layer:
      case drop: break;
      default:
        if (others == OtherStatements::skipped) continue;
        return in_text(script, user_error("only CREATE and DROP are allowed here",
                                          "remove the other statements", statement->span));
    }
    if (Status defined = define_object(catalog, *parsed, *statement, {}); !defined.ok())
      return in_text(script, std::move(defined).error());
  }
  return last;
}

Status read_before_command(const std::string& script) {
  language::Catalog catalog;
  load_known(catalog);
  if (auto created = create_all(catalog, script, OtherStatements::refused); !created.ok())
    return std::move(created).error();
  before_command() = std::move(catalog);
  return {};
}

void load_known(language::Catalog& catalog) {
  if (before_command())
    catalog = *before_command();
  else
    language::load_shipped(catalog);
}

}  // namespace weft::session
