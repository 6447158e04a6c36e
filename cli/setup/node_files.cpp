#include "cli/setup/node_files.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "config/load.h"
#include "config/validate.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Of the package.
constexpr const char* daemon_user = "spoor";

base::Error invalid(const std::string& why) {
  return {std::make_error_code(std::errc::invalid_argument), why};
}

base::Result<> give(const fs::path& path, mode_t mode, std::optional<uid_t> user,
                    std::optional<gid_t> group) {
  if (::chown(path.c_str(), user.value_or(static_cast<uid_t>(-1)), group.value_or(static_cast<gid_t>(-1))) !=
          0 ||
      ::chmod(path.c_str(), mode) != 0)
    return base::system_error(
        errno, fmt::format("cannot set the owner and mode of {}", base::printable(path.native())));
  return {};
}

std::optional<gid_t> daemon_group() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread here.
  const group* const found = ::getgrnam(daemon_user);
  return found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

base::Result<std::string> text_of(const ordered_json& json) {
  try {
    return json.dump(2) + '\n';
  } catch (const ordered_json::type_error&) {
    return invalid("a path or name is not UTF-8, which the configuration has to be");
  }
}

// The configuration that the package installs: a node to be named, with a drive that may not exist.
bool is_of_package(const std::string& text) {
  const auto json = ordered_json::parse(text, nullptr, false, true);
  const ordered_json installed = {{"node", {{"name", "node1"}}}, {"drives", {"/srv/data"}}};
  return json == installed;
}

base::Result<std::optional<std::string>> read_config(const fs::path& file) {
  base::PosixFileSystem files;
  return base::read_if_there(files, file, config::file_bytes_max);
}

}  // namespace

NodeFiles::NodeFiles(fs::path config_file)
    : config(std::move(config_file)),
      ca(config.parent_path() / "ca.pem"),
      ca_key(config.parent_path() / "ca.key"),
      certificate(config.parent_path() / "node.pem"),
      key(config.parent_path() / "node.key") {}

base::Result<> install_file(const fs::path& file, const std::string& text, Readers readers) {
  base::PosixFileSystem files;
  if (auto made = base::replace_file(files, file, text); !made) return made;  // 0640
  if (readers == Readers::all) return give(file, 0644, {}, {});
  if (readers == Readers::root) return give(file, 0600, {}, {});
  return give(file, base::file_mode, {}, daemon_group());
}

bool is_configured(const fs::path& file) {
  const auto old = read_config(file);
  return !old || (*old && !is_of_package(**old));
}

base::Result<config::Config> check_config(const fs::path& file, const ordered_json& json) {
  const auto text = text_of(json);
  if (!text) return text.error();
  auto loaded = config::load_text(*text, file.native(), {});
  if (!loaded) return loaded;
  if (const auto overlaps = config::find_drive_overlaps(*loaded); !overlaps.empty())
    return invalid(overlaps.front());
  return loaded;
}

base::Result<config::Config> write_config(const fs::path& file, const ordered_json& json) {
  auto checked = check_config(file, json);
  if (!checked) return checked;
  if (const auto old = read_config(file); !old) {
    return old.error();
  } else if (*old) {
    if (auto kept = install_file(file.native() + ".old", **old, Readers::all); !kept) return kept.error();
  }
  if (auto made = install_file(file, *text_of(json), Readers::all); !made) return made.error();
  return checked;
}

base::Result<> edit_config(const fs::path& file, const std::string& by_hand,
                           const std::function<void(ordered_json&)>& change) {
  const auto old = read_config(file);
  if (!old) return old.error();
  ordered_json json = *old ? ordered_json::parse(**old, nullptr, false) : ordered_json();
  if (!json.is_object())
    return invalid(
        fmt::format("{} has comments, which would be lost: add {} there, then: systemctl reload spoord",
                    base::printable(file.native()), by_hand));
  change(json);
  if (const auto checked = check_config(file, json); !checked) return checked.error();
  return install_file(file, *text_of(json), Readers::all);
}

base::Result<> prepare_drives(const std::vector<fs::path>& drives) {
  base::PosixFileSystem files;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread here.
  const passwd* const user = ::getpwnam(daemon_user);
  for (const fs::path& drive : drives) {
    const fs::path made = drive / ".spoor";
    if (auto result = files.create_directory(made); !result) return result;
    if (user == nullptr || ::geteuid() != 0) continue;
    if (auto result = give(made, base::directory_mode, user->pw_uid, user->pw_gid); !result) return result;
  }
  return {};
}

std::vector<std::string> drives_in(const std::string& mounts) {
  constexpr std::array types = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs"};
  constexpr std::array of_system = {"/boot", "/usr", "/var", "/etc", "/nix", "/snap", "/run", "/tmp"};
  std::vector<std::string> found;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    std::string type;
    words >> device >> place >> type;
    const bool is_known = std::ranges::find(types, type) != types.end();
    const bool is_of_system = place == "/" || std::ranges::any_of(of_system, [&](std::string_view folder) {
                                return place == folder || place.starts_with(std::string(folder) + '/');
                              });
    // With a space or the like, which is escaped there, it has to be given by hand.
    if (is_known && !is_of_system && place.find('\\') == std::string::npos) found.push_back(place);
  }
  return found;
}

}  // namespace spoor::cli
