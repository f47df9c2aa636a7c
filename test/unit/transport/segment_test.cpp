// Shared memory: all processes see one mapping, and a lack of memory is reported.
#include "weft/communication/transport/segment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::transport {
namespace {

bool open_descriptor(int descriptor) { return lseek(descriptor, 0, SEEK_CUR) >= 0 || errno != EBADF; }

TEST(Segment, StartsAsZerosAndIsSharedWithAChild) {
  for (const Backing backing : {Backing::full, Backing::sparse}) {
    Result<Segment> made = Segment::create(10'000, backing);
    ASSERT_TRUE(made.ok()) << made.error().message;
    Segment& segment = *made;
    EXPECT_EQ(segment.size(), 10'000u);
    EXPECT_TRUE(std::all_of(segment.data(), segment.data() + segment.size(),
                            [](std::byte b) { return b == std::byte{0}; }));
    const pid_t child = fork();
    if (child == 0) {
      // Through the descriptor, as a rank that receives it would.
      Result<Segment> mapped = Segment::map(dup(segment.descriptor()), 10'000);
      if (!mapped.ok()) _exit(1);
      mapped->data()[9'999] = std::byte{42};
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(segment.data()[9'999], std::byte{42});
  }
}

TEST(Segment, LargeOnesStartAtAHugePage) {
  Result<Segment> made = Segment::create((5u << 20) + 1, Backing::full);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made->data()) % (2u << 20), 0u);
  made->data()[5u << 20] = std::byte{1};
}

TEST(Segment, ThreadsOfOneProcessMapAFileOnce) {
  Result<Segment> made = Segment::create(4096, Backing::full);
  ASSERT_TRUE(made.ok());
  Result<Segment> mapped = Segment::map(dup(made->descriptor()), 4096);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->data(), made->data());
  EXPECT_NE(mapped->descriptor(), made->descriptor());
  // It stays mapped while either of them exists.
  made->data()[7] = std::byte{7};
  *made = Segment();
  EXPECT_EQ(made->data(), nullptr);
  EXPECT_EQ(mapped->data()[7], std::byte{7});
}

TEST(Segment, ReleasesEverything) {
  int descriptor = -1;
  void* data = nullptr;
  {
    Result<Segment> made = Segment::create(1 << 20, Backing::full);
    ASSERT_TRUE(made.ok());
    Segment moved = std::move(*made);
    EXPECT_EQ(made->descriptor(), -1);
    descriptor = moved.descriptor();
    data = moved.data();
    EXPECT_TRUE(open_descriptor(descriptor));
  }
  EXPECT_FALSE(open_descriptor(descriptor));
  EXPECT_EQ(msync(data, 4096, MS_ASYNC), -1) << "still mapped";
}

TEST(Segment, PopulatingKeepsContents) {
  Result<Segment> made = Segment::create(1 << 20, Backing::sparse);
  ASSERT_TRUE(made.ok());
  made->data()[5000] = std::byte{9};
  ASSERT_TRUE(made->populate(4097, 100'000).ok());
  EXPECT_EQ(made->data()[5000], std::byte{9});
}

TEST(Segment, ReportsInsufficientMemoryWithFigures) {
  const Result<Segment> made = Segment::create(std::size_t{1} << 50, Backing::full);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().fault, Fault::world);
  EXPECT_NE(made.error().message.find("1 PiB requested"), std::string::npos) << made.error().message;
  EXPECT_NE(made.error().message.find(" free"), std::string::npos) << made.error().message;
  EXPECT_FALSE(made.error().hint.empty());
  // Populating a sparse one later is rejected as well, instead of raising a signal.
  Result<Segment> sparse = Segment::create(std::size_t{1} << 45, Backing::sparse);
  EXPECT_TRUE(!sparse.ok() || !sparse->populate(0, sparse->size()).ok());
  // Absurd sizes do not wrap around.
  EXPECT_FALSE(Segment::create(SIZE_MAX, Backing::full).ok());
  EXPECT_FALSE(Segment::create(SIZE_MAX, Backing::sparse).ok());
}

TEST(Segment, RejectsAFileThatIsTooShort) {
  Result<Segment> made = Segment::create(4096, Backing::full);
  ASSERT_TRUE(made.ok());
  const int handed = dup(made->descriptor());
  const Result<Segment> mapped = Segment::map(handed, 8192);
  ASSERT_FALSE(mapped.ok());
  EXPECT_NE(mapped.error().message.find("4096 bytes, expected 8192"), std::string::npos)
      << mapped.error().message;
  EXPECT_FALSE(open_descriptor(handed)) << "owned even if it fails";
  // Nor can it be truncated later.
  EXPECT_NE(ftruncate(made->descriptor(), 0), 0);
}

TEST(Segment, RejectsOtherDescriptors) {
  EXPECT_FALSE(Segment::map(-1, 4096).ok());
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(Segment::map(ends[0], 4096).ok());
  close(ends[1]);
}

}  // namespace
}  // namespace weft::transport
