// weft/communication/transport/unix_socket.h -- sockets between processes of one machine, with
// abstract names.
//
// Abstract names (Linux) belong to a network namespace and disappear with the socket: nothing is
// left in a file system. Any user of the machine may connect: check the peer with is_same_user().
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

Result<tcp::Socket> listen_unix(const std::string& name);

// Does not block: fails if there is no listener, or if its backlog is full.
Result<tcp::Socket> connect_unix(const std::string& name);

// Whether the process at the other end belongs to this user or root.
bool is_same_user(const tcp::Socket& socket);

// Identifies the machine and network namespace: ranks with equal identities can share memory and
// connect by abstract names. WEFT_HOST subdivides them, as if ranks with different values were on
// different hosts.
Result<std::string> host_identity();

}  // namespace weft::transport
