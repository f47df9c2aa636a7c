// No mailbox entry overlaps one that a rank may still read.
#include "weft/communication/comm/direct/direct_mailbox_ring.h"

#include <vector>

#include <gtest/gtest.h>

#include "weft/base/random.h"

namespace weft::comm {
namespace {

TEST(MailboxRing, ReadableEntriesNeverOverlapAndArePageAligned) {
  constexpr std::size_t kRing = 64 << 10, kLongest = 16 << 10;
  struct Entry {
    std::size_t begin, end;
  };
  Random random(3);
  MailboxRing ring(kRing);
  std::vector<Entry> entries;
  for (std::uint64_t call = 0; call < 5000; ++call) {
    const auto bytes = static_cast<std::size_t>(random.below(random.below(4) == 0 ? kLongest + 1 : 600));
    const MailboxRing::Room room = ring.room(call, bytes);
    ASSERT_LE(room.finished, call);
    ASSERT_GE(room.finished + kPlaces, call + 1);  // nor is a header reused before then
    const std::size_t begin = ring.offset_of(room);
    const bool is_inline = bytes <= kInlineBytes;
    entries.push_back(is_inline ? Entry{0, 0} : Entry{begin, begin + bytes});
    if (!is_inline) {
      EXPECT_EQ(begin % kPage, 0u);
      ASSERT_LE(begin + bytes, kRing);
      for (std::uint64_t earlier = room.finished; earlier < call; ++earlier)
        ASSERT_TRUE(entries[earlier].end <= begin || begin + bytes <= entries[earlier].begin)
            << "calls " << earlier << " and " << call;
    }
    ring.take(call, room);
  }
}

TEST(MailboxRing, ShortEntriesAllowOneCallPerHeader) {
  MailboxRing ring(kPlaces * kPage);
  for (std::uint64_t call = 0; call < 3 * kPlaces; ++call) {
    const MailboxRing::Room room = ring.room(call, 256);
    EXPECT_EQ(room.finished, call + 1 > kPlaces ? call + 1 - kPlaces : 0);
    ring.take(call, room);
  }
}

}  // namespace
}  // namespace weft::comm
