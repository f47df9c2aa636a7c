// weft/communication/transport/unix_socket.h -- sockets between processes of one machine, met by a name in no file system.
//
// Abstract names (Linux) live in a network namespace and are gone with the socket: nothing is ever left
// behind. Anyone on the machine may connect: ask user_of() whom you have got.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

Result<tcp::Socket> listen_unix(const std::string& name);

// At once: nobody listening, or too many waiting, is an error.
Result<tcp::Socket> connect_unix(const std::string& name);

// Whether the process at the other end is this user's or root's.
bool is_same_user(const tcp::Socket& socket);

// What tells machines apart, and network namespaces of one: ranks that share it can share memory and meet by
// abstract names. WEFT_HOST parts them further, as if ranks with different values were on different hosts.
Result<std::string> host_identity();

}  // namespace weft::transport
