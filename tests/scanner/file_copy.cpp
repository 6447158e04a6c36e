#include "tests/scanner/file_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "scanner/feed/change_feed.h"
#include "tests/scanner/feed_copies.h"

namespace spoor::scanner {
namespace {

namespace fs = std::filesystem;

// Over all drives; empty where none has it, or not as a file.
std::string digest(const std::vector<fs::path>& drives, const std::string& path) {
  std::string found;
  for (const fs::path& drive : drives) {
    struct stat status{};
    if (::lstat((drive / path).c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    found += drive.filename().native() + ' ' + std::to_string(status.st_size) + ' ' +
             std::to_string(status.st_mtim.tv_nsec) + ' ';
  }
  return found;
}

}  // namespace

FileCopy::Copy FileCopy::everything(const std::vector<fs::path>& drives) {
  Copy copy;
  for (const fs::path& drive : drives) {
    for (const auto& entry : fs::recursive_directory_iterator(drive)) {
      const std::string path = entry.path().lexically_relative(drive).native();
      if (auto files = digest(drives, path); !files.empty()) copy[path] = std::move(files);
    }
  }
  return copy;
}

void FileCopy::follow(UsageDatabase& database, const std::vector<fs::path>& drives, const std::string& only) {
  std::vector<FeedEntry> found;
  const auto until = read_in_parts(
      database, {.since = since_, .until = {}, .after = {}, .files = true, .drive = only}, found);
  ASSERT_TRUE(until) << until.error().message;
  if (!*until) {
    EXPECT_TRUE(found.empty());
    ++from_scratch;
    copy_ = everything(drives);
    since_ = latest_scan(database).value();
    return;
  }
  since_ = **until;
  for (const FeedEntry& entry : found) {
    if (!entry.is_deleted) continue;
    if (entry.is_file) {
      copy_.erase(entry.path);
    } else {
      std::erase_if(copy_, [&](const auto& file) { return file.first.starts_with(entry.path + '/'); });
    }
  }
  for (const FeedEntry& entry : found) {
    if (!entry.is_file || !entry.is_there) continue;
    ++files_told;
    if (auto files = digest(drives, entry.path); !files.empty()) copy_[entry.path] = std::move(files);
  }
}

void FileCopy::expect_same(const std::vector<fs::path>& drives) const {
  const Copy source = everything(drives);
  for (const auto& [path, files] : source) {
    const auto found = copy_.find(path);
    if (found == copy_.end()) {
      ADD_FAILURE() << "'" << path << "' is missing";
    } else {
      EXPECT_EQ(found->second, files) << "'" << path << "'";
    }
  }
  for (const auto& [path, files] : copy_)
    EXPECT_TRUE(source.contains(path)) << "'" << path << "' is left over";
}

}  // namespace spoor::scanner
