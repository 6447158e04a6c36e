// Copies of a node's drives that are kept up to date by the change feed alone.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/feed/change_feed.h"
#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// Reads the feed as a consumer does that takes a few entries at a time.
base::Result<std::optional<std::uint64_t>> read_in_parts(UsageDatabase& database, FeedRange range,
                                                         std::vector<FeedEntry>& found);

// One keeps itself as `rsync --dirs --delete` would: what a changed directory no longer has goes. The other
// one deletes only what the feed calls deleted. Both are of all drives together, by logical path.
class FeedCopies {
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
  int entries = 0;       // of the feed

 private:
  using Files = std::map<std::string, std::string>;  // what tells that one changed, by name
  using Copy = std::map<std::string, Files>;         // by logical path

  static Files files_of(const std::vector<std::filesystem::path>& drives, const std::string& path);
  static Copy everything(const std::vector<std::filesystem::path>& drives);
  static void erase(Copy& copy, const std::string& path);
  static void make(Copy& copy, const std::string& path);
  static void delete_extraneous(Copy& copy, const std::vector<std::filesystem::path>& drives,
                                const std::string& path);

  std::uint64_t since_ = 0;
  Copy mirrored_;
  Copy told_;
};

}  // namespace spoor::scanner
