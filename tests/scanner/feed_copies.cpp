#include "tests/scanner/feed_copies.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "scanner/feed/change_feed.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

namespace fs = std::filesystem;

std::string digest(const fs::path& drive, const fs::path& file) {
  struct stat status{};
  EXPECT_EQ(::lstat(file.c_str(), &status), 0);
  return drive.filename().native() + ' ' + std::to_string(status.st_size) + ' ' +
         std::to_string(status.st_mtim.tv_nsec) + ' ';
}

bool is_real_directory(const fs::path& path) { return fs::is_directory(fs::symlink_status(path)); }

bool is_below(const std::string& path, const std::string& top) {
  return top.empty() || path == top || path.starts_with(top + "/");
}

}  // namespace

FeedCopies::Files FeedCopies::files_of(const std::vector<fs::path>& drives, const std::string& path) {
  Files files;
  for (const fs::path& drive : drives) {
    if (!is_real_directory(drive / path)) continue;
    for (const auto& entry : fs::directory_iterator(drive / path)) {
      if (!is_real_directory(entry.path()))
        files[entry.path().filename().native()] += digest(drive, entry.path());
    }
  }
  return files;
}

FeedCopies::Copy FeedCopies::everything(const std::vector<fs::path>& drives) {
  Copy copy;
  copy[""] = files_of(drives, "");
  for (const fs::path& drive : drives) {
    for (const auto& entry : fs::recursive_directory_iterator(drive)) {
      const std::string path = entry.path().lexically_relative(drive).native();
      if (is_real_directory(entry.path()) && !copy.contains(path)) copy[path] = files_of(drives, path);
    }
  }
  return copy;
}

void FeedCopies::erase(Copy& copy, const std::string& path) {
  std::erase_if(copy, [&](const auto& each) { return is_below(each.first, path); });
}

void FeedCopies::make(Copy& copy, const std::string& path) {
  copy[""];
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    copy[path.substr(0, at)];
  }
  copy[path];
}

void FeedCopies::delete_extraneous(Copy& copy, const std::vector<fs::path>& drives, const std::string& path) {
  std::vector<std::string> gone;
  for (const auto& [each, files] : copy) {
    if (each.empty() || each == path || tracker::parent_path(each) != path) continue;
    bool is_there = false;
    for (const fs::path& drive : drives) is_there = is_there || is_real_directory(drive / each);
    if (!is_there) gone.push_back(each);
  }
  for (const std::string& each : gone) erase(copy, each);
}

base::Result<std::optional<std::uint64_t>> read_in_parts(UsageDatabase& database, FeedRange range,
                                                         std::vector<FeedEntry>& found) {
  constexpr std::size_t part = 3;
  const auto read_part = [&] {
    std::size_t count = 0;
    return read_changes(database, range, [&](const FeedEntry& entry) {
      found.push_back(entry);
      return ++count < part;
    });
  };
  auto until = read_part();
  for (std::size_t before = 0; until && found.size() == before + part; until = read_part()) {
    before = found.size();
    range.go_on_behind(found.back());
  }
  return until;
}

void FeedCopies::follow(UsageDatabase& database, const std::vector<fs::path>& drives,
                        const std::string& only) {
  std::vector<FeedEntry> found;
  const auto until =
      read_in_parts(database, {.since = since_, .until = {}, .after = {}, .drive = only}, found);
  ASSERT_TRUE(until) << until.error().message;
  if (!*until) {
    EXPECT_TRUE(found.empty());
    ++from_scratch;
    mirrored_ = told_ = everything(drives);
    since_ = latest_scan(database).value();
    return;
  }
  since_ = **until;
  entries += static_cast<int>(found.size());
  for (const FeedEntry& entry : found) {
    EXPECT_TRUE(entry.is_there || entry.is_deleted) << entry.path;
    if (entry.is_deleted) erase(told_, entry.path);
  }
  for (const FeedEntry& entry : found) {
    if (!entry.is_there) continue;
    for (Copy* const copy : {&mirrored_, &told_}) {
      make(*copy, entry.path);
      (*copy)[entry.path] = files_of(drives, entry.path);
    }
    delete_extraneous(mirrored_, drives, entry.path);
  }
}

void FeedCopies::expect_same(const std::vector<fs::path>& drives) const {
  const Copy source = everything(drives);
  for (const Copy* const copy : {&mirrored_, &told_}) {
    const char* const which = copy == &told_ ? "what was told to be deleted" : "what was mirrored";
    for (const auto& [path, files] : source) {
      const auto found = copy->find(path);
      if (found == copy->end()) {
        ADD_FAILURE() << "'" << path << "' is missing in " << which;
      } else {
        EXPECT_EQ(found->second, files) << "'" << path << "' in " << which;
      }
    }
    for (const auto& [path, files] : *copy) {
      EXPECT_TRUE(source.contains(path)) << "'" << path << "' is left over in " << which;
    }
  }
}

}  // namespace spoor::scanner
