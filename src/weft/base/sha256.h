// weft/base/sha256.h -- SHA-256 and the HMAC built on it: fingerprints that withstand an adversary.
//
//   hex(sha256("abc"))              ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad
//   hmac_sha256(secret, message)    who answers this knows the secret, and does not give it away
//
// FIPS 180-4 and RFC 2104. For short messages: nothing here is tuned for speed.
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

// The bytes as text to be appended to a message, and as hexadecimal digits.
std::string_view bytes_of(const Sha256& digest);
std::string hex(std::string_view bytes);

// Compares in a time that does not depend on where they differ.
bool same_secret_bytes(std::string_view a, std::string_view b);

}  // namespace weft
