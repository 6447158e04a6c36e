#include "tests/scanner/feed_copies.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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

// Both are maps by path.
template <class Copy>
void expect_equal(const Copy& copy, const Copy& source, const char* which) {
  for (const auto& [path, files] : source) {
    const auto found = copy.find(path);
    if (found == copy.end()) {
      ADD_FAILURE() << "'" << path << "' is missing in " << which;
    } else {
      EXPECT_EQ(found->second, files) << "'" << path << "' in " << which;
    }
  }
  for (const auto& [path, files] : copy)
    EXPECT_TRUE(source.contains(path)) << "'" << path << "' is left over in " << which;
}

}  // namespace

std::optional<std::vector<FeedEntry>> FeedFollower::read(UsageDatabase& database, const std::string& only,
                                                         bool files) {
  constexpr std::size_t part = 3;
  FeedRange range{.since = since_, .files = files, .drive = only};
  std::vector<FeedEntry> found;
  for (std::size_t before = 0;; before = found.size()) {
    const auto until = read_changes(database, range, [&](const FeedEntry& entry) {
      found.push_back(entry);
      return found.size() < before + part;
    });
    EXPECT_TRUE(until) << until.error().message;
    if (!until || !*until) {
      EXPECT_TRUE(found.empty());
      ++from_scratch;
      since_ = latest_scan(database).value();
      return std::nullopt;
    }
    if (found.size() < before + part) {
      since_ = **until;
      return found;
    }
    range.go_on_behind(found.back());
  }
}

FeedCopies::Files FeedCopies::files_of(const Drives& drives, const std::string& path) {
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

FeedCopies::Copy FeedCopies::everything(const Drives& drives) {
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

void FeedCopies::delete_extraneous(Copy& copy, const Drives& drives, const std::string& path) {
  std::vector<std::string> gone;
  for (const auto& [each, files] : copy) {
    if (each.empty() || each == path || tracker::parent_path(each) != path) continue;
    bool is_there = false;
    for (const fs::path& drive : drives) is_there = is_there || is_real_directory(drive / each);
    if (!is_there) gone.push_back(each);
  }
  for (const std::string& each : gone) erase(copy, each);
}

void FeedCopies::follow(UsageDatabase& database, const Drives& drives, const std::string& only) {
  const auto found = read(database, only, false);
  if (!found) {
    mirrored_ = told_ = everything(drives);
    return;
  }
  entries += static_cast<int>(found->size());
  for (const FeedEntry& entry : *found) {
    EXPECT_TRUE(entry.is_there || entry.is_deleted) << entry.path;
    if (entry.is_deleted) erase(told_, entry.path);
  }
  for (const FeedEntry& entry : *found) {
    if (!entry.is_there) continue;
    for (Copy* const copy : {&mirrored_, &told_}) {
      make(*copy, entry.path);
      (*copy)[entry.path] = files_of(drives, entry.path);
    }
    delete_extraneous(mirrored_, drives, entry.path);
  }
}

void FeedCopies::expect_same(const Drives& drives) const {
  const Copy source = everything(drives);
  expect_equal(mirrored_, source, "what was mirrored");
  expect_equal(told_, source, "what was told to be deleted");
}

FileCopy::Copy FileCopy::everything(const Drives& drives) {
  Copy copy;
  for (const auto& [path, files] : FeedCopies::everything(drives)) {
    for (const auto& [name, digest] : files) copy[tracker::join_path(path, name)] = digest;
  }
  return copy;
}

void FileCopy::follow(UsageDatabase& database, const Drives& drives, const std::string& only) {
  const auto found = read(database, only, true);
  if (!found) {
    copy_ = everything(drives);
    return;
  }
  for (const FeedEntry& entry : *found) {
    if (!entry.is_deleted) continue;
    if (entry.is_file) {
      copy_.erase(entry.path);
    } else {
      std::erase_if(copy_, [&](const auto& file) { return file.first.starts_with(entry.path + '/'); });
    }
  }
  for (const FeedEntry& entry : *found) {
    if (!entry.is_file || !entry.is_there) continue;
    ++files_told;
    const auto files = FeedCopies::files_of(drives, std::string(tracker::parent_path(entry.path)));
    const auto file = files.find(entry.path.substr(entry.path.rfind('/') + 1));
    if (file != files.end()) copy_[entry.path] = file->second;
  }
}

void FileCopy::expect_same(const Drives& drives) const {
  expect_equal(copy_, everything(drives), "the copy of the files");
}

}  // namespace spoor::scanner
