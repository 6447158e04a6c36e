// How a node joins a cluster with TLS: a node that holds the key of the cluster's authority invites one
// other. It prints a token, and waits. The other node sends the secret of the token and a request for a
// certificate, and receives the certificate, that of the authority, and what all nodes have in common.
//
// One line of JSON each way, over TLS, of at most `line_bytes_max`. The token has the secret, and the
// fingerprint of the certificate with which the inviting node responds: each end knows the other before
// anything is sent. The private key of the node that joins never leaves it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"

namespace spoor::cli {

inline constexpr std::uint16_t invitation_port = 7421;
inline constexpr std::size_t line_bytes_max = std::size_t{64} << 10U;

struct JoinToken {
  std::string secret;       // 16 random bytes
  std::string fingerprint;  // 32 bytes, see fingerprint_of()

  friend bool operator==(const JoinToken&, const JoinToken&) = default;
};

// With a new secret.
JoinToken make_join_token(std::string fingerprint);

// 64 characters of A-Z a-z 0-9 + /.
std::string to_text(const JoinToken& token);
base::Result<JoinToken> parse_join_token(const std::string& text);

struct Invitation {
  std::string address;  // an IP address of this node
  std::uint16_t port = invitation_port;
  std::filesystem::path certificate;  // of this node, in PEM
  std::filesystem::path key;
  JoinToken token;
  std::chrono::seconds time_max{1800};
};

struct InvitationCalls {
  // The port on which it waits.
  std::function<void(std::uint16_t port)> listening;
  // The response to the request of a node that has the token, and its address; its error is sent instead.
  std::function<base::Result<nlohmann::ordered_json>(const nlohmann::ordered_json&, const std::string& from)>
      admit;
  // A connection that did not lead to a response, and why.
  std::function<void(const std::string& from, const std::string& why)> refused;
};

// Whether other machines can reach a machine by this IP address; whether it is one of this machine.
bool is_of_network(const std::string& address);
bool is_own_address(const std::string& address);

// Waits until a node that has the token has its response; an error leaves the invitation open. Serves 256
// connections at a time, for 10 s each. Fails with std::errc::timed_out after `time_max`.
base::Result<> invite(const Invitation& invitation, const InvitationCalls& calls);

// Sends the request that `make_request` returns for the address by which this node reaches the other. Returns
// the response. Nothing is sent if the other's certificate is not that of the token.
base::Result<nlohmann::ordered_json> join(
    const std::string& host, std::uint16_t port, const JoinToken& token,
    const std::function<nlohmann::ordered_json(const std::string& own_address)>& make_request);

}  // namespace spoor::cli
