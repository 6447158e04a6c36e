// The names in a certificate, and whether they match a node's name.
#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::peer {

// The names in the valid certificate of the other end: its DNS names or, if it has no alternative names at
// all, its common name. nullopt if there is no valid certificate.
std::optional<std::vector<std::string>> certificate_names(SSL* connection);

// The same for a client, whose names are matched against the operator's globs: the common name also if the
// alternative names are addresses only.
std::optional<std::vector<std::string>> client_names(SSL* connection);

// Whether a certificate with these names is the credential of one node: it has a name and no wildcard, which
// would fit any node. IP addresses do not count as names.
bool is_own_credential(std::span<const std::string> names);

// Whether one of the names, or its first label, is the node's name ("node1.storage.example" is issued for
// "node1"). Not case-sensitive, as in the DNS.
bool is_issued_for(std::span<const std::string> names, std::string_view node);

// A node's name is only a claim: fails if the certificate is the credential of one node, and was not issued
// for this name.
base::Result<> check_issued_for(std::span<const std::string> names, std::string_view node);

// For messages: "'a', 'b'", the first few of them.
std::string quoted_names(std::span<const std::string> names);

}  // namespace spoor::peer
