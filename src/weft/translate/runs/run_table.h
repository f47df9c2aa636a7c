// weft/translate/runs/run_table.h -- tables of training runs that somebody measured, as rows of named fields.
//
//   id,model,layers,hidden,gpu,gpus,tp,pp,dp,mbs,gbs,seq,step_s,mem_gib      CSV, plain or gzip
//   {"schema": "weft-published-v1", "records": [{"id": .., "model": {..}, "parallel": {..}, ..}]}
//   {"schema": "weft-published-table-v1", "common": {..}, "columns": [..], "rows": [[..]]}
//   {"id": .., "gpu": .., "world": 8, "step_ms": .., "flags": {..}}           JSON lines, Megatron-LM's flags
//
// All become rows whose fields have the names of the CSV's columns; run.h says what they mean.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::runs {

// A field that a table leaves empty is absent.
using RunFields = std::map<std::string, std::string, std::less<>>;

struct RunRow {
  std::string id;  // of the table; else its number
  int line = 0;    // of the file, where it is one line
  RunFields fields;
};

// `path` is for errors and tells the format where the text does not.
Result<std::vector<RunRow>> read_run_table(std::string_view text, std::string_view path);

}  // namespace weft::runs
