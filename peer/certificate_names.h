// Whom a certificate was issued for, and what that says of a node's name.
#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::peer {

// Whom the valid certificate of the other end names: by its DNS names or, where it has no alternative
// names at all, by its common name. Nothing where there is no certificate.
std::optional<std::vector<std::string>> certificate_names(SSL* connection);

// The same for a client, which is held against the operator's globs: by its common name where it has no DNS
// names, even if it has addresses.
std::optional<std::vector<std::string>> client_names(SSL* connection);

// Whether a certificate of these names is a node's own credential: it has a name, and no wildcard, by which
// it could be any node's. IP addresses are no names.
bool is_own_credential(std::span<const std::string> names);

// Whether one of the names is the node's: the same, or its first label is ("node1.storage.example" is issued
// for "node1"). Upper and lower case are one, as in the DNS.
bool is_issued_for(std::span<const std::string> names, std::string_view node);

// For messages: "'a', 'b'", the first few of them.
std::string quoted_names(std::span<const std::string> names);

}  // namespace spoor::peer
