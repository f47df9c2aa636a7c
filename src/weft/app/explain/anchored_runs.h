// weft/app/explain/anchored_runs.h -- errors of predictions with and without one measured run per series.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace weft::explain {

struct AnchoredValue {
  double measured = 0, without = 0, with = 0;  // measured 0: not known
};

struct AnchoredRun {
  std::string id, anchor;  // the anchor's id
  AnchoredValue seconds, bytes;
};

// Runs that are an anchor, or the only one of their series, are not among these.
struct AnchoredFile {
  std::string path;
  std::size_t series = 0;
  std::vector<AnchoredRun> runs;
  std::vector<std::pair<std::string, std::string>> refused;  // anchors, and why they say nothing
};

std::string print_text(const std::vector<AnchoredFile>& files, bool rows, std::size_t width);
// A JSON object of one file.
std::string print_json(const AnchoredFile& file);

}  // namespace weft::explain
