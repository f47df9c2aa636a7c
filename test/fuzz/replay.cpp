// replay TARGET CORPUS DICTIONARY COUNT -- runs a fuzz target without libFuzzer, for compilers that
// lack it: on every file of the corpus, then on COUNT mutations of them, the same ones each time.
// After a failure, the input is left in PROGRAM.TARGET.input.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "promise.h"
#include "weft/base/random.h"

#define DOOR(name) extern "C" int test_one_##name(const std::uint8_t* data, std::size_t size);
#include "replayed_doors.inc"
#undef DOOR

namespace {

struct Target {
  std::string_view name;
  int (*test_one)(const std::uint8_t* data, std::size_t size);
};

constexpr Target kTargets[] = {
#define DOOR(name) {#name, test_one_##name},
#include "replayed_doors.inc"
#undef DOOR
};

constexpr std::size_t kLongest = 4096;  // the same limit as libFuzzer's

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The entries of a libFuzzer dictionary: the text between the quotes of each line.
std::vector<std::string> read_words(const std::filesystem::path& file) {
  std::vector<std::string> words;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (!line.starts_with('#') && begin < end) words.push_back(line.substr(begin + 1, end - begin - 1));
  }
  return words;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words)
      : seeds_(std::move(seeds)), words_(std::move(words)) {}

  std::string next() {
    std::string text = pick(seeds_);
    for (std::uint64_t edits = 1 + random_.below(4); edits > 0; --edits) edit(text);
    text.resize(std::min(text.size(), kLongest));
    return text;
  }

 private:
  const std::string& pick(const std::vector<std::string>& from) { return from[random_.below(from.size())]; }
  std::size_t place(const std::string& text) { return random_.below(text.size() + 1); }

  void edit(std::string& text) {
    const std::size_t at = place(text), length = random_.below(16);
    switch (random_.below(6)) {
      case 0: text.insert(at, pick(words_)); break;
      case 1: text.insert(at, 1, static_cast<char>(random_.below(256))); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(place(text), length)); break;  // repeat a piece
      case 4: {                                                          // continue with another seed
        const std::string& other = pick(seeds_);
        text = text.substr(0, at) + other.substr(place(other));
        break;
      }
      case 5: text.replace(at, length, pick(words_)); break;
    }
  }

  std::vector<std::string> seeds_, words_;
  weft::Random random_{0};
};

// Keeps the current input in a file, to reproduce a crash. The file stays open: creating it anew
// for each of thousands of inputs would write to the disk each time.
class LastInput {
 public:
  explicit LastInput(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  LastInput(const LastInput&) = delete;
  LastInput& operator=(const LastInput&) = delete;
  ~LastInput() {
    ::close(file_);
    std::filesystem::remove(path_);
  }
  bool holds(const std::string& text) const {
    const auto size = static_cast<ssize_t>(text.size());
    return ::pwrite(file_, text.data(), text.size(), 0) == size && ::ftruncate(file_, size) == 0;
  }

 private:
  std::string path_;
  int file_;
};

void run(const Target& target, const std::string& text, const LastInput& last) {
  if (!last.holds(text)) std::fputs("replay: the input cannot be saved\n", stderr);
  target.test_one(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto* const target =
      argc == 5 ? std::ranges::find(kTargets, std::string_view(argv[1]), &Target::name) : std::end(kTargets);
  if (target == std::end(kTargets)) {
    std::fputs("usage: replay TARGET CORPUS DICTIONARY COUNT\n", stderr);
    return 1;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());  // directory order varies, and mutations depend on it
  std::vector<std::string> seeds;
  for (const auto& file : files) seeds.push_back(read(file));
  const std::vector<std::string> words = read_words(argv[3]);
  if (seeds.empty() || words.empty()) {
    std::fputs("replay: the corpus or the dictionary is empty\n", stderr);
    return 1;
  }
  const LastInput last(std::string(argv[0]) + "." + argv[1] + ".input");
  for (const std::string& seed : seeds) run(*target, seed, last);
  const int count = std::atoi(argv[4]);
  Mutator mutator(seeds, words);
  for (int i = 0; i < count; ++i) run(*target, mutator.next(), last);
  std::printf("%zu seeds, %d mutations\n", seeds.size(), count);
}
