#include "tests/scanner/scanned_node.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <ostream>
#include <set>
#include <utility>

#include "scanner/errors.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr const char* own_name = "node";

std::int64_t mtime_of(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// What lies below a directory, but for the sizes of files with several names, which a walk meets again.
struct Below {
  Measured totals;
  std::map<std::pair<dev_t, ino_t>, Measured> linked;
};

void add(Measured& sum, const Measured& other) {
  sum.files += other.files;
  sum.dirs += other.dirs;
  sum.bytes += other.bytes;
  sum.allocated += other.allocated;
  sum.mtime_ns = std::max(sum.mtime_ns, other.mtime_ns);
}

void measure_file(const struct stat& status, Below& below) {
  ++below.totals.files;
  below.totals.mtime_ns = std::max(below.totals.mtime_ns, mtime_of(status));
  Measured size;
  if (S_ISREG(status.st_mode)) size.bytes = static_cast<std::uint64_t>(status.st_size);
  size.allocated = static_cast<std::uint64_t>(status.st_blocks) * 512;
  size.mtime_ns = below.totals.mtime_ns;
  if (status.st_nlink > 1) {
    below.linked[{status.st_dev, status.st_ino}] = size;
  } else {
    add(below.totals, size);
  }
}

Below measure_below(const std::filesystem::path& directory, const std::string& path,
                    std::map<std::string, Measured>& found) {
  Below below;
  struct stat own{};
  if (::lstat(directory.c_str(), &own) != 0) throw std::runtime_error("lstat " + path);
  below.totals.mtime_ns = mtime_of(own);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().native();
    if (path.empty() && name == ".spoor") continue;
    struct stat status{};
    if (::lstat(entry.path().c_str(), &status) != 0) throw std::runtime_error("lstat " + name);
    if (!S_ISDIR(status.st_mode)) {
      measure_file(status, below);
      continue;
    }
    Below inner = measure_below(entry.path(), tracker::join_path(path, name), found);
    ++below.totals.dirs;
    add(below.totals, inner.totals);
    below.linked.merge(inner.linked);
  }
  Measured& entry = found[path];
  add(entry, below.totals);
  for (const auto& [inode, size] : below.linked) add(entry, size);
  return below;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::size_t bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
}

std::ostream& operator<<(std::ostream& out, const Measured& measured) {
  return out << measured.files << " files, " << measured.dirs << " dirs, " << measured.bytes << " bytes, "
             << measured.allocated << " allocated, newest " << measured.mtime_ns;
}

std::map<std::string, Measured> measure(const std::vector<std::filesystem::path>& drives) {
  std::map<std::string, Measured> found;
  for (const auto& drive : drives) static_cast<void>(measure_below(drive, "", found));
  return found;
}

std::map<std::string, Measured> totals_of(const Usage& usage) {
  std::map<std::string, Measured> found;
  for_each_entry(usage.total, [&](const UsageEntry& entry) {
    found[entry.path] = {entry.files, entry.dirs, entry.bytes, entry.allocated, entry.mtime_ns};
  });
  return found;
}

std::map<std::string, Owners> measure_owners(const std::filesystem::path& drive, std::uint32_t depth) {
  std::map<std::string, Owners> found;
  std::map<std::string, std::set<ino_t>> seen;
  std::filesystem::recursive_directory_iterator at(drive);
  for (const auto& entry : at) {
    struct stat status{};
    if (::lstat(entry.path().c_str(), &status) != 0)
      throw std::runtime_error("lstat " + entry.path().native());
    if (S_ISDIR(status.st_mode)) {
      if (at.depth() == 0 && entry.path().filename() == ".spoor") at.disable_recursion_pending();
      continue;
    }
    auto above = entry.path().lexically_relative(drive).parent_path();
    for (int level = at.depth(); level >= 0; --level, above = above.parent_path()) {
      if (level > static_cast<int>(depth)) continue;
      OwnedTotals& owned = found[above.native()][{status.st_uid, status.st_gid}];
      ++owned.files;
      if (status.st_nlink > 1 && !seen[above.native()].insert(status.st_ino).second) continue;
      if (S_ISREG(status.st_mode)) owned.bytes += static_cast<std::uint64_t>(status.st_size);
      owned.allocated += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  return found;
}

DeepTree::DeepTree(const std::filesystem::path& top) : at_(::open(top.c_str(), O_RDONLY | O_DIRECTORY)) {}

void DeepTree::descend(const std::vector<std::string>& names) {
  for (const std::string& name : names) EXPECT_EQ(::mkdirat(at_.descriptor, name.c_str(), 0755), 0);
  at_ = DirectoryHandle(::openat(at_.descriptor, names.back().c_str(), O_RDONLY | O_DIRECTORY));
  levels_.push_back(names);
}

void DeepTree::make_file(const std::string& name) const {
  EXPECT_EQ(::mknodat(at_.descriptor, name.c_str(), S_IFREG | 0644, 0), 0);
}

void DeepTree::remove() {
  static_cast<void>(::unlinkat(at_.descriptor, "file", 0));
  for (; !levels_.empty(); levels_.pop_back()) {
    at_ = DirectoryHandle(::openat(at_.descriptor, "..", O_RDONLY | O_DIRECTORY));
    for (const std::string& name : levels_.back())
      EXPECT_EQ(::unlinkat(at_.descriptor, name.c_str(), AT_REMOVEDIR), 0);
  }
}

ScannedNode::ScannedNode(std::vector<std::string> drive_names,
                         const tracker::Tracker::Options& tracker_options) {
  for (const std::string& name : drive_names) {
    std::filesystem::create_directory(temp / name);
    options.drives.push_back({temp / name, ""});
  }
  tracker = std::make_unique<tracker::Tracker>(tracker_options, clock,
                                               tracker::Tracker::born(tracker::InstanceId::random(), clock));
  reopen_database();
}

std::vector<std::filesystem::path> ScannedNode::drive_paths() const {
  std::vector<std::filesystem::path> paths;
  for (const Drive& each : options.drives) paths.push_back(each.path);
  std::ranges::sort(paths);
  return paths;
}

void ScannedNode::trust_times() {
  clock.set_wall(reader.clock.wall_now());
  const auto probe = temp / "probe";
  std::filesystem::create_directory(probe);
  const auto ctime_ns = [&] {
    struct stat found{};
    EXPECT_EQ(::stat(probe.c_str(), &found), 0);
    return std::int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec;
  };
  reader.changes_times = true;
  for (int change = 0; change < 20; ++change) {
    const std::int64_t before = ctime_ns();
    std::filesystem::create_directory(probe / std::to_string(change));
    if (ctime_ns() == before) reader.changes_times = false;
  }
  std::filesystem::remove_all(probe);
}

void ScannedNode::reopen_database() {
  database.reset();
  auto opened = UsageDatabase::open(file());
  database = std::make_unique<UsageDatabase>(std::move(opened.value()));
  database->handle().exec("PRAGMA synchronous = OFF");  // no power cut here, and hundreds of commits
}

void ScannedNode::begin_rebuild(const std::string& why) {
  database.reset();
  database = std::make_unique<UsageDatabase>(UsageDatabase::begin_rebuild(file(), why).value());
}

void ScannedNode::finish_rebuild() {
  auto placed = UsageDatabase::finish_rebuild(file(), std::move(*database));
  database = std::make_unique<UsageDatabase>(std::move(placed.value()));
}

void ScannedNode::give_identity(std::size_t number, char digit) {
  const std::string identity(32, digit);
  const auto file = on_drive(".spoor/drive.json", number);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << R"({"id":")" << identity << R"("})";
  options.drives[number].identity = identity;
}

void ScannedNode::mark(const std::string& path, tracker::MarkKind kind) {
  const tracker::Mark mark{path, kind};
  tracker->mark({&mark, 1});
}

base::Result<ScanReport> ScannedNode::try_scan() {
  const auto peers = database->peers();
  if (!peers) return peers.error();
  const bool commits = resumes || ++scans_ % commits_each == 0;
  options.commit_every = commits ? std::chrono::hours(0) : std::chrono::hours(1'000'000);
  auto found = find_unfinished();
  has_resumed = found.has_value();
  ScanInput input = found ? std::move(*found) : gather(*peers);
  if (adjust_input) adjust_input(input);
  auto report =
      run_scan(*database, options, input, {reader, clock, waiter, stop.get_token(), progress, stamp_drive});
  if (report && merges && report->record.id % 3 == 0) {
    EXPECT_TRUE(database->merge_rows(1));
  }
  return report;
}

std::optional<ScanInput> ScannedNode::find_unfinished() {
  if (!resumes) return std::nullopt;
  auto found = scanner::find_unfinished(*database, options);
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : std::nullopt;
}

// Of the only peer.
ScanInput ScannedNode::gather(const tracker::PeerBook& book) {
  tracker::Cursor from;
  if (!book.empty()) from = {book.begin()->first.instance, book.begin()->second.cycle};
  const auto started_at = clock.wall_now();
  const auto current = tracker->status().current;
  const tracker::CycleAnswer answer = tracker->cycle({next(current), from.cycle, from.instance});
  clock.advance(std::chrono::seconds(1));
  ScanInput input{answer.marks};
  input.book[{own_name, answer.instance}] = {.cycle = answer.current};
  input.started_at = started_at;
  input.cycle = answer.current;
  input.partial = partial;
  input.start_level = start_level;
  if (answer.gap) input.everything = "the tracker can't answer from this cycle on";
  return input;
}

ScanReport ScannedNode::scan() {
  auto report = try_scan();
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : ScanReport();
}

ScanReport ScannedNode::scan_everything() {
  options.full = true;
  ScanReport report = scan();
  options.full = false;
  return report;
}

base::Result<ScanReport> ScannedNode::scan_stopped_when(
    std::function<bool(std::string_view path)> is_to_stop) {
  reader.before_read = [this, is_to_stop = std::move(is_to_stop)](std::string_view path) {
    if (is_to_stop(path)) stop.request_stop();
  };
  auto report = try_scan();
  reader.before_read = nullptr;
  stop = {};
  return report;
}

base::Result<ScanReport> ScannedNode::scan_killed_after(std::uint64_t reads) {
  return scan_stopped_when([left = reads](std::string_view) mutable { return left-- == 0; });
}

bool ScannedNode::stop_at(const std::string& path) {
  const auto report = scan_stopped_when([&](std::string_view at) { return at == path; });
  return !report && report.error().code == Errc::interrupted;
}

ScanReport ScannedNode::scan_counting_reads() {
  reader.read_paths.clear();
  return scan();
}

std::optional<Usage> ScannedNode::usage(const std::string& path, std::uint64_t depth) {
  UsageOptions usage_options;
  usage_options.depth = depth;
  usage_options.order = UsageOrder::name;
  auto found = query_usage(*database, path, usage_options);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : std::nullopt;
}

std::uint64_t ScannedNode::files(const std::string& path) {
  const auto found = usage(path);
  EXPECT_TRUE(found) << "nothing is known of '" << path << "'";
  return found ? found->total.files : 0;
}

bool ScannedNode::is_complete(const std::string& path) {
  const auto found = usage(path);
  EXPECT_TRUE(found) << "nothing is known of '" << path << "'";
  return found && found->is_complete(found->total);
}

void ScannedNode::expect_exact(Newest newest) {
  auto expected = measure(drive_paths());
  const auto all = usage("", 100'000);
  ASSERT_TRUE(all);
  auto stored = totals_of(*all);
  for (auto& [path, measured] : expected) {
    ASSERT_TRUE(stored.contains(path)) << "'" << path << "' is not known";
    if (newest == Newest::unknown) measured.mtime_ns = stored[path].mtime_ns;
    ASSERT_EQ(stored[path], measured) << "at '" << path << "'";
  }
  ASSERT_EQ(stored.size(), expected.size()) << "directories are known that are gone";
  ASSERT_EQ(row_count(), static_cast<std::int64_t>(all->total.dirs + options.drives.size()))
      << "rows nobody reaches";
  const auto lost =
      database->handle().number("SELECT count(*) FROM newer WHERE id NOT IN (SELECT id FROM directories)");
  ASSERT_EQ(lost, 0) << "rows put apart of no directory";
  if (options.owners_depth) expect_exact_owners();
}

std::optional<Owners> ScannedNode::owners(const std::string& path) {
  const auto found = query_usage(*database, path, {.depth = 0, .owners = true});
  if (!found.value() || !(*found)->owners) return std::nullopt;
  Owners owners;
  for (const auto& [owner, totals] : (*found)->owners->list) owners[owner] = totals;
  return owners;
}

void ScannedNode::expect_exact_owners() {
  std::map<std::string, Owners> expected;
  std::size_t rows = 0;
  for (const Drive& drive : options.drives) {
    for (const auto& [path, owners] : measure_owners(drive.path, *options.owners_depth)) {
      rows += owners.size();
      for (const auto& [owner, totals] : owners) expected[path][owner].add(totals);
    }
  }
  const auto all = usage("", *options.owners_depth);
  for_each_entry(all->total, [&](const UsageEntry& entry) {
    const auto stored = owners(entry.path);
    ASSERT_TRUE(stored) << "those of '" << entry.path << "' are not known";
    ASSERT_EQ(*stored, expected[entry.path]) << "at '" << entry.path << "'";
  });
  const auto stored_rows = database->handle().number("SELECT count(*) FROM owner_sums");
  ASSERT_EQ(stored_rows, static_cast<std::int64_t>(rows)) << "rows nobody reaches";
}

std::int64_t ScannedNode::row_count() {
  return database->handle().number("SELECT count(*) FROM directories");
}

}  // namespace spoor::scanner
