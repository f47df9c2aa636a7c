// weft/communication/transport/seal.h -- records that only the two ends of a connection can make and read: AES-128-GCM.
//
//   length 4 | sealed bytes ... | tag 16        the tag covers the length, the bytes and their place in the row
//
// Each direction has a key of its own and counts its records; the count is part of every seal and does not
// travel. So a record that was changed, left out, doubled, moved or taken from elsewhere does not open, and
// once one does not, none after it does. After kRecordsAKey records the key is replaced by one made from it,
// long before AES-GCM would wear out (RFC 8446, 5.5). Nothing here waits; socket calls answer as the kernel's.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/base/sha256.h"

namespace weft::transport {

struct SealKey {
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 12> nonce{};  // of the first record; the count is added by xor

  // From bytes that both ends have and nobody else, for what `purpose` names: HKDF (RFC 5869).
  static SealKey derive(std::string_view secret, std::string_view salt, std::string_view purpose);
};

// For what this end sends, and for what it gets.
struct SealKeys {
  SealKey send, receive;
};

inline constexpr std::size_t kSealLength = 4, kSealTag = 16;
inline constexpr std::size_t kMostSealed = (32 << 10) + 32;  // bytes of one record: a slice and its header
inline constexpr std::uint64_t kRecordsAKey = std::uint64_t{1} << 20;

// Fails, saying how to get one that can, where this Weft was built without OpenSSL.
Status check_can_seal();

class SealedOut {
 public:
  explicit SealedOut(const SealKey& key, std::uint64_t records_a_key = kRecordsAKey);
  ~SealedOut();

  // As sendmsg(2): how many bytes were taken; what of them the kernel did not take is kept.
  ssize_t send(int socket, std::span<const iovec> parts);
  // Sends what is kept: true when nothing is any more; else errno says why.
  bool flush(int socket);
  bool has_kept() const { return begin_ < end_; }

 private:
  struct Cipher;
  std::unique_ptr<Cipher> cipher_;
  std::unique_ptr<std::uint8_t[]> kept_;  // sealed records
  std::size_t begin_ = 0, end_ = 0;
};

class SealedIn {
 public:
  explicit SealedIn(const SealKey& key, std::uint64_t records_a_key = kRecordsAKey);
  ~SealedIn();

  // As recvmsg(2). A record that does not open is an error, EBADMSG, from then on.
  ssize_t receive(int socket, std::span<const iovec> parts);
  // Takes what the kernel has, as recv(2), and keeps it.
  ssize_t fill(int socket);
  bool within_record() const { return begin_ < end_; }  // REQUIRES: the last receive() found too little

 private:
  struct Cipher;
  std::size_t record() const;  // the length of the next, 0: not known yet
  ssize_t open(std::span<const iovec> parts, std::size_t length);
  ssize_t hand_on(std::span<const iovec> parts);

  std::unique_ptr<Cipher> cipher_;
  std::unique_ptr<std::uint8_t[]> came_;  // sealed records
  std::size_t begin_ = 0, end_ = 0;
  std::unique_ptr<std::uint8_t[]> opened_;  // what was opened and nobody had room for
  std::size_t opened_begin_ = 0, opened_end_ = 0;
  bool broken_ = false;
};

}  // namespace weft::transport
