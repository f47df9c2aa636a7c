// A private folder holds only files that this user wrote; no other user can plant one.
#include "weft/base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMost = 1 << 20;

unsigned mode_of(const std::string& path) {
  struct stat about = {};
  EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
  return about.st_mode & 07777u;
}

class PrivateFolderTest : public testing::Test {
 protected:
  std::string refusal() const { return PrivateFolder::open(place_).error().message; }

  const TemporaryFolder folder_;
  const std::string place_ = folder_ / "deep/er";
};

TEST_F(PrivateFolderTest, ReadsBackWhatWasWrittenAndHidesItFromOthers) {
  EXPECT_FALSE(PrivateFolder::open(place_).ok());
  EXPECT_TRUE(PrivateFolder::check(place_).ok());  // a missing folder is valid
  const auto folder = PrivateFolder::make(place_);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(folder->read("a", kMost).value(), std::nullopt);
  ASSERT_TRUE(folder->write("a", "one").ok());
  ASSERT_TRUE(folder->write("a", "two").ok());
  EXPECT_EQ(*PrivateFolder::open(place_)->read("a", kMost).value(), "two");
  EXPECT_FALSE(folder->read("a", 2).ok());
  EXPECT_EQ(mode_of(folder_ / "deep"), 0700u);
  EXPECT_EQ(mode_of(place_), 0700u);
  EXPECT_EQ(mode_of(place_ + "/a"), 0600u);
  ASSERT_EQ(folder->files().size(), 1u);  // no temporary file is left behind
  folder->remove("a");
  EXPECT_TRUE(folder->files().empty());
}

TEST_F(PrivateFolderTest, RejectsFoldersWritableByOthers) {
  ASSERT_TRUE(PrivateFolder::make(place_).ok());
  for (const mode_t mode : {0777, 0770, 0702, 01777}) {
    ASSERT_EQ(chmod(place_.c_str(), mode), 0);
    EXPECT_FALSE(PrivateFolder::open(place_).ok()) << std::oct << mode;
    EXPECT_FALSE(PrivateFolder::make(place_).ok()) << std::oct << mode;
    EXPECT_FALSE(PrivateFolder::check(place_).ok()) << std::oct << mode;
  }
  EXPECT_EQ(refusal(), "expected a folder that only its owner may write to: " + place_ + " has mode 1777");
  EXPECT_EQ(PrivateFolder::open(place_).error().hint, "chmod go-w " + place_);
  // Read permission for others is harmless.
  ASSERT_EQ(chmod(place_.c_str(), 0755), 0);
  EXPECT_TRUE(PrivateFolder::open(place_).ok());
}

TEST_F(PrivateFolderTest, RejectsLinksToFoldersEvenWithTrailingSlash) {
  ASSERT_TRUE(PrivateFolder::make(folder_ / "real").ok());
  fs::create_directory(folder_ / "deep");
  fs::create_directory_symlink(folder_ / "real", place_);
  EXPECT_EQ(refusal(), "expected a folder, found a link: " + place_);
  EXPECT_FALSE(PrivateFolder::open(place_ + "/").ok());
  EXPECT_FALSE(PrivateFolder::make(place_ + "//").ok());
  EXPECT_FALSE(PrivateFolder::check(place_ + "/").ok());
  // A dangling link would let its owner choose where our files go.
  fs::remove(place_);
  fs::create_directory_symlink(folder_ / "nowhere", place_);
  EXPECT_FALSE(PrivateFolder::make(place_).ok());
  EXPECT_FALSE(fs::exists(folder_ / "nowhere"));
}

TEST_F(PrivateFolderTest, RejectsFoldersOfOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_TRUE(PrivateFolder::make(place_).ok());
  ASSERT_TRUE(PrivateFolder::open(place_)->write("a", "x").ok());
  ASSERT_EQ(chown((place_ + "/a").c_str(), 1234, 1234), 0);
  EXPECT_EQ(PrivateFolder::open(place_)->read("a", kMost).error().message,
            "expected a file of this user, 0: " + place_ + "/a belongs to user 1234");
  ASSERT_EQ(chown(place_.c_str(), 1234, 1234), 0);
  EXPECT_EQ(refusal(), "expected a folder of this user, 0: " + place_ + " belongs to user 1234");
}

TEST_F(PrivateFolderTest, RejectsLinksPipesAndFilesWritableByOthers) {
  const auto folder = PrivateFolder::make(place_);
  std::ofstream(folder_ / "elsewhere") << "forged";
  fs::create_symlink(folder_ / "elsewhere", place_ + "/link");
  EXPECT_EQ(folder->read("link", kMost).error().message,
            "expected a file, found a link: " + place_ + "/link");
  EXPECT_FALSE(folder->make_file("link").ok());
  EXPECT_FALSE(folder->check_file("link").ok());
  // Writing replaces the link and does not touch its target.
  ASSERT_TRUE(folder->write("link", "ours").ok());
  EXPECT_EQ(*folder->read("link", kMost).value(), "ours");
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere"));

  ASSERT_EQ(mkfifo((place_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(folder->read("pipe", kMost).error().message, "expected a regular file: " + place_ + "/pipe");

  ASSERT_EQ(chmod((place_ + "/link").c_str(), 0666), 0);
  EXPECT_FALSE(folder->read("link", kMost).ok());
  EXPECT_TRUE(folder->check_file("missing").ok());

  // A link in place of the temporary file.
  fs::create_symlink(folder_ / "elsewhere", place_ + "/.b.partial");
  EXPECT_FALSE(folder->write("b", "ours").ok());
  EXPECT_EQ(fs::file_size(folder_ / "elsewhere"), 6u);
}

// The folder that was checked is the folder that is used.
TEST_F(PrivateFolderTest, KeepsTheOpenedFolderWhenItIsReplaced) {
  const auto folder = PrivateFolder::make(place_);
  ASSERT_TRUE(folder->write("a", "ours").ok());
  fs::rename(place_, folder_ / "away");
  ASSERT_TRUE(PrivateFolder::make(place_)->write("a", "forged").ok());
  EXPECT_EQ(*folder->read("a", kMost).value(), "ours");
}

TEST_F(PrivateFolderTest, ConcurrentProcessesLeaveOneWholeFile) {
  const std::string texts[] = {std::string(60'000, 'a'), std::string(90'000, 'b')};
  std::vector<pid_t> children;
  for (const std::string& text : texts) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto folder = PrivateFolder::make(place_);
      bool good = folder.ok();
      for (int k = 0; good && k < 200; ++k) {
        static_cast<void>(folder->write("a", text));  // the other process may be writing
        const auto found = folder->read("a", kMost);
        good = found.ok() && (!*found || **found == texts[0] || **found == texts[1]);
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(PrivateFolder::open(place_)->files().size(), 1u);
}

}  // namespace
}  // namespace weft
