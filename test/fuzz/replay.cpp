// replay CORPUS DICTIONARY COUNT -- a fuzz target without a fuzzer, for compilers that have none:
// runs every file of the corpus, then COUNT mutations of them, the same ones each time. The input
// that broke a promise is left in PROGRAM.input.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "promise.h"
#include "weft/base/random.h"

namespace {

constexpr std::size_t kLongest = 4096;  // as libFuzzer is told

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The words of a libFuzzer dictionary: what stands between the quotes of each line.
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
      case 3: text.insert(at, text.substr(place(text), length)); break;  // say a piece twice
      case 4: {                                                          // go on as another seed does
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

void run(const std::string& text, const std::string& last_input) {
  std::ofstream(last_input, std::ios::binary | std::ios::trunc) << text;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: replay CORPUS DICTIONARY COUNT\n", stderr);
    return 1;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());  // folders are listed in no order; mutations go by it
  std::vector<std::string> seeds;
  for (const auto& file : files) seeds.push_back(read(file));
  const std::vector<std::string> words = read_words(argv[2]);
  if (seeds.empty() || words.empty()) {
    std::fputs("replay: the corpus or the dictionary is empty\n", stderr);
    return 1;
  }
  const std::string last_input = std::string(argv[0]) + ".input";
  for (const std::string& seed : seeds) run(seed, last_input);
  const int count = std::atoi(argv[3]);
  Mutator mutator(seeds, words);
  for (int i = 0; i < count; ++i) run(mutator.next(), last_input);
  std::filesystem::remove(last_input);
  std::printf("%zu seeds, %d mutations\n", seeds.size(), count);
}
