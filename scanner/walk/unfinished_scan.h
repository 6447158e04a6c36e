// A scan that may be killed before it is committed, kept so that the next one resumes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "scanner/walk/scan_input.h"

namespace spoor::scanner {

// What has to be the same for a scan to be resumed, else it begins anew: the database, by its id, the number
// of the scan, and the options that decide what is walked and kept.
std::string encode_setting(std::string_view database, std::uint64_t scan, const ScanOptions& options);

// A directory of files. It holds nothing but what a scan has read, and may be removed whenever no scan runs.
// It is written when the first log is, so that a small scan leaves no trace. Nothing is written while little
// space is left: the journal and the commit of the scan need it.
//
// Not thread-safe; the owner holds the scan lock.
class UnfinishedScan {
 public:
  static std::filesystem::path directory_in(const std::filesystem::path& data_dir) {
    return data_dir / "unfinished";
  }

  // There is none yet. `files` must outlive it.
  UnfinishedScan(std::filesystem::path directory, base::FileSystem& files);

  // The input of a scan that was killed; nothing if there is none, or it had another setting. If that was a
  // full scan, the input asks for everything to be walked; drives that look unmounted are not accepted again.
  std::optional<ScanInput> find(std::string_view setting);

  // Begins the scan of that input, which must outlive this, unless find() found one: then that one is
  // resumed.
  void begin(std::string setting, const ScanInput& input, bool full);

  // Whether the scan is on disk, by find() or write(): if it is killed, the next one resumes it.
  bool is_written() const { return is_written_; }

  // Writes the scan to disk, unless it is there.
  base::Result<> write();

  // Fails if less than 5 % of the file system would stay free after `bytes` more, at least 512 MiB and at
  // most 2 GiB.
  base::Result<> check_space(std::uint64_t bytes = 0) const;

  // Removes all, as far as possible, and the directory: another user may have to make its own. A file that
  // remains is not taken for a scan that was killed.
  void remove();

  // The files of a log, oldest first; none unless the scan is on disk.
  std::vector<std::string> log_files(const std::string& log) const;

  // A new file of the log, the last of it. Writes the scan itself first.
  base::Result<std::unique_ptr<base::OutputFile>> add_log_file(const std::string& log);

  const std::filesystem::path& directory() const { return directory_; }
  // Each file of the scan holds it.
  std::uint64_t token() const { return token_; }

 private:
  const std::filesystem::path directory_;
  base::FileSystem& files_;
  std::string setting_;
  const ScanInput* input_ = nullptr;
  bool full_ = false;
  std::uint64_t token_ = 0;
  bool is_written_ = false;
};

}  // namespace spoor::scanner
