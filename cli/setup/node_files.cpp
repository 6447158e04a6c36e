#include "cli/setup/node_files.h"

#include <fcntl.h>
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
#include "cli/program/options.h"
#include "config/derived.h"
#include "config/load.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

base::Error failed(const std::string& what, const fs::path& path) {
  return base::system_error(errno, fmt::format("cannot {} {}", what, base::printable(path.native())));
}

std::optional<gid_t> daemon_group() {
  const group* const found = ::getgrnam(service_user);
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
      certificate(config.parent_path() / "node.pem") {}

// The owner and mode are set before the file has its name: no other program sees it with others.
base::Result<> install_file(const fs::path& named, const std::string& text, Readers readers) {
  std::error_code error;
  const bool is_link = fs::is_symlink(fs::symlink_status(named, error));
  error.clear();
  const fs::path file = is_link ? fs::canonical(named, error) : named;
  if (error) {
    return base::Error(error,
                       fmt::format("cannot follow {}: {}", base::printable(named.native()), error.message()));
  }
  struct stat old{};
  const bool keeps = readers == Readers::as_before && ::stat(file.c_str(), &old) == 0;
  const mode_t mode = keeps                        ? old.st_mode & 07777U
                      : readers == Readers::root   ? 0600
                      : readers == Readers::daemon ? base::file_mode
                                                   : 0644;
  const auto group = readers == Readers::daemon ? daemon_group() : std::nullopt;
  const fs::path temporary = file.native() + ".tmp";
  ::unlink(temporary.c_str());
  const base::Descriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return failed("create", temporary);
  const auto given_up = [&](const std::string& what) {
    base::Error why = failed(what, temporary);
    ::unlink(temporary.c_str());  // it may be a part of a key
    return why;
  };
  for (std::string_view rest = text; !rest.empty();) {
    const auto written = ::write(fd.get(), rest.data(), rest.size());
    if (written < 0) return given_up("write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fchown(fd.get(), keeps ? old.st_uid : ::geteuid(),
               keeps ? old.st_gid : group.value_or(::getegid())) != 0 ||
      ::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0)
    return given_up("set the owner and mode of");
  base::PosixFileSystem files;
  if (auto renamed = files.rename(temporary, file); !renamed) return renamed;
  return files.sync_directory(file.parent_path());
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
  const auto old = read_config(file);
  if (!old) return old.error();
  if (*old) {
    fs::path kept = file.native() + ".old";
    for (int number = 2; fs::exists(kept); ++number) kept = fmt::format("{}.old.{}", file.native(), number);
    if (auto made = install_file(kept, **old, Readers::root); !made) return made.error();
  }
  if (auto made = install_file(file, *text_of(json), Readers::all); !made) return made.error();
  return checked;
}

base::Result<> edit_config(const fs::path& file, const std::string& by_hand,
                           const std::function<void(ordered_json&)>& change) {
  const auto old = read_config(file);
  if (!old) return old.error();
  if (!*old)
    return invalid(fmt::format("{} is not there: run spoor setup first", base::printable(file.native())));
  ordered_json json = ordered_json::parse(**old, nullptr, false);
  try {
    if (json.is_object()) change(json);
  } catch (const ordered_json::exception&) {
    json = nullptr;  // a setting has another form
  }
  if (!json.is_object())
    return invalid(fmt::format(
        "{} has comments, which would be lost, or another form: add {} there, then: systemctl reload spoord",
        base::printable(file.native()), by_hand));
  if (const auto checked = check_config(file, json); !checked) return checked.error();
  return install_file(file, *text_of(json), Readers::as_before);
}

// A user may own the drive: .spoor must not lead elsewhere.
base::Result<> prepare_drives(const std::vector<fs::path>& drives) {
  base::PosixFileSystem files;
  const passwd* const user = ::getpwnam(service_user);
  for (const fs::path& drive : drives) {
    const fs::path made = drive / ".spoor";
    if (auto result = files.create_directory(made); !result) return result;
    const base::Descriptor fd(::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd.get() < 0) return failed("open, as a directory that is no link,", made);
    if (user == nullptr || ::geteuid() != 0) continue;
    if (::fchown(fd.get(), user->pw_uid, user->pw_gid) != 0 || ::fchmod(fd.get(), base::directory_mode) != 0)
      return failed("set the owner and mode of", made);
  }
  return {};
}

bool is_in_one_of(std::string_view path, std::initializer_list<std::string_view> folders) {
  return std::ranges::any_of(folders, [&](std::string_view folder) {
    return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
  });
}

std::vector<std::string> drives_in(const std::string& mounts) {
  constexpr std::array types = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs"};
  std::vector<std::string> found;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    std::string type;
    words >> device >> place >> type;
    const bool is_known = std::ranges::find(types, type) != types.end();
    const bool is_of_system = place == "/" || is_in_one_of(place, {"/boot", "/usr", "/var", "/etc", "/nix",
                                                                   "/snap", "/run", "/tmp"});
    // With a space or the like, which is escaped there, it has to be given by hand.
    if (is_known && !is_of_system && place.find('\\') == std::string::npos) found.push_back(place);
  }
  return found;
}

}  // namespace spoor::cli
