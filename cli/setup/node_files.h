// The files that `spoor setup` writes for a node, beside its configuration: ca.pem, node.pem, and on the node
// that invites others ca.key.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::cli {

// The user of the service, if the package made it.
inline constexpr const char* service_user = "spoor";

struct NodeFiles {
  explicit NodeFiles(std::filesystem::path config_file);

  std::filesystem::path config;
  std::filesystem::path ca;
  std::filesystem::path ca_key;
  std::filesystem::path certificate;  // with its key: both are replaced at once
};

enum class Readers { all, daemon, root, as_before };

// Replaces the file, or what a link leads to, atomically and durably. `daemon`: the group of the user spoor,
// if there is one, may read it; `root`: this user.
base::Result<> install_file(const std::filesystem::path& file, const std::string& text, Readers readers);

// Whether the file is there, and is not as the package installs it.
bool is_configured(const std::filesystem::path& file);

// What the file would configure.
base::Result<config::Config> check_config(const std::filesystem::path& file,
                                          const nlohmann::ordered_json& json);

// Writes a configuration, which has to be valid; one that is there is kept as FILE.old, or FILE.old.2.
base::Result<config::Config> write_config(const std::filesystem::path& file,
                                          const nlohmann::ordered_json& json);

// Changes a configuration, which stays valid. Fails, and changes nothing, if it has comments, which would be
// lost: the message has `by_hand`, what is to be added.
base::Result<> edit_config(const std::filesystem::path& file, const std::string& by_hand,
                           const std::function<void(nlohmann::ordered_json&)>& change);

// Makes .spoor on each drive, for the user spoor if there is one. Follows no link there.
base::Result<> prepare_drives(const std::vector<std::filesystem::path>& drives);

// Whether the path is one of these folders, or below one.
bool is_in_one_of(std::string_view path, std::initializer_list<std::string_view> folders);

// Mount points of file systems on disks, without those of the system: what may be drives.
std::vector<std::string> drives_in(const std::string& mounts);

}  // namespace spoor::cli
