// What `spoor doctor` reads on this machine: the drives, node.data_dir, and the files of the configuration.
#include <fmt/core.h>
#include <grp.h>
#include <mntent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "cli/child_calls.h"
#include "cli/doctor.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "peer/http/credentials.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::cli {

// Children of this process send them through pipes.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileFacts, error, is_directory, user, mode)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SpaceFacts, error, bytes_free, inodes, inodes_free)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DriveFacts, root, spoor_directory, space, match, is_mount_point,
                                   is_in_fstab)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataDirFacts, directory, space, list_error, files)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds files_timeout{5};
constexpr std::size_t files_max = 1'000;

FileFacts look_at(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {.error = errno};
  return {.is_directory = S_ISDIR(status.st_mode), .user = status.st_uid, .mode = status.st_mode & 07777U};
}

SpaceFacts space_at(const fs::path& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return {.error = errno};
  return {.bytes_free = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize,
          .inodes = status.f_files,
          .inodes_free = status.f_favail};
}

bool is_in_fstab(const fs::path& path) {
  const auto close = [](std::FILE* file) { ::endmntent(file); };
  const std::unique_ptr<std::FILE, decltype(close)> table(::setmntent("/etc/fstab", "re"), close);
  if (!table) return false;
  while (const mntent* const line = ::getmntent(table.get())) {
    if (path == line->mnt_dir) return true;
  }
  return false;
}

bool is_mount_point(const fs::path& path) {
  struct stat here{};
  struct stat above{};
  return ::stat(path.c_str(), &here) == 0 && ::stat((path / "..").c_str(), &above) == 0 &&
         (here.st_dev != above.st_dev || here.st_ino == above.st_ino);
}

DriveMatch match_of(const fs::path& drive, const fs::path& data_dir, const std::vector<fs::path>& drives) {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, data_dir);
  if (!registry.load(drives)) return DriveMatch::unknown;
  if (const auto identity = registry.check(drive))
    return *identity == tracker::DriveIdentity::known ? DriveMatch::known : DriveMatch::fresh;
  const auto file =
      base::read_if_there(files, drive / tracker::drive_identity_file, tracker::drive_identity_bytes_max);
  if (!file) return DriveMatch::unknown;  // not for this user to read, or an error of the disk
  return *file ? DriveMatch::foreign : DriveMatch::missing;
}

DriveFacts look_at_drive(const fs::path& drive, const fs::path& data_dir,
                         const std::vector<fs::path>& drives) {
  return {.root = look_at(drive),
          .spoor_directory = look_at(tracker::spoor_directory(drive)),
          .space = space_at(drive),
          .match = match_of(drive, data_dir, drives),
          .is_mount_point = is_mount_point(drive),
          .is_in_fstab = is_in_fstab(drive)};
}

DataDirFacts look_at_data_dir(const fs::path& data_dir) {
  DataDirFacts facts{.directory = look_at(data_dir), .space = space_at(data_dir)};
  std::error_code failure;
  for (fs::directory_iterator entry(data_dir, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (facts.files.size() >= files_max) break;
    facts.files[base::printable(entry->path().filename().native())] = look_at(entry->path());
  }
  facts.list_error = failure.value();
  return facts;
}

// Whether it exists and this user may not read it.
bool is_unreadable(const fs::path& file) { return ::access(file.c_str(), R_OK) != 0 && errno == EACCES; }

// The path of the file, if this user can read it or it does not exist; else notes the reason.
std::optional<fs::path> find_file(Facts& facts, const std::string& setting, const fs::path& of) {
  if (of.empty()) return std::nullopt;
  const auto file = config::secret_file(of);
  if (file && !is_unreadable(*file)) return *file;
  facts.not_checked.push_back(
      file ? fmt::format("{}: this user can't read {}", setting, file->native())
           : fmt::format("{}: systemd passes {} to the service only", setting, of.native()));
  return std::nullopt;
}

// The certificates of one end of TLS. Those that this user can't read are not judged.
void add_tls(Facts& facts, const std::string& setting, const fs::path& certificate, const fs::path& key,
             const fs::path& ca) {
  using ReadEnd = std::function<base::Result<base::WallTime>(const fs::path& file)>;
  const auto add = [&](const char* name, const fs::path& of, const ReadEnd& read) {
    CertificateFacts found{.setting = setting + '.' + name};
    const auto file = find_file(facts, found.setting, of);
    if (!file) return;
    found.path = *file;
    const auto end = read(*file);
    if (end) found.valid_until = *end;
    if (!end) found.error = end.error().message;
    facts.certificates.push_back(std::move(found));
  };
  add("certificate", certificate, [&](const fs::path& file) {
    const auto key_file = config::secret_file(key);
    return peer::certificate_valid_until(file, key_file && !is_unreadable(*key_file) ? *key_file : "");
  });
  add(setting.starts_with("listen") ? "client_ca" : "ca", ca,
      [](const fs::path& file) { return peer::authorities_valid_until(file); });
}

void add_secret(Facts& facts, const std::string& setting, const fs::path& of) {
  const auto file = config::secret_file(of);
  if (!of.empty() && file) facts.secrets.push_back({setting, *file, look_at(*file)});
}

// `read` reads the token or password in `of`.
void try_secret(Facts& facts, const std::string& setting, const fs::path& of, const auto& read) {
  add_secret(facts, setting, of);
  if (!find_file(facts, setting, of)) return;
  if (const auto done = read(); !done)
    facts.config_errors.push_back(fmt::format("{}: {}", setting, done.error().message));
}

void collect_accounts(Facts& facts) {
  if (const passwd* const service = ::getpwnam(service_user)) facts.service_user_id = service->pw_uid;
  const auto check = [&](const std::string& setting, const std::string& user, const std::string& group) {
    if (!user.empty() && ::getpwnam(user.c_str()) == nullptr)
      facts.config_errors.push_back(fmt::format("{}: there is no user '{}' on this machine", setting, user));
    if (!group.empty() && ::getgrnam(group.c_str()) == nullptr)
      facts.config_errors.push_back(
          fmt::format("{}: there is no group '{}' on this machine", setting, group));
  };
  for (const auto& listener : facts.config.listen) check("listen", {}, listener.group);
  for (const auto& rule : facts.config.auth.unix_peers) check("auth.unix", rule.user, rule.group);
}

}  // namespace

void collect_files(Facts& facts) {
  const config::Config& config = facts.config;
  const fs::path data_dir = config.node.data_dir;
  std::vector<std::function<std::string()>> calls{
      [&] { return json(config::find_drive_overlaps(config)).dump(); },
      [&] { return json(look_at_data_dir(data_dir)).dump(); }};
  for (const fs::path& drive : config.drives) {
    calls.emplace_back([&] { return json(look_at_drive(drive, data_dir, config.drives)).dump(); });
  }
  const auto results = call_in_children(calls, files_timeout);
  if (results[0]) facts.overlaps = json::parse(*results[0]).get<std::vector<std::string>>();
  if (results[1]) facts.data_dir = json::parse(*results[1]).get<DataDirFacts>();
  for (std::size_t i = 0; i < config.drives.size(); ++i) {
    auto& drive = facts.drives.emplace_back();
    if (results[i + 2]) drive = json::parse(*results[i + 2]).get<DriveFacts>();
  }
  if (!facts.data_dir || facts.data_dir->list_error != 0) return;
  const auto record = facts.data_dir->files.find(instance_file);
  facts.is_daemon_user = record == facts.data_dir->files.end() || record->second.user == ::geteuid();
}

void collect_settings(Facts& facts) {
  const config::Config& config = facts.config;
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    const auto& tls = config.listen[i].tls;
    if (!tls) continue;
    const std::string setting = fmt::format("listen[{}].tls", i);
    add_secret(facts, setting + ".key", tls->key);
    add_tls(facts, setting, tls->certificate, tls->key, tls->client_ca);
  }
  const auto add_client = [&](const std::string& setting, const std::optional<config::PeerTls>& tls) {
    if (!tls) return;
    add_secret(facts, setting + ".key", tls->key);
    add_tls(facts, setting, tls->certificate, tls->key, tls->ca);
  };
  add_client("peers.tls", config.peers.tls);
  const fs::path& token_file = config.peers.token_file;
  try_secret(facts, "peers.token_file", token_file, [&] { return config::read_token(token_file); });
  for (const auto& token : config.auth.tokens)
    try_secret(facts, "auth.tokens", token.file, [&] { return config::read_token(token.file); });
  for (const config::Sink& sink : config.publish.sinks) {
    const std::string setting = fmt::format("the sink '{}' of publish.sinks", sink.name);
    const fs::path& file = sink.password_file.empty() ? sink.token_file : sink.password_file;
    config::Sink without_tls = sink;
    without_tls.tls.reset();
    try_secret(facts, setting, file, [&] { return config::sink_secrets(without_tls); });
  }
  collect_accounts(facts);
  facts.config_path = look_at(facts.config_file);
  std::error_code error;
  facts.is_watch_enabled =
      fs::exists("/etc/systemd/system/multi-user.target.wants/spoor-watch.service", error);
  base::PosixFileSystem files;
  if (auto publish = scanner::read_publish_record(files, config.node.data_dir); facts.data_dir && publish)
    facts.publish = *std::move(publish);
  if (!config.peers.etcd) return;
  const config::Etcd& etcd = *config.peers.etcd;
  add_client("peers.etcd.tls", etcd.tls);
  config::Etcd without_tls = etcd;
  without_tls.tls.reset();
  try_secret(facts, "peers.etcd.password_file", etcd.password_file,
             [&] { return config::etcd_secrets(without_tls); });
}

}  // namespace spoor::cli
