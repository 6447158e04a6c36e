#include "tests/publish/drive_changes.h"

#include <fstream>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace spoor::publish {

namespace fs = std::filesystem;

DriveChanges::DriveChanges(support::Random& random, fs::path drive)
    : random_(random), drive_(std::move(drive)), writer_(random_, drive_, support::TreeOddities::all) {
  writer_.fill(15);
  changed_ = writer_.take_changed();
}

void DriveChanges::change() {
  switch (random_.below(10)) {
    case 0:
      return write_many_files();
    case 1:
      return make_deep_tree();
    case 2:
      return replace_by_new_directory();
    case 3:
      return swap_directories();
    case 4:
    case 5:
      return append_to_file();
    default:
      return writer_.change();
  }
}

std::string DriveChanges::take_changed() {
  changed_ += writer_.take_changed();
  return std::exchange(changed_, {});
}

void DriveChanges::found_by(std::uint64_t scan) {
  for (auto& [path, written] : written_) {
    if (written.scan == 0) written.scan = scan;
  }
}

// A file that was changed or moved in another way since then is left out.
std::string DriveChanges::missing_events(const TreeCopy& copy) const {
  std::string missing;
  for (const auto& [path, written] : written_) {
    std::error_code gone;
    const auto status = fs::symlink_status(drive_ / path, gone);
    if (gone || !fs::is_regular_file(status) || fs::last_write_time(drive_ / path) != written.at ||
        fs::file_size(drive_ / path) != written.size)
      continue;
    if (copy.last_scan(path) < written.scan) missing += base::printable(path) + '\n';
  }
  return missing;
}

// A directory, or a regular file with one name; empty: there is none.
fs::path DriveChanges::some_entry(bool is_file) {
  std::vector<fs::path> found;
  for (auto at = fs::recursive_directory_iterator(drive_); at != fs::recursive_directory_iterator(); ++at) {
    const fs::path path = at->path().lexically_relative(drive_);
    if (path == ".spoor") {
      at.disable_recursion_pending();
    } else if (!at->is_symlink() &&
               (is_file ? at->is_regular_file() && at->hard_link_count() == 1 : at->is_directory())) {
      found.push_back(path);
    }
  }
  return found.empty() ? fs::path() : random_.pick(found);
}

void DriveChanges::write(const fs::path& path) {
  std::ofstream(drive_ / path, std::ios::app) << random_.letters(random_.between(1, 50));
  changed_ += path.native() + '\0';
  written_[path.native()] = {fs::last_write_time(drive_ / path), fs::file_size(drive_ / path)};
}

void DriveChanges::append_to_file() {
  const fs::path path = some_entry(true);
  if (!path.empty()) write(path);
}

void DriveChanges::write_many_files() {
  const fs::path directory = some_entry(false) / ("many" + random_.letters(3));
  fs::create_directory(drive_ / directory);
  for (std::uint64_t count = random_.between(10, 40); count > 0; --count)
    write(directory / ("m" + random_.letters(4)));
}

void DriveChanges::make_deep_tree() {
  fs::path path = some_entry(false);
  for (std::uint64_t depth = random_.between(3, 12); depth > 0; --depth) {
    path /= "deep" + random_.letters(1, 'c');
    std::error_code taken;
    fs::create_directory(drive_ / path, taken);
    if (taken) return;
    changed_ += path.native() + '\0';
    if (random_.one_in(2)) write(path / ("w" + random_.letters(4)));
  }
}

void DriveChanges::replace_by_new_directory() {
  const fs::path path = some_entry(false);
  if (path.empty()) return;
  const fs::path replacement = drive_ / ("replacement" + random_.letters(5));
  fs::create_directories(replacement / ("sub" + random_.letters(1, 'c')));
  std::ofstream(replacement / ("n" + random_.letters(1, 'c'))) << "new";
  fs::remove_all(drive_ / path);
  fs::rename(replacement, drive_ / path);
  changed_ += path.native() + '\0';
}

void DriveChanges::swap_directories() {
  const fs::path one = some_entry(false);
  const fs::path other = some_entry(false);
  const auto is_within = [](const fs::path& path, const fs::path& directory) {
    return (path / "").native().starts_with((directory / "").native());
  };
  if (one.empty() || is_within(one, other) || is_within(other, one)) return;
  const fs::path aside = drive_ / ("aside" + random_.letters(5));
  fs::rename(drive_ / one, aside);
  fs::rename(drive_ / other, drive_ / one);
  fs::rename(aside, drive_ / other);
  moved_ += one.native() + '\0' + other.native() + '\0';
}

}  // namespace spoor::publish
