#include "weft/language/shipped.h"

#include <fmt/format.h>

#include "weft/base/embedded.h"
#include "weft/language/bind.h"

namespace weft {
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_clusters();
std::span<const EmbeddedFile> embedded_stacks();
}  // namespace weft

namespace weft::language {
namespace {

// Defines devices before clusters, whatever the order of the files.
void define_all(Catalog& catalog, const std::shared_ptr<const ParsedText>& source,
                syntax::StatementKind kind) {
  for (const syntax::Statement* statement : source->script.statements) {
    if (statement->kind != kind) continue;
    // Layers and models are not tried here, since that would bind all of them at every start. The
    // tests bind each one.
    if (kind == syntax::StatementKind::create_layer) {
      const auto& layer = statement->as<syntax::CreateLayer>();
      catalog.layers.insert_or_assign(std::string(layer.name.text), LayerDefinition{source, &layer, true});
    } else if (kind == syntax::StatementKind::create_model) {
      const auto& model = statement->as<syntax::CreateModel>();
      catalog.models.insert_or_assign(std::string(model.name.text), ModelDefinition{source, &model, true});
    } else {
      const Status status = define(catalog, source, *statement, {});
      WEFT_CHECK(status.ok(), status.error().message);
    }
  }
}

}  // namespace

void load_shipped(Catalog& catalog) {
  std::vector<std::shared_ptr<const ParsedText>> sources;
  for (const std::span<const EmbeddedFile> files :
       {embedded_clusters(), embedded_stacks(), embedded_models()}) {
    for (const EmbeddedFile& file : files) {
      auto parsed = parse_and_keep(file.text);
      WEFT_CHECK(parsed.ok(), fmt::format("{}: {}", file.path, parsed.error().message));
      sources.push_back(*parsed);
    }
  }
  using enum syntax::StatementKind;
  for (const syntax::StatementKind kind :
       {create_device, create_cluster, create_stack, create_layer, create_model})
    for (const auto& source : sources) define_all(catalog, source, kind);
}

}  // namespace weft::language
