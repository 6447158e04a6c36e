// How `spoor setup` makes a node one of a cluster with TLS (cli/setup/invitation.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/options.h"
#include "cli/setup/authority.h"
#include "cli/setup/node_files.h"
#include "cli/setup_node.h"

namespace spoor::cli {

// All of these throw a Failure.

// The certificate authority of this node, which can issue.
KeyAndCertificate read_authority(const NodeFiles& files);

// `response`: its "authority" and "certificate", for this key.
void install_certificate(const NodeFiles& files, const std::string& key,
                         const nlohmann::ordered_json& response);

// Prints a token, waits for the node that joins with it, and lists that node as a peer.
void invite_node(const SetupOptions& options, const NodeFiles& files, const GlobalOptions& global);

void join_cluster(SetupOptions options, const NodeFiles& files, const GlobalOptions& global);

// Replaces the certificate of this node, by its own authority or that of a node that invites it.
void renew(SetupOptions options, const NodeFiles& files, const GlobalOptions& global);

}  // namespace spoor::cli
