// test/unit/case/children.h -- child processes that a test has started and not waited for, by
// process id.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace weft {

inline std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    char state = 0;
    pid_t parent = 0;
    if (stat.rfind(')') == std::string::npos) continue;
    std::istringstream(stat.substr(stat.rfind(')') + 1)) >> state >> parent;
    if (parent == getpid()) found.push_back(std::stoi(name));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace weft
