// Checkpoints read back from files as written; all damage is detected, and a kill while writing
// does no harm.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/base/random.h"
#include "weft/formats/safetensors.h"

namespace weft::formats {
namespace {

namespace fs = std::filesystem;
using plan::DType;

constexpr std::int64_t kMost = 1 << 24;

// A file with this header and data, as another program may write it.
std::string file_of(std::string_view header, std::string_view data = {}) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file.append(header).append(data);
}

std::string error_of(std::string_view bytes) {
  const auto checkpoint = parse_safetensors(bytes, "m.safetensors");
  return checkpoint.ok() ? "no error" : checkpoint.error().message;
}

std::string error_of_header(std::string_view header, std::size_t data = 0) {
  return error_of(file_of(header, std::string(data, 'x')));
}

std::vector<std::byte> bytes_of(std::size_t count, unsigned first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

class SafetensorsTest : public testing::Test {
 protected:
  // One tensor of each type, and unusual shapes.
  Checkpoint sample() const {
    Checkpoint checkpoint;
    checkpoint.metadata = {{"step", "100"}, {"\xc3\xa9t\xc3\xa9 \"quoted\"\n", ""}};
    checkpoint.tensors = {{"w", DType::f32, {2, 3}, std::span(data_).first(24)},
                          {"flags", DType::boolean, {3}, std::span(data_).subspan(1, 3)},
                          {"scalar", DType::f64, {}, std::span(data_).first(8)},
                          {"empty", DType::i64, {0, 9'000'000'000'000'000'000, 9}, {}},
                          {"half", DType::f16, {1}, std::span(data_).first(2)},
                          {"brain", DType::bf16, {2}, std::span(data_).subspan(3, 4)},
                          {"a/b.c", DType::i32, {1, 1, 2}, std::span(data_).subspan(5, 8)}};
    return checkpoint;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.safetensors";
  std::vector<std::byte> data_ = bytes_of(24, 200);
};

TEST_F(SafetensorsTest, LoadsWhatWasSaved) {
  const Checkpoint saved = sample();
  ASSERT_TRUE(save(path_, saved).ok());
  const auto loaded = load(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->metadata, saved.metadata);
  EXPECT_TRUE(loaded->foreign.empty());
  ASSERT_EQ(loaded->tensors.size(), saved.tensors.size());
  EXPECT_TRUE(std::ranges::is_sorted(loaded->tensors, {}, &TensorEntry::name));
  for (const TensorEntry& tensor : saved.tensors) {
    const TensorEntry* found = loaded->find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(found->data, tensor.data)) << tensor.name;
    const auto address = reinterpret_cast<std::uintptr_t>(found->data.data());
    EXPECT_EQ(address % static_cast<std::uintptr_t>(plan::size_in_bytes(tensor.dtype)), 0u) << tensor.name;
  }
  EXPECT_EQ(loaded->find("absent"), nullptr);
}

TEST_F(SafetensorsTest, WritesTheSameBytesForTheSameCheckpoint) {
  Checkpoint checkpoint = sample();
  ASSERT_TRUE(save(path_, checkpoint).ok());
  std::ranges::reverse(checkpoint.tensors);
  ASSERT_TRUE(save(folder_.path() + "/again", checkpoint).ok());
  ASSERT_TRUE(save(folder_.path() + "/loaded", *load(path_)).ok());
  EXPECT_EQ(*read_file(path_, kMost), *read_file(folder_.path() + "/again", kMost));
  EXPECT_EQ(*read_file(path_, kMost), *read_file(folder_.path() + "/loaded", kMost));
}

// Users have such files on disk: the meaning of these bytes must never change.
TEST_F(SafetensorsTest, WritesTheBytesOfTheFormat) {
  Checkpoint checkpoint;
  checkpoint.tensors = {{"w", DType::f32, {2}, std::span(data_).first(8)}};
  ASSERT_TRUE(save(path_, checkpoint).ok());
  const std::string bytes = *read_file(path_, kMost);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x90\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(8, 144),
            R"({"__metadata__":{"checksum":"crc32c:c524acfe8aa6f1222b40e288d235c0af","writer":"weft"},)"
            R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}}    )");
  EXPECT_EQ(bytes.size(), 8u + 144 + 8);
}

// As earlier versions wrote them.
TEST(Safetensors, VerifiesChecksumsOfEarlierVersions) {
  const std::string header =
      R"({"__metadata__":{"checksum":"weft:254cad6cb8abdaf3380430c8e3fc0b9c","writer":"weft"},)"
      R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}}      )";
  std::string data(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) data[i] = static_cast<char>(200 + i);
  EXPECT_EQ(error_of(file_of(header, data)), "no error");
  for (std::size_t bit = 0; bit < 64; ++bit) {
    std::string damaged = data;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(error_of(file_of(header, damaged)).starts_with("m.safetensors is damaged")) << bit;
  }
  std::string newer = header;
  newer.replace(newer.find("weft:"), 5, "crc3:");
  EXPECT_TRUE(error_of(file_of(newer, data)).starts_with("m.safetensors is damaged"));
}

// Tensors of several ranges, each with its own CRC-32C.
TEST_F(SafetensorsTest, DetectsAFlippedBitInAnyRange) {
  constexpr std::size_t kBytes = (std::size_t{9} << 20) + 12;
  const std::vector<std::byte> large(kBytes, std::byte{7});
  Checkpoint checkpoint;
  checkpoint.tensors = {{"w", DType::f32, {kBytes / 4}, large}};
  ASSERT_TRUE(save(path_, checkpoint).ok());
  std::string bytes = *read_file(path_, 2 * kBytes);
  const std::size_t begin = bytes.size() - kBytes;
  EXPECT_EQ(error_of(bytes), "no error");
  for (const std::size_t at :
       {std::size_t{0}, (std::size_t{4} << 20) - 1, std::size_t{4} << 20, kBytes / 2, kBytes - 1}) {
    bytes[begin + at] ^= 1;
    EXPECT_TRUE(error_of(bytes).starts_with("m.safetensors is damaged")) << at;
    bytes[begin + at] ^= 1;
  }
}

TEST_F(SafetensorsTest, SupportsAnEmptyCheckpoint) {
  ASSERT_TRUE(save(path_, {}).ok());
  const auto loaded = load(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(loaded->tensors.empty() && loaded->metadata.empty());
}

TEST_F(SafetensorsTest, RejectsSavingWhatCouldNotBeLoaded) {
  Checkpoint checkpoint;
  checkpoint.tensors = {{"__metadata__", DType::f32, {0}, {}}};
  EXPECT_EQ(save("m", checkpoint).error().message, "cannot write m: a tensor is named __metadata__");
  checkpoint.tensors = {{"\xff", DType::f32, {0}, {}}};
  EXPECT_EQ(save("m", checkpoint).error().message, "cannot write m: a name or a metadata entry is not UTF-8");
  checkpoint.tensors = {{"w", DType::f32, {2}, std::span(data_).first(4)}};
  EXPECT_THROW(static_cast<void>(save("m", checkpoint)), InternalError);
  checkpoint.tensors = {{"w", DType::f32, {0}, {}}, {"w", DType::f32, {0}, {}}};
  EXPECT_THROW(static_cast<void>(save("m", checkpoint)), InternalError);
}

TEST(Safetensors, LoadsFilesOfOtherPrograms) {
  const std::string file = file_of(
      R"( {"b":{"shape":[2],"dtype":"F32","data_offsets":[3,11]}, "__metadata__":{"format":"pt","checksum":"0"},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}} )",
      "abcdefghijk");
  const auto checkpoint = parse_safetensors(file, "m.safetensors");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors.size(), 1u);
  EXPECT_EQ(std::memcmp(checkpoint->tensors[0].data.data(), "defghijk", 8), 0);
  EXPECT_EQ(checkpoint->foreign.at("a"), "U8");
  EXPECT_EQ(checkpoint->metadata.at("checksum"), "0");
  EXPECT_EQ(error_of(file_of("{}")), "no error");
}

TEST(Safetensors, ChecksTheLengthOfTheHeader) {
  EXPECT_EQ(error_of("1234567"), "m.safetensors is truncated: expected at least 8 bytes, found 7");
  EXPECT_EQ(error_of(file_of("{}").substr(0, 9)),
            "m.safetensors is truncated: expected a header of 2 bytes, found 1");
  EXPECT_EQ(error_of("PK\x03\x04 is a zip file"),
            "m.safetensors is not a safetensors file: expected a header of at most 100000000 bytes, found "
            "2338328217762614096");
}

TEST(Safetensors, ChecksTheSyntaxOfTheHeader) {
  EXPECT_EQ(error_of_header("{"), "m.safetensors: expected JSON, found an error at byte 2 of the header");
  EXPECT_EQ(error_of_header(""), "m.safetensors: expected JSON, found an error at byte 1 of the header");
  EXPECT_EQ(error_of_header("{}x"), "m.safetensors: expected JSON, found an error at byte 3 of the header");
  EXPECT_EQ(error_of_header(std::string_view("{}\0", 3)),
            "m.safetensors: expected JSON, found an error at byte 3 of the header");
  EXPECT_EQ(error_of_header("{\"\xff\":1}"),
            "m.safetensors: expected JSON, found an error at byte 3 of the header");
  EXPECT_EQ(error_of_header("[]"), "m.safetensors: expected an object, found a list");
  EXPECT_EQ(error_of_header("7"), "m.safetensors: expected an object, found a number");
  EXPECT_EQ(error_of_header(std::string(1'000'000, '[')), "m.safetensors: expected an object, found a list");
  EXPECT_EQ(error_of_header(R"({"w":7})"), "m.safetensors: expected an object for 'w', found a number");
  EXPECT_EQ(error_of_header(R"({"w":{}})"), "m.safetensors: tensor 'w': expected dtype, found none");
  EXPECT_EQ(error_of_header(R"({"w":{"dtype":"F32","shape":[]}})"),
            "m.safetensors: tensor 'w': expected data_offsets, found none");
  EXPECT_EQ(error_of_header(R"({"w":{"strides":[1]}})"),
            "m.safetensors: tensor 'w': expected dtype, shape and data_offsets, found 'strides'");
  EXPECT_EQ(error_of_header(R"({"w":{"dtype":"F32","dtype":"F32"}})"),
            "m.safetensors: tensor 'w': found dtype twice");
  EXPECT_EQ(error_of_header(R"({"w":{"dtype":7}})"),
            "m.safetensors: tensor 'w': expected a string in dtype, found a number");
  EXPECT_EQ(error_of_header(R"({"w":{"shape":{}}})"),
            "m.safetensors: tensor 'w': expected a list in shape, found an object");
  for (const std::string bad : {"-1", "1.5", "1e3", "null", "true", "9223372036854775808", "1e30"})
    EXPECT_EQ(error_of_header(R"({"w":{"shape":[)" + bad + "]}}").substr(0, 66),
              "m.safetensors: tensor 'w': expected whole numbers in shape, found ")
        << bad;
  EXPECT_EQ(error_of_header(R"({"w":{"shape":[[1]]}})"),
            "m.safetensors: tensor 'w': expected whole numbers in shape, found a list");
  EXPECT_EQ(error_of_header(R"({"w":{"data_offsets":[0,8,9,1,2]}})"),
            "m.safetensors: tensor 'w': expected whole numbers in data_offsets, found a number");
  EXPECT_EQ(error_of_header(R"({"w":{"data_offsets":[8]}})"),
            "m.safetensors: tensor 'w': expected data_offsets [begin, end], found [8]");
  EXPECT_EQ(error_of_header(R"({"w":{"data_offsets":[8,4]}})"),
            "m.safetensors: tensor 'w': expected data_offsets [begin, end], found [8, 4]");
  EXPECT_EQ(error_of_header(R"({"__metadata__":{"step":100}})"),
            "m.safetensors: metadata 'step': expected a string, found a number");
  EXPECT_EQ(error_of_header(R"({"__metadata__":{"a":"1","a":"2"}})"),
            "m.safetensors: metadata: expected every key once, found 'a' twice");
  EXPECT_EQ(error_of_header(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"w":{}})"),
            "m.safetensors: expected every name once, found 'w' twice");
}

std::string tensor(std::string_view name, std::string_view dtype, std::string_view shape, int begin,
                   int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin,
                     end);
}

TEST(Safetensors, ChecksThatTensorsFillTheFile) {
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[2]", 0, 8) + "}", 8), "no error");
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[2]", 0, 8) + "}", 7),
            "m.safetensors is truncated: header states 8 bytes, found 7");
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[2]", 0, 8) + "}", 9),
            "m.safetensors: expected 8 bytes of tensors, found 9");
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[2]", 4, 12) + "}", 12),
            "m.safetensors: expected tensor 'w' to begin at byte 0, found 4");
  EXPECT_EQ(error_of_header(
                "{" + tensor("a", "F32", "[2]", 0, 8) + "," + tensor("b", "F32", "[2]", 4, 12) + "}", 12),
            "m.safetensors: tensors 'a' and 'b' overlap at byte 4");
  EXPECT_EQ(
      error_of_header("{" + tensor("a", "F32", "[2]", 0, 8) + "," + tensor("b", "F32", "[2]", 0, 8) + "}", 8),
      "m.safetensors: tensors 'a' and 'b' overlap at byte 0");
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[2, 3]", 0, 20) + "}", 20),
            "m.safetensors: tensor 'w': expected 24 bytes for F32 [2, 3], found 20");
  EXPECT_EQ(error_of_header("{" + tensor("w", "F32", "[4294967296, 4294967296]", 0, 0) + "}"),
            "m.safetensors: tensor 'w': expected too many bytes for F32 [4294967296, 4294967296], found 0");
  EXPECT_EQ(
      error_of_header("{" + tensor("w", "F3", "[2]", 0, 8) + "}", 8),
      "m.safetensors: tensor 'w': expected a dtype of F32, F64, BF16, F16, I32, I64, BOOL, U8, I8, U16, "
      "I16, U32, U64, F8_E4M3, F8_E5M2, found 'F3'");
}

TEST_F(SafetensorsTest, RejectsTruncatedFiles) {
  ASSERT_TRUE(save(path_, sample()).ok());
  const std::string good = *read_file(path_, kMost);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(error_of(good.substr(0, length)), "no error") << length;
  EXPECT_EQ(error_of(good), "no error");
}

// Every bit of the file is checked: the length, the header, its padding, the checksum, the data.
TEST_F(SafetensorsTest, DetectsEveryChangedBit) {
  ASSERT_TRUE(save(path_, sample()).ok());
  const std::string good = *read_file(path_, kMost);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_NE(error_of(changed), "no error") << "byte " << at << ", bit " << bit;
    }
  std::string changed = good;
  changed.back() ^= 1;
  EXPECT_TRUE(error_of(changed).starts_with("m.safetensors is damaged: expected checksum crc32c:"));
}

TEST_F(SafetensorsTest, NamesTheFileInErrors) {
  EXPECT_EQ(load(path_).error().message, "cannot read " + path_ + ": No such file or directory");
  EXPECT_EQ(save(folder_.path() + "/no/m", {}).error().message,
            "cannot write " + folder_.path() + "/no/m: No such file or directory");
}

// Writes version after version until killed. All elements of a version equal its number.
[[noreturn]] void save_forever(const std::string& path, std::size_t elements) {
  for (std::int32_t version = 0;; ++version) {
    const std::vector<std::int32_t> values(elements, version);
    Checkpoint checkpoint;
    checkpoint.metadata = {{"version", std::to_string(version)}};
    checkpoint.tensors = {
        {"w", DType::i32, {static_cast<std::int64_t>(elements)}, std::as_bytes(std::span(values))}};
    if (!save(path, checkpoint).ok()) _exit(1);
  }
}

TEST_F(SafetensorsTest, AKillLeavesAWholeFile) {
  constexpr std::size_t kElements = 50'000;
  const std::vector<std::int32_t> values(kElements, -1);
  Checkpoint first;
  first.metadata = {{"version", "-1"}};
  first.tensors = {{"w", DType::i32, {kElements}, std::as_bytes(std::span(values))}};
  ASSERT_TRUE(save(path_, first).ok());

  Random random(7);
  int replaced = 0, leftovers = 0;
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_forever(path_, kElements);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed";

    const auto loaded = load(path_);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const std::string& version = loaded->metadata.at("version");
    std::vector<std::int32_t> found(kElements);
    ASSERT_EQ(loaded->tensors.at(0).data.size(), kElements * sizeof(std::int32_t));
    std::memcpy(found.data(), loaded->tensors[0].data.data(), kElements * sizeof(std::int32_t));
    EXPECT_EQ(found, std::vector<std::int32_t>(kElements, std::stoi(version)));
    replaced += version != "-1";
    leftovers += fs::exists(folder_.path() + "/.m.safetensors.partial");
    EXPECT_LE(std::distance(fs::directory_iterator(folder_.path()), {}), 2);
  }
  EXPECT_GT(replaced, 0) << "no writer finished its first version";
  EXPECT_GT(leftovers, 0) << "no writer was killed while writing";
  ASSERT_TRUE(save(path_, first).ok());
  EXPECT_FALSE(fs::exists(folder_.path() + "/.m.safetensors.partial"));
}

}  // namespace
}  // namespace weft::formats
