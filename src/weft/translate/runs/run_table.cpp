#include "weft/translate/runs/run_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::runs {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRows = 1'000'000, kMostColumns = 1000;

// One record of a CSV, quotes and line breaks within them included. Moves `at` past it.
std::vector<std::string> csv_record(std::string_view text, std::size_t& at, int& line) {
  std::vector<std::string> values(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    line += c == '\n';
    if (quoted && c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
      values.back() += text[++at];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      values.emplace_back();
    } else if (!quoted && c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      values.back() += c;
    }
  }
  return values;
}

Result<std::vector<RunRow>> read_csv_runs(std::string_view text, std::string_view path) {
  std::size_t at = 0;
  int line = 1;
  const std::vector<std::string> columns = csv_record(text, at, line);
  if (columns.size() < 2 || columns.size() > kMostColumns)
    return user_error(fmt::format("{}: expected a header with the names of columns, found {:?}", path,
                                  text.substr(0, std::min<std::size_t>(text.find('\n'), 60))),
                      "weft help validate lists the columns");
  std::vector<RunRow> rows;
  while (at < text.size()) {
    RunRow row;
    row.line = line;
    const std::vector<std::string> values = csv_record(text, at, line);
    if (values.size() == 1 && values.front().empty()) continue;
    if (values.size() != columns.size())
      return user_error(
          fmt::format("{}:{}: expected {} values, found {}", path, row.line, columns.size(), values.size()));
    if (rows.size() == kMostRows) return user_error(fmt::format("{}: more than {} rows", path, kMostRows));
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (!values[c].empty()) row.fields.emplace(columns[c], values[c]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void put(RunFields& fields, const std::string& name, const Json& value) {
  if (!value.is_null() && !value.is_structured()) fields.insert_or_assign(name, text_of(value));
}

// The records' names, by ours where they differ.
std::string column_of(const std::string& key) {
  static const std::map<std::string, std::string, std::less<>> kColumns = {
      {"num_gpus", "gpus"},          {"vpp", "vp"},
      {"micro_batch", "mbs"},        {"global_batch", "gbs"},
      {"iter_s", "step_s"},          {"tokens_per_s_per_gpu", "tok_s_gpu"},
      {"intra_gbps", "within_gbps"}, {"inter_gbps", "across_gbps"},
      {"mem_gb", "mem_gb"},          {"hbm_gbps", "gpu_bandwidth_gbps"},
      {"seq_parallel", "sp"},        {"name", "model"},
      {"grad_accum", "ga"},          {"num_layers", "layers"},
  };
  const auto found = kColumns.find(key);
  return found == kColumns.end() ? key : found->second;
}

Result<std::vector<RunRow>> read_records(const Json& top, std::string_view path) {
  std::vector<RunRow> rows;
  for (const Json& record : top["records"]) {
    if (!record.is_object())
      return user_error(fmt::format("{}: expected a record, found {}", path, record.type_name()));
    RunRow row;
    for (const char* part : {"model", "hardware", "parallel", "measured"}) {
      if (!record.contains(part) || !record[part].is_object()) continue;
      for (const auto& [key, value] : record[part].items()) {
        std::string column = column_of(key);
        if (part == std::string_view("hardware") && key == "mem_gb") column = "gpu_memory_gb";
        put(row.fields, column, value);
      }
    }
    if (record.contains("id")) put(row.fields, "id", record["id"]);
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<RunRow>> read_columns(const Json& top, std::string_view path) {
  const Json none = Json::array();
  const Json& columns = top.contains("columns") ? top["columns"] : none;
  std::vector<RunRow> rows;
  for (const Json& values : top["rows"]) {
    if (!values.is_array() || values.size() != columns.size())
      return user_error(
          fmt::format("{}: expected {} values in each row, found {}", path, columns.size(), values.size()));
    RunRow row;
    if (top.contains("common") && top["common"].is_object())
      for (const auto& [key, value] : top["common"].items()) put(row.fields, column_of(key), value);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string name = columns[c].is_string() ? columns[c].get<std::string>() : std::string();
      put(row.fields, name == "iter_ms" ? "step_ms" : column_of(name), values[c]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Megatron-LM's flags by the columns that they are.
Result<std::vector<RunRow>> read_flag_lines(std::string_view text, std::string_view path) {
  static const std::map<std::string, std::string, std::less<>> kColumns = {
      {"num-layers", "layers"},
      {"hidden-size", "hidden"},
      {"num-attention-heads", "heads"},
      {"num-query-groups", "kv_heads"},
      {"kv-channels", "head_dim"},
      {"ffn-hidden-size", "ffn"},
      {"seq-length", "seq"},
      {"micro-batch-size", "mbs"},
      {"global-batch-size", "gbs"},
      {"tensor-model-parallel-size", "tp"},
      {"pipeline-model-parallel-size", "pp"},
      {"context-parallel-size", "cp"},
      {"expert-model-parallel-size", "ep"},
      {"expert-tensor-parallel-size", "etp"},
      {"num-virtual-stages-per-pipeline-rank", "vp"},
      {"num-experts", "experts"},
      {"moe-router-topk", "topk"},
      {"moe-ffn-hidden-size", "moe_ffn"},
      {"vocab-size", "vocab"},
      {"sequence-parallel", "sp"},
      {"swiglu", "gated"},
      {"recompute-granularity", "recompute"},
  };
  // What changes a step in ways that the columns cannot say.
  static const std::vector<std::string> kBeyond = {"hybrid-layer-pattern",
                                                   "hybrid-override-pattern",
                                                   "multi-latent-attention",
                                                   "mtp-num-layers",
                                                   "flextron",
                                                   "img-h",
                                                   "spec",
                                                   "export-model-type",
                                                   "is-hybrid-model"};
  std::vector<RunRow> rows;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("flags") || !record["flags"].is_object())
      return user_error(fmt::format("{}:{}: expected an object with flags", path, number));
    RunRow row;
    row.line = number;
    for (const auto& [key, value] : record.items()) put(row.fields, column_of(key), value);
    const Json& flags = record["flags"];
    for (const auto& [key, value] : flags.items())
      if (const auto column = kColumns.find(key); column != kColumns.end())
        put(row.fields, column->second, value);
    const auto is_set = [&](const char* flag) { return flags.contains(flag) && flags[flag] != false; };
    RunFields& fields = row.fields;
    fields.emplace("stack", "megatron");
    fields.emplace("framework", "megatron");
    fields.emplace("mem_of", "last_stage");  // Megatron-LM logs the memory of its last rank
    if (fields.contains("world")) fields["gpus"] = fields["world"];
    fields["precision"] = is_set("fp4-format")   ? "nvfp4"
                          : is_set("fp8-format") ? "fp8"
                          : is_set("bf16")       ? "bf16"
                          : is_set("fp16")       ? "fp16"
                                                 : "fp32";
    fields["zero"] = is_set("use-megatron-fsdp") ? "3" : is_set("use-distributed-optimizer") ? "1" : "0";
    fields["overlap"] = is_set("overlap-grad-reduce") ? "1" : "0";
    if (!fields.contains("tied")) fields["tied"] = is_set("untie-embeddings-and-output-weights") ? "0" : "1";
    if (!fields.contains("vocab")) fields["vocab"] = "50304";
    if (fields.contains("experts") && is_set("swiglu") == false) fields["gated"] = "0";
    const auto count = [&](const char* flag, std::int64_t otherwise) {
      const auto found = flags.find(flag);
      return found != flags.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
    };
    const std::int64_t per_chunk = count("num-layers-per-virtual-pipeline-stage", 0),
                       stages = count("pipeline-model-parallel-size", 1);
    if (per_chunk > 0 && stages > 0)
      fields["vp"] = std::to_string(count("num-layers", 0) / stages / per_chunk);
    if (fields.contains("model") && fields["model"] == "bert") fields["family"] = "bert";
    if (flags.contains("moe-layer-freq")) fields["beyond"] = "moe-layer-freq";
    for (const std::string& flag : kBeyond)
      if (is_set(flag.c_str())) fields["beyond"] = flag;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Result<std::vector<RunRow>> read_run_table(std::string_view text, std::string_view path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return user_error(fmt::format("{}: the file is empty", path));
  auto rows = [&]() -> Result<std::vector<RunRow>> {
    if (text[first] != '{') return read_csv_runs(text, path);
    if (path.ends_with(".jsonl")) return read_flag_lines(text, path);
    const Json top = Json::parse(text, nullptr, false);
    if (top.is_object() && top.contains("records") && top["records"].is_array())
      return read_records(top, path);
    if (top.is_object() && top.contains("rows") && top["rows"].is_array()) return read_columns(top, path);
    return user_error(fmt::format("{}: expected records or rows of training runs", path),
                      "weft help validate shows the forms");
  }();
  if (!rows.ok()) return rows;
  for (std::size_t r = 0; r < rows->size(); ++r) {
    RunRow& row = (*rows)[r];
    for (const char* name : {"id", "case"})
      if (row.id.empty() && row.fields.contains(name)) row.id = row.fields[name];
    if (row.id.empty()) row.id = fmt::format("row {}", r + 1);
  }
  return rows;
}

}  // namespace weft::runs
