#include "weft/app/command/import.h"

#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/description.h"
#include "weft/app/session/reply.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/formats/mapped_file.h"
#include "weft/language/bind.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/imports/onnx.h"
#include "weft/translate/imports/weights.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

// "llama-7b/config.json" is named after its folder, any other file after itself.
std::string name_of_file(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  return imports::name_from(stem == "config" ? path.parent_path().filename().string() : stem);
}

// Binds and describes the generated text: import guarantees that it binds.
Result<explain::Description> describe_import(const imports::Imported& model) {
  WEFT_TRY(source, language::parse_and_keep(model.text));
  language::Catalog catalog;
  for (const language::syntax::Statement* statement : source->script.statements)
    WEFT_TRY_STATUS(language::define(catalog, source, *statement, {}));
  const language::syntax::Name name{.text = model.name, .span = {}};
  WEFT_TRY(bound, language::bind(catalog, name, {}));
  return explain::describe(bound.graph);
}

Result<std::string> convert(const Import& request, const imports::Imported& model,
                            std::vector<std::string>& notes) {
  std::vector<formats::Checkpoint> files;
  for (const std::string& path : request.weights) {
    WEFT_TRY(file, formats::load(path));
    files.push_back(std::move(file));
  }
  WEFT_TRY(converted, imports::convert_weights(model, files));
  std::filesystem::path to(request.to);
  to.replace_extension(".safetensors");
  WEFT_TRY_STATUS(formats::save(to.string(), converted.checkpoint));
  if (!converted.unread.empty())
    notes.push_back(fmt::format("{} tensors in the weights are not parameters, such as {}",
                                converted.unread.size(), converted.unread.front()));
  return to.string();
}

// Copies tensors stored in files beside the model from mapped memory, so that none is loaded whole.
Status add_external(const Import& request, imports::ImportedOnnx& imported,
                    std::map<std::string, formats::MappedFile>& files) {
  const std::filesystem::path folder = std::filesystem::path(request.file).parent_path();
  for (const imports::ExternalTensor& tensor : imported.external) {
    const std::string path = (folder / tensor.location).string();
    auto file = files.find(path);
    if (file == files.end()) {
      WEFT_TRY(mapped, formats::MappedFile::open(path));
      file = files.emplace(path, std::move(mapped)).first;
    }
    const std::span<const std::byte> bytes = file->second.bytes();
    const auto begin = static_cast<std::size_t>(tensor.offset), size = static_cast<std::size_t>(tensor.size);
    if (begin > bytes.size() || size > bytes.size() - begin)
      return user_error(fmt::format("{}: expected {} bytes of {} from byte {} on, found {} in all", path,
                                    size, tensor.parameter, begin, bytes.size()));
    imported.weights.tensors.push_back(
        {tensor.parameter, tensor.dtype, tensor.shape, bytes.subspan(begin, size)});
  }
  return {};
}

std::string import_text(const Import& request, const imports::Imported& model, const std::string& weights,
                        const std::vector<std::string>& notes) {
  if (request.to.empty()) return model.text;
  std::string out = fmt::format("wrote {}: model {}, {} parameters\n", request.to, model.name,
                                print_exact(model.parameters));
  if (!weights.empty()) out += fmt::format("wrote {}: LOAD {} FROM '{}'\n", weights, model.name, weights);
  for (const std::string& note : notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string import_json(const Import& request, const imports::Imported& model, const std::string& weights,
                        const std::vector<std::string>& notes, const explain::Description& description) {
  Json json = {{"model", model.name},
               {"architecture", model.architecture},
               {"parameters", model.parameters},
               {"parameter_tensors", description.parameter_tensors},
               {"multiply_adds", description.multiply_adds},
               {"notes", notes}};
  if (request.to.empty())
    json["text"] = model.text;
  else
    json["file"] = request.to;
  if (!weights.empty()) json["weights"] = weights;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// JSON starts with { or [; anything else is treated as ONNX.
bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// A model, and the weights stored in its file.
Result<imports::ImportedOnnx> import_file(const Import& request, std::string_view text) {
  if (!looks_like_json(text)) {
    if (!request.weights.empty())
      return user_error("--weights is for a config.json: an ONNX file holds its weights");
    return imports::import_onnx(text, request.name.empty() ? name_of_file(request.file) : request.name);
  }
  WEFT_TRY(model, imports::import_hugging_face(text, {.name = request.name,
                                                      .otherwise = name_of_file(request.file),
                                                      .plain_rotary = request.plain_rotary}));
  imports::ImportedOnnx found;
  found.model = std::move(model);
  return found;
}

Result<std::string> answer_import(const Import& request) {
  if (!request.name.empty() && imports::name_from(request.name) != request.name)
    return user_error(
        fmt::format("--name: expected lowercase letters, digits and _, found '{}'", request.name),
        fmt::format("such as {}", imports::name_from(request.name)));
  if (!request.weights.empty() && request.to.empty())
    return user_error("--weights needs -o", "the weights are written beside the model's text");
  WEFT_TRY(file, formats::MappedFile::open(request.file));
  auto imported = import_file(request, file.text());
  if (!imported.ok()) {
    Error error = imported.error();
    error.message = fmt::format("{}: {}", request.file, error.message);
    return error;
  }
  const imports::Imported& model = imported->model;
  WEFT_TRY(description, describe_import(model));
  WEFT_CHECK(description.parameters == model.parameters,
             fmt::format("{} parameters in the model's source, {} by its parts", description.parameters,
                         model.parameters));
  std::vector<std::string> notes = model.notes;
  std::string weights;
  std::map<std::string, formats::MappedFile> beside;
  if (request.to.empty() && !imported->external.empty())
    notes.push_back(fmt::format("{} tensors are in files such as {}: -o writes them",
                                imported->external.size(), imported->external.front().location));
  if (!request.to.empty()) WEFT_TRY_STATUS(add_external(request, *imported, beside));
  if (!request.weights.empty()) {
    WEFT_TRY(written, convert(request, model, notes));
    weights = std::move(written);
  } else if (!imported->weights.tensors.empty() && !request.to.empty()) {
    std::filesystem::path to(request.to);
    to.replace_extension(".safetensors");
    WEFT_TRY_STATUS(formats::save(to.string(), imported->weights));
    weights = to.string();
  }
  if (!request.to.empty()) WEFT_TRY_STATUS(write_file_atomically(request.to, model.text));
  return request.format == session::Format::json ? import_json(request, model, weights, notes, description)
                                                 : import_text(request, model, weights, notes);
}

}  // namespace

session::Reply run(const Import& request) { return session::to_reply(answer_import(request)); }

}  // namespace weft::command
