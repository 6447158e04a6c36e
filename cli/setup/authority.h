// A private certificate authority for the nodes of one cluster, and the certificates that it issues: EC
// P-256, X.509 version 3 (RFC 5280). docs/certificates.md makes the same with openssl(1).
#pragma once

#include <openssl/types.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::cli {

// The names of all nodes that `spoor setup` makes end in it.
inline constexpr const char* node_domain = "spoor.internal";

// Both in PEM.
struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

// For ten years from now on.
KeyAndCertificate make_authority(const std::string& cluster, base::WallTime now);

std::string make_key();

// A request for a certificate of the key (PKCS #10, in PEM), which proves that the sender has it.
std::string make_request(const std::string& key);

// Whether it can be the first label of a DNS name, which identifies the node: in "a.b.spoor.internal" that
// would be "a", the name of another one.
bool is_label(std::string_view name);

struct NodeNames {
  std::string name;     // node.name, a label
  std::string address;  // an IP address
};

// The certificate that the request asks for, for two years from now on, for `names` and nothing else: what
// the request says about itself is ignored. Fails if the request is not one or not signed by its key, or the
// name is not a label.
base::Result<std::string> issue(const KeyAndCertificate& authority, const std::string& request,
                                const NodeNames& names, base::WallTime now);

// SHA-256 of a certificate in DER: 32 bytes. Of the first one in a PEM text.
std::string fingerprint_of(const X509* certificate);
base::Result<std::string> fingerprint_of(const std::string& certificate);

}  // namespace spoor::cli
