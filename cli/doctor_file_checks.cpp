#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/printable.h"
#include "cli/doctor.h"
#include "cli/program/format.h"

namespace spoor::cli {
namespace {

constexpr std::uint32_t others_mode = 07;
constexpr std::uint32_t writable_by_others = 02;
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
// The journal takes up to 256 MiB until a snapshot frees it, and a scan's commit some more.
constexpr std::uint64_t data_dir_bytes_low = 512 * mebibyte;
constexpr std::uint64_t data_dir_bytes_min = 16 * mebibyte;
constexpr std::uint64_t drive_bytes_low = 64 * mebibyte;
constexpr std::uint64_t inodes_min = 100;
constexpr std::chrono::days expires_soon{30};
constexpr std::chrono::seconds publish_report_age_max{60};  // spoor-publish reports every 10 s

std::string system_message(int error) { return std::generic_category().message(error); }

std::string in_words(const std::filesystem::path& path) { return base::printable(path.native()); }

const FileFacts* instance_record(const Facts& facts) {
  if (!facts.data_dir) return nullptr;
  const auto found = facts.data_dir->files.find(instance_file);
  return found == facts.data_dir->files.end() || found->second.error != 0 ? nullptr : &found->second;
}

// Where root owns node.data_dir, and the user of the service the directory on a drive, root was given the
// first.
bool was_given_to_root(const Facts& facts) {
  const FileFacts* const record = instance_record(facts);
  if (record == nullptr || record->user != 0 || !facts.service_user_id || facts.service_user_id == 0U)
    return false;
  return std::ranges::any_of(facts.drives, [&](const std::optional<DriveFacts>& drive) {
    return drive && drive->spoor_directory.error == 0 &&
           drive->spoor_directory.user == *facts.service_user_id;
  });
}

// The user of the daemon; nothing if it has never run.
std::optional<std::uint32_t> daemon_user(const Facts& facts) {
  if (was_given_to_root(facts)) return facts.service_user_id;
  const FileFacts* const record = instance_record(facts);
  return record == nullptr ? std::nullopt : std::optional(record->user);
}

std::string chown_command(const Facts& facts, const std::string& paths) {
  if (daemon_user(facts) == facts.service_user_id && facts.service_user_id)
    return fmt::format("chown -R {}: {}", service_user, paths);
  return fmt::format("chown -R --reference={} {}",
                     shell_quoted((facts.config.node.data_dir / instance_file).native()), paths);
}

// A directory of Spoor's own, which exists.
void check_directory(const Facts& facts, const std::filesystem::path& path, const FileFacts& directory,
                     Findings& findings) {
  const auto user = daemon_user(facts);
  if (user && directory.user != *user) {
    findings.error(fmt::format("{} belongs to user {}, and the daemon runs as user {}", in_words(path),
                               directory.user, *user),
                   "the daemon can't write there, or another user can replace its files",
                   chown_command(facts, shell_quoted(path.native())));
  }
  if ((directory.mode & others_mode) != 0) {
    findings.warning(fmt::format("{} is open to all users (mode {:04o})", in_words(path), directory.mode),
                     "the names of files and directories can be read there, or state be changed",
                     fmt::format("chmod o= {}", shell_quoted(path.native())));
  }
}

// A lock or database that another user created keeps the daemon or the scan from opening it.
void check_owners(const Facts& facts, Findings& findings) {
  const auto& data_dir = facts.config.node.data_dir;
  const auto user = daemon_user(facts);
  if (!user || facts.data_dir->directory.user != *user) return;  // all of it is reported
  for (const auto& [other, names] : files_of_others(facts)) {
    std::string paths;
    std::string quoted;
    for (const std::string& name : names) {
      paths += (paths.empty() ? "" : ", ") + in_words(data_dir / name);
      quoted += (quoted.empty() ? "" : " ") + shell_quoted((data_dir / name).native());
    }
    findings.error(fmt::format("{} belong{} to user {}, and the daemon runs as user {}", paths,
                               names.size() == 1 ? "s" : "", other, *user),
                   "the daemon or the next scan can't open them", chown_command(facts, quoted));
  }
}

void check_space_at(const std::filesystem::path& path, const SpaceFacts& space, std::uint64_t bytes_low,
                    std::uint64_t bytes_min, const char* why, Findings& findings) {
  if (space.error != 0) return;  // another check reports a path that is missing
  const std::string quoted = shell_quoted(path.native());
  if (space.bytes_free < bytes_low) {
    findings.add(space.bytes_free < bytes_min ? Severity::error : Severity::warning,
                 fmt::format("{} has {} free", in_words(path), human_bytes(space.bytes_free)), why,
                 fmt::format("find what to remove: du -xh -d 2 {} | sort -h | tail", quoted));
  }
  if (space.inodes > 0 && space.inodes_free < inodes_min) {
    findings.error(fmt::format("{} has {} inodes free", in_words(path), space.inodes_free), why,
                   fmt::format("find what to remove: du -x --inodes -d 2 {} | sort -n | tail", quoted));
  }
}

// What the daemon says of the drive, by its path as the daemon prints it; null if nothing.
const nlohmann::ordered_json* state_of(const Facts& facts, const std::filesystem::path& drive) {
  if (!facts.daemon.drives.is_ok()) return nullptr;
  for (const auto& state : facts.daemon.drives.body.at("drives")) {
    if (state.at("path") == in_words(drive)) return &state;
  }
  return nullptr;
}

std::string make_directory_command(const Facts& facts, const std::filesystem::path& drive) {
  const std::string quoted = shell_quoted((drive / ".spoor").native());
  return fmt::format("mkdir -m 0750 {} && {}", quoted, chown_command(facts, quoted));
}

struct DriveProblem {
  std::string what;
  std::string fix;
};

// Takes the disk at this path as the drive; with the daemon's directory, if it has none.
std::string accept_command(const Facts& facts, const std::filesystem::path& path, const DriveFacts& seen) {
  std::string command = fmt::format("{} drives accept {}", facts.spoor, shell_quoted(path.native()));
  if (seen.spoor_directory.error == ENOENT) command = make_directory_command(facts, path) + " && " + command;
  return command + (seen.is_mount_point
                        ? "  # if this is the disk that belongs there"
                        : "  # ONLY if this directory replaces it; a disk that is not mounted: mount it");
}

// Why a drive that can't be used can't be, by what is seen at its path.
std::optional<DriveProblem> find_cause(const Facts& facts, const std::filesystem::path& path,
                                       const DriveFacts& seen) {
  const std::string quoted = shell_quoted(path.native());
  if (seen.root.error == ENOENT) {
    return DriveProblem{"does not exist",
                        seen.is_in_fstab
                            ? fmt::format("mkdir -p {0} && mount {0}", quoted)
                            : fmt::format("correct the path in {}; or mkdir -p {}, and mount the disk there",
                                          shell_quoted(facts.config_file), quoted)};
  }
  if (seen.root.error != 0) {
    return DriveProblem{"can't be read: " + system_message(seen.root.error),
                        "look for errors of the disk: journalctl -k -p err"};
  }
  if (!seen.root.is_directory) return DriveProblem{"is not a directory", "ls -ld " + quoted};
  if (seen.match != DriveMatch::foreign && seen.match != DriveMatch::missing) return std::nullopt;
  if (seen.is_in_fstab && !seen.is_mount_point) return DriveProblem{"is not mounted", "mount " + quoted};
  const std::string cause =
      seen.is_mount_point ? "the disk was replaced or swapped" : "the disk is not mounted, or was replaced";
  const std::string what = seen.match == DriveMatch::foreign ? "has the identity of another drive: "
                                                             : "has no identity (.spoor/drive.json): ";
  return DriveProblem{what + cause, accept_command(facts, path, seen)};
}

std::string fix_of_failure(const Facts& facts, const std::filesystem::path& path, const DriveFacts* seen) {
  if (seen != nullptr && seen->spoor_directory.error == ENOENT) return make_directory_command(facts, path);
  return "look for errors of the disk and the rights: journalctl -k -p err; ls -la " +
         shell_quoted((path / ".spoor").native());
}

void check_drive(const Facts& facts, std::size_t index, Findings& findings) {
  constexpr const char* why =
      "the daemon saves no snapshot to it, and scans leave it: it keeps its old totals";
  const auto& path = facts.config.drives[index];
  const auto& seen = facts.drives[index];
  const auto* const state = state_of(facts, path);
  const bool is_failed = state != nullptr && !state->at("ok").get<bool>();
  if (!seen) {
    findings.error(fmt::format("{} does not respond: it hangs", in_words(path)), why,
                   "look for errors of the disk: journalctl -k -p err");
    return;
  }
  if (state == nullptr && seen->root.error == EACCES)
    return findings.not_checked(fmt::format("{}: {}", in_words(path), system_message(EACCES)));
  const auto cause = state != nullptr && !is_failed ? std::nullopt : find_cause(facts, path, *seen);
  if (cause) {
    findings.error(fmt::format("{} {}", in_words(path), cause->what), why, cause->fix);
  } else if (is_failed) {
    findings.error(fmt::format("{}: {}", in_words(path), text_or(state->at("error"), "it failed")), why,
                   fix_of_failure(facts, path, &*seen));
  } else if (state == nullptr && facts.daemon.drives.is_ok()) {
    findings.error(fmt::format("the daemon does not know the drive {}: it runs with an older configuration",
                               in_words(path)),
                   "no snapshot is saved to the drive", "systemctl restart spoord");
  }
}

void check_configuration(const Facts& facts, Findings& findings) {
  const std::string fix =
      fmt::format("correct {}, then: systemctl restart spoord", shell_quoted(facts.config_file));
  if (!facts.is_set_up) {
    findings.error(fmt::format("this node is not set up: {} is that of the package", facts.config_file),
                   "its name and drive are examples, and no unit is enabled", "spoor setup");
  }
  for (const std::string& why : facts.not_checked) findings.not_checked(why);
  if (!facts.overlaps) findings.not_checked("overlapping drives: a drive does not respond");
  for (const std::string& overlap : facts.overlaps.value_or(std::vector<std::string>())) {
    findings.error(overlap, "every file must be on one drive only: the second one is not used", fix);
  }
  for (const std::string& wrong : facts.config_errors)
    findings.error(wrong, "the next start or reload of the daemon fails", fix);
}

// Group and access lists are not looked at.
void check_config_writers(const Facts& facts, Findings& findings) {
  const FileFacts& file = facts.config_path;
  if (file.error != 0 || (file.mode & writable_by_others) == 0) return;
  const std::string quoted = shell_quoted(facts.config_file);
  findings.error(
      fmt::format("all users can write {} (mode {:04o})", base::printable(facts.config_file), file.mode),
      "a user who changes it controls the daemon: its drives, its peers and who may ask it",
      fmt::format("look for changes in it, and then: chmod o-w {}", quoted));
}

// The daemon reads it at its next start or reload. Group and access lists are not looked at.
void check_config_file(const Facts& facts, Findings& findings) {
  constexpr std::uint32_t readable_by_others = 044;
  const FileFacts& file = facts.config_path;
  if (file.error != 0 || !facts.data_dir || facts.data_dir->directory.error != 0) return;
  const std::uint32_t user = facts.data_dir->directory.user;
  if (user == 0 || user == file.user || (file.mode & readable_by_others) != 0) return;
  const std::string quoted = shell_quoted(facts.config_file);
  findings.error(fmt::format("only its owner can read {} (mode {:04o}), and the daemon runs as another user",
                             base::printable(facts.config_file), file.mode),
                 "the next start or reload of the daemon fails",
                 fmt::format("chgrp {} {} && chmod g+r {}", service_user, quoted, quoted));
}

// The owner of a directory may rename what is in it, whoever owns that.
void check_drive_owner(const Facts& facts, const std::filesystem::path& path, const FileFacts& root,
                       Findings& findings) {
  const auto user = daemon_user(facts);
  if (root.error != 0 || root.user == 0 || !user || root.user == *user) return;
  const std::string quoted = shell_quoted(path.native());
  findings.warning(
      fmt::format("{} belongs to user {}, who is neither root nor the daemon's user {}", in_words(path),
                  root.user, *user),
      "this user can replace .spoor there, and by that the marks and the identity of the drive",
      fmt::format("chown root {} && chmod g+w,+t {}  # if its group is that of the programs that write there",
                  quoted, quoted));
}

void check_permissions(const Facts& facts, Findings& findings) {
  check_config_writers(facts, findings);
  check_config_file(facts, findings);
  const auto& data_dir = facts.config.node.data_dir;
  if (!facts.data_dir) return findings.not_checked(in_words(data_dir) + " does not respond");
  if (facts.data_dir->directory.error == ENOENT) {
    findings.error(fmt::format("node.data_dir {} does not exist", in_words(data_dir)),
                   "the daemon has not run yet, or its state is lost", "systemctl start spoord");
  } else if (facts.data_dir->directory.error != 0 || facts.data_dir->list_error != 0) {
    const int error = std::max(facts.data_dir->directory.error, facts.data_dir->list_error);
    findings.not_checked(fmt::format("{}: {}", in_words(data_dir), system_message(error)));
  } else {
    check_directory(facts, data_dir, facts.data_dir->directory, findings);
    check_owners(facts, findings);
  }
  for (std::size_t i = 0; i < facts.drives.size(); ++i) {
    const auto& drive = facts.drives[i];
    if (!drive) continue;  // check_drives() reports it
    check_drive_owner(facts, facts.config.drives[i], drive->root, findings);
    if (drive->spoor_directory.error != 0) continue;  // the same
    check_directory(facts, facts.config.drives[i] / ".spoor", drive->spoor_directory, findings);
  }
}

void check_secrets(const Facts& facts, Findings& findings) {
  for (const SecretFacts& secret : facts.secrets) {
    if (secret.file.error != 0 || (secret.file.mode & others_mode) == 0) continue;
    findings.error(fmt::format("{} ({}) is open to all users (mode {:04o})", in_words(secret.path),
                               secret.setting, secret.file.mode),
                   "every user of this machine can act with it",
                   fmt::format("chmod o= {}", shell_quoted(secret.path.native())));
  }
}

void check_publish(const Facts& facts, Findings& findings) {
  constexpr const char* why = "a sink receives no changes; the feed keeps them";
  constexpr const char* log = "journalctl -u spoor-publish -n 20";
  if (facts.config.publish.sinks.empty()) return;
  if (!facts.data_dir || facts.data_dir->list_error != 0)
    return findings.not_checked(in_words(facts.config.node.data_dir) + " can't be read");
  if (!facts.publish) {
    return findings.error(
        "publish.sinks is set, and spoor-publish has never run, or its record can't be read", why,
        "systemctl enable --now spoor-publish");
  }
  if (facts.now - facts.publish->written_at > publish_report_age_max) {
    return findings.error(fmt::format("spoor-publish last reported at {}: it does not run, or hangs",
                                      base::iso_time(facts.publish->written_at)),
                          why, "systemctl restart spoor-publish");
  }
  for (const config::Sink& sink : facts.config.publish.sinks) {
    if (std::ranges::find(facts.publish->sinks, sink.name, &scanner::SinkFigures::name) ==
        facts.publish->sinks.end())
      findings.error(fmt::format("the sink '{}' is in publish.sinks, and spoor-publish does not know it",
                                 base::printable(sink.name)),
                     why, "systemctl restart spoor-publish");
  }
  for (const scanner::SinkFigures& sink : facts.publish->sinks) {
    if (!sink.error.empty())
      findings.error(
          fmt::format("the sink '{}' fails: {}", base::printable(sink.name), base::printable(sink.error)),
          why, log);
  }
}

void check_space(const Facts& facts, Findings& findings) {
  if (facts.data_dir) {
    check_space_at(facts.config.node.data_dir, facts.data_dir->space, data_dir_bytes_low, data_dir_bytes_min,
                   "if it is full, marks are not acknowledged, and scans fail", findings);
  }
  std::uint64_t snapshot_bytes = 0;
  if (facts.daemon.status.is_ok() && facts.daemon.status.body.at("snapshot").is_object())
    snapshot_bytes = facts.daemon.status.body.at("snapshot").at("bytes").get<std::uint64_t>();
  for (std::size_t i = 0; i < facts.drives.size(); ++i) {
    if (!facts.drives[i]) continue;
    const std::uint64_t needed = 2 * snapshot_bytes;  // the old file and the new one
    check_space_at(facts.config.drives[i], facts.drives[i]->space, needed + drive_bytes_low,
                   needed + mebibyte, "if it is full, no snapshot is saved to it", findings);
  }
}

void check_tls(const Facts& facts, Findings& findings) {
  constexpr const char* why = "once it has expired, the other end refuses the connection";
  for (const CertificateFacts& certificate : facts.certificates) {
    const std::string file = fmt::format("{} ({})", in_words(certificate.path), certificate.setting);
    const std::string fix =
        fmt::format("renew {} (spoor setup --renew, where that made it), then: systemctl reload spoord",
                    shell_quoted(certificate.path.native()));
    if (!certificate.valid_until) {
      findings.error(fmt::format("{}: {}", certificate.setting, certificate.error),
                     "the next start or reload of the daemon fails", fix);
    } else if (*certificate.valid_until < facts.now) {
      findings.error(fmt::format("{} has expired, at {}", file, base::iso_time(*certificate.valid_until)),
                     why, fix);
    } else if (*certificate.valid_until < facts.now + expires_soon) {
      findings.warning(fmt::format("{} expires at {}", file, base::iso_time(*certificate.valid_until)), why,
                       fix);
    }
  }
}

void check_drives(const Facts& facts, Findings& findings) {
  for (std::size_t i = 0; i < facts.drives.size(); ++i) check_drive(facts, i, findings);
}

constexpr Check checks_of_file[] = {
    {"configuration", false, check_configuration},
    {"permissions", false, check_permissions},
    {"secrets", false, check_secrets},
    {"space", false, check_space},
    {"tls", false, check_tls},
    {"drives", false, check_drives},
    {"publish", false, check_publish},
};

}  // namespace

std::map<std::uint32_t, std::vector<std::string>> files_of_others(const Facts& facts) {
  std::map<std::uint32_t, std::vector<std::string>> found;
  const auto user = daemon_user(facts);
  if (!user) return found;
  constexpr std::array opened = {".lock", ".db", ".db-wal", ".db-shm", ".db.commit"};
  for (const auto& file : facts.data_dir->files) {
    const auto ends = [&](const char* end) { return file.first.ends_with(end); };
    const bool is_opened = file.first == "journal" || std::ranges::any_of(opened, ends);
    if (is_opened && file.second.error == 0 && file.second.user != *user)
      found[file.second.user].push_back(file.first);
  }
  return found;
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  const bool is_printable = base::printable(text, text.size()) == text;
  std::string quoted = is_printable ? "'" : "$'";
  for (const char byte : text) {
    if (is_printable) {
      quoted += byte == '\'' ? std::string(R"('\'')") : std::string(1, byte);
    } else if (plain.find(byte) != std::string_view::npos) {
      quoted += byte;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return quoted + "'";
}

std::span<const Check> file_checks() { return checks_of_file; }

}  // namespace spoor::cli
