#include "weft/communication/transport/seal.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifdef WEFT_HAS_OPENSSL
#include <openssl/crypto.h>
#include <openssl/evp.h>
#endif

namespace weft::transport {
namespace {

constexpr std::size_t kRecordsAtOnce = 4;  // per system call: sealed data is still in the cache
constexpr std::size_t kLongestRecord = kSealLength + kMostSealed + kSealTag;
constexpr std::size_t kKeptBytes = kRecordsAtOnce * kLongestRecord;

using Length = std::array<std::uint8_t, kSealLength>;

Length encode_length(std::size_t bytes) {
  Length out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(bytes >> (8 * i));
  return out;
}

// Iterates over scattered bytes.
class Places {
 public:
  explicit Places(std::span<const iovec> parts) : parts_(parts) {}

  // The next contiguous bytes, at most `most`; empty at the end.
  std::span<std::uint8_t> next(std::size_t most) {
    while (!parts_.empty() && used_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      used_ = 0;
    }
    if (parts_.empty() || most == 0) return {};
    auto* const at = static_cast<std::uint8_t*>(parts_.front().iov_base) + used_;
    const std::size_t bytes = std::min(most, parts_.front().iov_len - used_);
    used_ += bytes;
    return {at, bytes};
  }

 private:
  std::span<const iovec> parts_;
  std::size_t used_ = 0;
};

std::size_t bytes_in(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

#ifdef WEFT_HAS_OPENSSL

// AES-128-GCM for one direction, which TLS 1.3 requires too; 256 bits take 1.4 times as long. Per
// record: begin(), add() once per contiguous range, end().
class RecordCipher {
 public:
  RecordCipher(const SealKey& key, bool seals, std::uint64_t records_per_key)
      : key_(key), seals_(seals), records_per_key_(records_per_key), context_(EVP_CIPHER_CTX_new()) {
    WEFT_CHECK(context_ != nullptr, "out of memory for a cipher");
    use_key();
  }
  ~RecordCipher() {
    EVP_CIPHER_CTX_free(context_);
    OPENSSL_cleanse(key_.key.data(), key_.key.size());
  }
  RecordCipher(const RecordCipher&) = delete;
  RecordCipher& operator=(const RecordCipher&) = delete;

  void begin(const Length& length) {
    if (count_ == records_per_key_) next_key();
    auto nonce = key_.nonce;
    for (std::size_t i = 0; i < sizeof count_; ++i)
      nonce[nonce.size() - 1 - i] ^= static_cast<std::uint8_t>(count_ >> (8 * i));
    ++count_;
    check(EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, nonce.data(), -1));
    int ignored = 0;
    check(EVP_CipherUpdate(context_, nullptr, &ignored, length.data(), static_cast<int>(length.size())));
  }

  void add(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes) {
    int done = 0;
    check(EVP_CipherUpdate(context_, to, &done, from, static_cast<int>(bytes)));
  }

  void end_sealing(std::uint8_t* tag) {
    int nothing = 0;
    check(EVP_CipherFinal_ex(context_, tag, &nothing));
    check(EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, kSealTag, tag));
  }
  bool end_opening(std::uint8_t* tag) {
    check(EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, kSealTag, tag));
    std::uint8_t none = 0;
    int nothing = 0;
    return EVP_CipherFinal_ex(context_, &none, &nothing) > 0;
  }

 private:
  static void check(int done) { WEFT_CHECK(done > 0, "the cipher failed"); }

  void use_key() {
    check(EVP_CipherInit_ex(context_, EVP_aes_128_gcm(), nullptr, key_.key.data(), nullptr, seals_ ? 1 : 0));
  }
  void next_key() {
    const std::string_view old(reinterpret_cast<const char*>(key_.key.data()), key_.key.size());
    key_ = SealKey::derive(old, {}, "weft next key");
    count_ = 0;
    use_key();
  }

  SealKey key_;
  bool seals_;
  std::uint64_t records_per_key_, count_ = 0;
  EVP_CIPHER_CTX* context_;
};

#else

class RecordCipher {
 public:
  RecordCipher(const SealKey&, bool, std::uint64_t) { WEFT_CHECK(false, "there is no cipher"); }
  void begin(const Length&) {}
  void add(const std::uint8_t*, std::uint8_t*, std::size_t) {}
  void end_sealing(std::uint8_t*) {}
  bool end_opening(std::uint8_t*) { return false; }
};

#endif

}  // namespace

struct SealedOut::Cipher : RecordCipher {
  using RecordCipher::RecordCipher;
};
struct SealedIn::Cipher : RecordCipher {
  using RecordCipher::RecordCipher;
};

SealKey SealKey::derive(std::string_view secret, std::string_view salt, std::string_view purpose) {
  const Sha256 extracted = hmac_sha256(salt, secret);
  const auto expand = [&](std::string_view part) {
    return hmac_sha256(bytes_of(extracted), fmt::format("{} {}\x01", purpose, part));
  };
  const auto fill = [&](auto& bytes, std::string_view part) {
    std::ranges::copy_n(expand(part).begin(), static_cast<std::ptrdiff_t>(bytes.size()), bytes.begin());
  };
  SealKey out;
  fill(out.key, "key");
  fill(out.nonce, "nonce");
  return out;
}

Status check_can_seal() {
#ifdef WEFT_HAS_OPENSSL
  return {};
#else
  return user_error("WEFT_SECURE=1 needs OpenSSL, and this weft was built without it",
                    "install libssl-dev and build again; use plain only on private networks");
#endif
}

SealedOut::SealedOut(const SealKey& key, std::uint64_t records_per_key)
    : cipher_(std::make_unique<Cipher>(key, true, records_per_key)) {}
SealedOut::~SealedOut() = default;

ssize_t SealedOut::send(int socket, std::span<const iovec> parts) {
  if (!flush(socket)) return -1;
  if (!kept_) kept_ = std::make_unique_for_overwrite<std::uint8_t[]>(kKeptBytes);
  Places places(parts);
  const std::size_t all = bytes_in(parts);
  std::size_t taken = 0;
  begin_ = end_ = 0;
  for (std::size_t record = 0; record < kRecordsAtOnce && taken < all; ++record) {
    const std::size_t bytes = std::min(all - taken, kMostSealed);
    const Length length = encode_length(bytes);
    cipher_->begin(length);
    std::ranges::copy(length, kept_.get() + end_);
    end_ += kSealLength;
    for (std::size_t left = bytes; left > 0;) {
      const auto piece = places.next(left);
      cipher_->add(piece.data(), kept_.get() + end_, piece.size());
      end_ += piece.size();
      left -= piece.size();
    }
    cipher_->end_sealing(kept_.get() + end_);
    end_ += kSealTag;
    taken += bytes;
  }
  if (!flush(socket) && errno != EAGAIN) return -1;
  return static_cast<ssize_t>(taken);
}

bool SealedOut::flush(int socket) {
  while (begin_ < end_) {
    const ssize_t sent = ::send(socket, kept_.get() + begin_, end_ - begin_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    begin_ += static_cast<std::size_t>(sent);
  }
  return true;
}

SealedIn::SealedIn(const SealKey& key, std::uint64_t records_per_key)
    : cipher_(std::make_unique<Cipher>(key, false, records_per_key)) {}
SealedIn::~SealedIn() = default;

ssize_t SealedIn::receive(int socket, std::span<const iovec> parts) {
  for (;;) {
    if (opened_begin_ < opened_end_) return hand_on(parts);
    if (end_ - begin_ >= kSealLength && !broken_) {
      const std::size_t length = record();
      broken_ = length == 0 || length > kMostSealed;
      if (!broken_ && end_ - begin_ >= kSealLength + length + kSealTag) return open(parts, length);
    }
    if (broken_) {
      errno = EBADMSG;
      return -1;
    }
    if (const ssize_t came = fill(socket); came <= 0) return came;
  }
}

ssize_t SealedIn::fill(int socket) {
  if (!came_) came_ = std::make_unique_for_overwrite<std::uint8_t[]>(kKeptBytes);
  if (begin_ > 0) {  // the rest, if any, is a partial record
    std::memmove(came_.get(), came_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == kKeptBytes) {  // full of records that were not asked for
    errno = EAGAIN;
    return -1;
  }
  const ssize_t came = ::recv(socket, came_.get() + end_, kKeptBytes - end_, MSG_DONTWAIT);
  if (came > 0) end_ += static_cast<std::size_t>(came);
  return came;
}

std::size_t SealedIn::record() const {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kSealLength; ++i) length |= std::size_t{came_[begin_ + i]} << (8 * i);
  return length;
}

// Decrypts straight into the target. The caller must not use it unless the tag is valid.
ssize_t SealedIn::open(std::span<const iovec> parts, std::size_t length) {
  const std::uint8_t* from = came_.get() + begin_ + kSealLength;
  cipher_->begin(encode_length(length));
  Places places(parts);
  std::size_t left = length;
  for (auto place = places.next(left); !place.empty(); place = places.next(left)) {
    cipher_->add(from, place.data(), place.size());
    from += place.size();
    left -= place.size();
  }
  if (left > 0) {
    if (!opened_) opened_ = std::make_unique_for_overwrite<std::uint8_t[]>(kMostSealed);
    cipher_->add(from, opened_.get(), left);
  }
  broken_ = !cipher_->end_opening(came_.get() + begin_ + kSealLength + length);
  if (broken_) {
    errno = EBADMSG;
    return -1;
  }
  begin_ += kSealLength + length + kSealTag;
  opened_begin_ = 0;
  opened_end_ = left;
  return static_cast<ssize_t>(length - left);
}

ssize_t SealedIn::hand_on(std::span<const iovec> parts) {
  Places places(parts);
  const std::size_t before = opened_begin_;
  while (opened_begin_ < opened_end_) {
    const auto place = places.next(opened_end_ - opened_begin_);
    if (place.empty()) break;
    std::memcpy(place.data(), opened_.get() + opened_begin_, place.size());
    opened_begin_ += place.size();
  }
  return static_cast<ssize_t>(opened_begin_ - before);
}

}  // namespace weft::transport
