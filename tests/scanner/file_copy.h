// A copy of the files of a node's drives that is kept up to date by the file entries of the change feed
// alone.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// Deletes what is told to be deleted, then copies the files that are told. Of all drives together, by logical
// path.
class FileCopy {
 public:
  // Reads the feed from where it was read last, of all drives or of this one alone; copies everything where
  // that is no longer kept.
  void follow(UsageDatabase& database, const std::vector<std::filesystem::path>& drives,
              const std::string& only = {});

  // The first scan whose changes are still to be read; nothing before the first of all.
  std::optional<std::uint64_t> oldest_unread() const {
    return since_ == 0 ? std::nullopt : std::optional(since_ + 1);
  }

  void expect_same(const std::vector<std::filesystem::path>& drives) const;

  int from_scratch = 0;  // so many times everything was copied
  int files_told = 0;

 private:
  using Copy = std::map<std::string, std::string>;  // what tells that a file changed, by logical path

  static Copy everything(const std::vector<std::filesystem::path>& drives);

  std::uint64_t since_ = 0;
  Copy copy_;
};

}  // namespace spoor::scanner
