// weft/communication/transport/seal.h -- encrypted and authenticated records between the two ends
// of a connection: AES-128-GCM.
//
//   length 4 | sealed bytes ... | tag 16        the tag covers the length, the bytes and the record number
//
// Each direction has a separate key and counts its records. The count is part of every nonce and is
// not sent. So a record that was changed, dropped, duplicated, reordered or taken from elsewhere
// does not open, and after that no other does. After kRecordsPerKey records the key is replaced by
// one derived from it, long before the limits of AES-GCM (RFC 8446, 5.5). Nothing here blocks;
// results are those of the socket calls.
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
  std::array<std::uint8_t, 12> nonce{};  // of the first record; xored with the count

  // Derived from a secret of both ends for the given `purpose`: HKDF (RFC 5869).
  static SealKey derive(std::string_view secret, std::string_view salt, std::string_view purpose);
};

// Keys of the two directions.
struct SealKeys {
  SealKey send, receive;
};

inline constexpr std::size_t kSealLength = 4, kSealTag = 16;
inline constexpr std::size_t kMostSealed = (32 << 10) + 32;  // bytes per record: a slice and its header
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 20;

// Fails, with instructions, if this Weft was built without OpenSSL.
Status check_can_seal();

class SealedOut {
 public:
  explicit SealedOut(const SealKey& key, std::uint64_t records_per_key = kRecordsPerKey);
  ~SealedOut();

  // Like sendmsg(2): returns the bytes accepted; those that the kernel did not take are buffered.
  ssize_t send(int socket, std::span<const iovec> parts);
  // Sends buffered data: true when none is left; otherwise errno says why.
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
  explicit SealedIn(const SealKey& key, std::uint64_t records_per_key = kRecordsPerKey);
  ~SealedIn();

  // Like recvmsg(2). After a record that does not open, always fails with EBADMSG.
  ssize_t receive(int socket, std::span<const iovec> parts);
  // Receives and buffers available data, like recv(2).
  ssize_t fill(int socket);
  bool within_record() const { return begin_ < end_; }  // REQUIRES: the last receive() was incomplete

 private:
  struct Cipher;
  std::size_t record() const;  // length of the next one, 0: not known yet
  ssize_t open(std::span<const iovec> parts, std::size_t length);
  ssize_t hand_on(std::span<const iovec> parts);

  std::unique_ptr<Cipher> cipher_;
  std::unique_ptr<std::uint8_t[]> came_;  // sealed records
  std::size_t begin_ = 0, end_ = 0;
  std::unique_ptr<std::uint8_t[]> opened_;  // decrypted data that did not fit the target
  std::size_t opened_begin_ = 0, opened_end_ = 0;
  bool broken_ = false;
};

}  // namespace weft::transport
