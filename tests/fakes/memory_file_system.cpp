#include "tests/fakes/memory_file_system.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace spoor::fakes {
namespace {

namespace fs = std::filesystem;

base::Error failed(int error, const char* what, const fs::path& path) {
  return base::system_error(error, fmt::format("cannot {} {}", what, path.native()));
}

bool is_at_or_below(const fs::path& path, const fs::path& top) {
  return std::mismatch(top.begin(), top.end(), path.begin(), path.end()).first == top.end();
}

// The length and one half of the bytes that differ reached the disk, the first half or the second.
std::string torn(const std::string& content, std::string synced, bool is_first_half) {
  synced.resize(content.size());
  const auto first = std::ranges::mismatch(content, synced).in1 - content.begin();
  const auto behind =
      content.rend() - std::mismatch(content.rbegin(), content.rend() - first, synced.rbegin()).first;
  const auto half = static_cast<std::size_t>(first + (behind - first) / 2);
  return is_first_half ? content.substr(0, half) + synced.substr(half)
                       : synced.substr(0, half) + content.substr(half);
}

}  // namespace

class MemoryFileSystem::Output final : public base::OutputFile {
 public:
  Output(MemoryFileSystem& files, fs::path path, std::shared_ptr<File> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)), boot_(files.boot_) {}

  base::Result<> append(std::string_view bytes) override {
    auto done = write(appended_, bytes);
    if (done) appended_ += bytes.size();
    return done;
  }

  base::Result<> write_at(std::uint64_t offset, std::string_view bytes) override {
    return write(offset, bytes);
  }

  base::Result<> sync() override {
    const std::scoped_lock lock(files_.mutex_);
    if (auto done = begin("sync"); !done || files_.omits_sync(path_)) return done;
    file_->synced = file_->content;
    return {};
  }

  base::Result<> close() override {
    const std::scoped_lock lock(files_.mutex_);
    auto done = begin("close");
    closed_ = true;
    return done;
  }

 private:
  base::Result<> write(std::uint64_t offset, std::string_view bytes) {
    if (files_.before_append) files_.before_append(path_);
    const std::scoped_lock lock(files_.mutex_);
    if (auto done = begin("write"); !done) return done;
    const bool is_full = files_.is_full(path_);
    if (is_full) bytes = bytes.substr(0, bytes.size() / 2);
    std::string& content = file_->content;
    content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()));
    content.replace(offset, bytes.size(), bytes);
    if (is_full) return failed(ENOSPC, "write", path_);
    return {};
  }

  base::Result<> begin(const char* what) {
    if (auto done = files_.begin_call(what, path_); !done) return done;
    if (closed_ || boot_ != files_.boot_) return failed(EBADF, what, path_);
    return {};
  }

  MemoryFileSystem& files_;
  fs::path path_;
  std::shared_ptr<File> file_;
  std::uint64_t boot_;
  std::uint64_t appended_ = 0;
  bool closed_ = false;
};

base::Result<std::string> MemoryFileSystem::read(const fs::path& path, std::uint64_t bytes_max) {
  if (before_read) before_read(path);
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("read", path); !done) return done.error();
  const Node* node = find(path);
  if (node == nullptr) return failed(ENOENT, "open", path);
  if (!node->file) return failed(EISDIR, "read", path);
  if (node->file->content.size() > bytes_max) return failed(EFBIG, "read", path);
  const std::string& content = node->file->content;
  return calls_ == shortened_call_ ? content.substr(0, content.size() / 2) : content;
}

base::Result<std::unique_ptr<base::OutputFile>> MemoryFileSystem::create(const fs::path& path) {
  if (before_create) before_create(path);
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("create", path); !done) return done.error();
  if (auto done = in_directory("create", path); !done) return done.error();
  const Node* there = find(path);
  if (there != nullptr && !there->file) return failed(EISDIR, "create", path);
  if (there == nullptr) {
    if (is_full(path)) return failed(ENOSPC, "create", path);
    make({path.parent_path(), "creation of " + path.native(), {{path, Node{std::make_shared<File>()}}}});
    there = find(path);
  }
  there->file->content.clear();
  return std::make_unique<Output>(*this, path, there->file);
}

base::Result<> MemoryFileSystem::rename(const fs::path& from, const fs::path& to) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("rename", from); !done) return done;
  if (auto done = in_directory("rename", to); !done) return done;
  const Node* source = find(from);
  const Node* target = find(to);
  if (source == nullptr) return failed(ENOENT, "rename", from);
  // Spoor does not rename directories of its own state.
  if (!source->file || (target != nullptr && !target->file)) return failed(EISDIR, "rename", from);
  if (from == to) return {};
  make({to.parent_path(),
        fmt::format("rename of {} to {}", from.native(), to.native()),
        {{from, std::nullopt}, {to, *source}}});
  return {};
}

base::Result<> MemoryFileSystem::remove(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("remove", path); !done) return done;
  const Node* node = find(path);
  if (node == nullptr) return failed(ENOENT, "remove", path);
  if (!node->file) return failed(EISDIR, "remove", path);
  make({path.parent_path(), "removal of " + path.native(), {{path, std::nullopt}}});
  return {};
}

base::Result<> MemoryFileSystem::create_directory(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("create the directory", path); !done) return done;
  if (const Node* node = find(path)) {
    if (node->file) return failed(EEXIST, "create the directory", path);
    return {};
  }
  if (auto done = in_directory("create the directory", path); !done) return done;
  if (is_full(path)) return failed(ENOSPC, "create the directory", path);
  make({path.parent_path(), "creation of " + path.native(), {{path, Node{}}}});
  return {};
}

base::Result<> MemoryFileSystem::remove_directory(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("remove the directory", path); !done) return done;
  const Node* node = find(path);
  if (node == nullptr) return failed(ENOENT, "remove the directory", path);
  if (node->file) return failed(ENOTDIR, "remove the directory", path);
  const auto is_in_it = [&](const auto& entry) {
    return entry.first != path && entry.first.parent_path() == path;
  };
  if (std::ranges::any_of(live_, is_in_it)) return failed(ENOTEMPTY, "remove the directory", path);
  make({path.parent_path(), "removal of " + path.native(), {{path, std::nullopt}}});
  return {};
}

base::Result<> MemoryFileSystem::sync_file(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("sync", path); !done || omits_sync(path)) return done;
  const Node* node = find(path);
  if (node == nullptr) return failed(ENOENT, "sync", path);
  if (node->file) node->file->synced = node->file->content;
  return {};
}

base::Result<std::vector<std::string>> MemoryFileSystem::list_directory(const fs::path& path) {
  {
    const std::scoped_lock lock(mutex_);
    if (auto done = begin_call("list the directory", path); !done) return done.error();
    const Node* node = find(path);
    if (node == nullptr) return failed(ENOENT, "list the directory", path);
    if (node->file) return failed(ENOTDIR, "list the directory", path);
  }
  return names_in(path);
}

base::Result<> MemoryFileSystem::sync_directory(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("sync the directory", path); !done || omits_sync(path)) return done;
  const Node* node = find(path);
  if (node == nullptr) return failed(ENOENT, "sync the directory", path);
  if (node->file) return failed(ENOTDIR, "sync the directory", path);
  for (const Change& change : unsynced_) {
    if (change.directory == path) apply(durable_, change);
  }
  std::erase_if(unsynced_, [&](const Change& change) { return change.directory == path; });
  return {};
}

base::Result<base::DiskSpace> MemoryFileSystem::space(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  if (auto done = begin_call("find the free space of", path); !done) return done.error();
  base::DiskSpace space = disk_space;
  if (is_full(path)) space.free_bytes = 0;
  return space;
}

void MemoryFileSystem::make_directory(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  fs::path above;
  for (const fs::path& name : path) {
    above /= name;
    live_.try_emplace(above);
    durable_.try_emplace(above);
  }
}

void MemoryFileSystem::put(const fs::path& path, std::string content) {
  make_directory(path.parent_path());
  const std::scoped_lock lock(mutex_);
  const Node node{std::make_shared<File>(File{content, content})};
  live_[path] = node;
  durable_[path] = node;
}

std::optional<std::string> MemoryFileSystem::content(const fs::path& path) const {
  const std::scoped_lock lock(mutex_);
  const Node* node = find(path);
  if (node == nullptr || !node->file) return std::nullopt;
  return node->file->content;
}

bool MemoryFileSystem::exists(const fs::path& path) const {
  const std::scoped_lock lock(mutex_);
  return find(path) != nullptr;
}

std::vector<std::string> MemoryFileSystem::names_in(const fs::path& directory) const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, node] : live_) {
    if (path != directory && path.parent_path() == directory) names.push_back(path.filename().native());
  }
  return names;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::clone() const {
  const std::scoped_lock lock(mutex_);
  auto other = std::make_unique<MemoryFileSystem>();
  std::map<const File*, std::shared_ptr<File>> copies;  // a file can be in several places
  const auto copy = [&](const Node& node) {
    if (!node.file) return Node{};
    auto& its = copies[node.file.get()];
    if (!its) its = std::make_shared<File>(*node.file);
    return Node{its};
  };
  for (const auto& [path, node] : live_) other->live_[path] = copy(node);
  for (const auto& [path, node] : durable_) other->durable_[path] = copy(node);
  for (Change change : unsynced_) {
    for (auto& [path, node] : change.edits) {
      if (node) node = copy(*node);
    }
    other->unsynced_.push_back(std::move(change));
  }
  return other;
}

std::size_t MemoryFileSystem::calls() const {
  const std::scoped_lock lock(mutex_);
  return calls_;
}

void MemoryFileSystem::reset_calls() {
  const std::scoped_lock lock(mutex_);
  calls_ = 0;
  failing_calls_.clear();
  shortened_call_.reset();
  stopped_at_.reset();
}

void MemoryFileSystem::fail_call(std::size_t number, int error) {
  const std::scoped_lock lock(mutex_);
  failing_calls_[calls_ + number] = error;
}

void MemoryFileSystem::shorten_call(std::size_t number) {
  const std::scoped_lock lock(mutex_);
  shortened_call_ = calls_ + number;
}

void MemoryFileSystem::stop_at_call(std::size_t number) {
  const std::scoped_lock lock(mutex_);
  stopped_at_ = calls_ + number;
}

void MemoryFileSystem::fail_below(const fs::path& path, int error) {
  const std::scoped_lock lock(mutex_);
  failing_below_[path] = error;
}

void MemoryFileSystem::fill(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  full_.push_back(path);
}

void MemoryFileSystem::heal(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  failing_below_.erase(path);
  std::erase(full_, path);
}

void MemoryFileSystem::kill() {
  const std::scoped_lock lock(mutex_);
  forget_process();
}

void MemoryFileSystem::forget_process() {
  failing_calls_.clear();
  shortened_call_.reset();
  stopped_at_.reset();
  failing_below_.clear();
  full_.clear();
  ++boot_;
}

std::size_t MemoryFileSystem::crash(Fate all) {
  return crash([all](const std::string&) { return all; });
}

std::size_t MemoryFileSystem::crash(const Chooser& choose) {
  const std::scoped_lock lock(mutex_);
  std::size_t asked = unsynced_.size();
  for (const Change& change : unsynced_) {
    if (choose(change.what) == Fate::kept) apply(durable_, change);
  }
  unsynced_.clear();

  std::set<File*> settled;  // choose() is called once per file, even if it has several names
  for (auto entry = durable_.begin(); entry != durable_.end();) {
    const auto& [path, node] = *entry;
    const auto above = durable_.find(path.parent_path());
    if (above == durable_.end() || above->second.file) {
      entry = durable_.erase(entry);  // its directory was removed, and precedes it in the order
      continue;
    }
    if (node.file && node.file->content != node.file->synced && settled.insert(node.file.get()).second) {
      ++asked;
      const Fate fate = choose("content of " + path.native());
      if (fate == Fate::lost) node.file->content = node.file->synced;
      if (fate == Fate::torn || fate == Fate::reordered) {
        node.file->content = torn(node.file->content, node.file->synced, fate == Fate::torn);
      }
      node.file->synced = node.file->content;
    }
    ++entry;
  }
  live_ = durable_;
  forget_process();
  return asked;
}

void MemoryFileSystem::apply(Entries& entries, const Change& change) {
  for (const auto& [path, node] : change.edits) {
    if (node) {
      entries[path] = *node;
    } else {
      entries.erase(path);
    }
  }
}

void MemoryFileSystem::make(Change change) {
  apply(live_, change);
  unsynced_.push_back(std::move(change));
}

const MemoryFileSystem::Node* MemoryFileSystem::find(const fs::path& path) const {
  const auto found = live_.find(path);
  return found == live_.end() ? nullptr : &found->second;
}

// Whether the directory of `path` exists.
base::Result<> MemoryFileSystem::in_directory(const char* what, const fs::path& path) const {
  const Node* above = find(path.parent_path());
  if (above == nullptr) return failed(ENOENT, what, path);
  if (above->file) return failed(ENOTDIR, what, path);
  return {};
}

base::Result<> MemoryFileSystem::begin_call(const char* what, const fs::path& path) {
  ++calls_;
  if (stopped_at_ && calls_ >= *stopped_at_) return failed(EIO, what, path);
  if (const auto found = failing_calls_.find(calls_); found != failing_calls_.end()) {
    return failed(found->second, what, path);
  }
  for (const auto& [top, error] : failing_below_) {
    if (is_at_or_below(path, top)) return failed(error, what, path);
  }
  return {};
}

bool MemoryFileSystem::is_full(const fs::path& path) const {
  return std::any_of(full_.begin(), full_.end(),
                     [&](const fs::path& top) { return is_at_or_below(path, top); });
}

}  // namespace spoor::fakes
