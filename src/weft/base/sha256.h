// weft/base/sha256.h -- SHA-256 and HMAC-SHA-256, for cryptographic fingerprints.
//
//   hex(sha256("abc"))              ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad
//   hmac_sha256(secret, message)    proves knowledge of the secret without revealing it
//
// FIPS 180-4 and RFC 2104. For short messages: not optimized for speed.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view message);
Sha256 hmac_sha256(std::string_view key, std::string_view message);

// The digest as raw bytes, to append to a message, and as hexadecimal digits.
std::string_view bytes_of(const Sha256& digest);
std::string hex(std::string_view bytes);

// Compares in constant time.
bool same_secret_bytes(std::string_view a, std::string_view b);

}  // namespace weft
