// test/unit/case/temporary_folder.h -- a temporary folder that is removed after the test.
#pragma once
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

namespace weft {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // Named by process and a number within the process. Leftovers of a killed process are removed
    // first.
    static std::atomic<int> made{0};
    const std::string name = "weft-test-" + std::to_string(getpid()) + "-" + std::to_string(made++);
    path_ = (std::filesystem::temp_directory_path() / name).string();
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace weft
