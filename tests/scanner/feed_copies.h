// Copies of a node's drives that are kept up to date by the change feed alone. Of all drives together, by
// logical path.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scanner/feed/change_feed.h"
#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// Reads the feed from where it was read last, as a consumer does that takes a few entries at a time.
class FeedFollower {
 public:
  // The first scan whose changes are still to be read; nothing before the first of all.
  std::optional<std::uint64_t> oldest_unread() const {
    return since_ == 0 ? std::nullopt : std::optional(since_ + 1);
  }

  int from_scratch = 0;  // so many times everything was copied

 protected:
  using Drives = std::vector<std::filesystem::path>;

  // Nothing where the changes are no longer kept: everything has to be copied. `only`: of this drive alone.
  std::optional<std::vector<FeedEntry>> read(UsageDatabase& database, const std::string& only, bool files);

 private:
  std::uint64_t since_ = 0;
};

// One keeps itself as `rsync --dirs --delete` would: what a changed directory no longer has goes. The other
// one deletes only what the feed calls deleted.
class FeedCopies : public FeedFollower {
 public:
  void follow(UsageDatabase& database, const Drives& drives, const std::string& only = {});
  void expect_same(const Drives& drives) const;

  int entries = 0;  // of the feed

 private:
  using Files = std::map<std::string, std::string>;  // what tells that one changed, by name
  using Copy = std::map<std::string, Files>;         // by logical path

  friend class FileCopy;

  static Files files_of(const Drives& drives, const std::string& path);
  static Copy everything(const Drives& drives);
  static void erase(Copy& copy, const std::string& path);
  static void make(Copy& copy, const std::string& path);
  static void delete_extraneous(Copy& copy, const Drives& drives, const std::string& path);

  Copy mirrored_;
  Copy told_;
};

// One of the files, by the file entries: deletes what is told to be deleted, then copies the files that are
// told.
class FileCopy : public FeedFollower {
 public:
  void follow(UsageDatabase& database, const Drives& drives, const std::string& only = {});
  void expect_same(const Drives& drives) const;

  int files_told = 0;

 private:
  using Copy = std::map<std::string, std::string>;  // what tells that a file changed, by logical path

  static Copy everything(const Drives& drives);

  Copy copy_;
};

}  // namespace spoor::scanner
