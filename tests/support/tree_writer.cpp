#include "tests/support/tree_writer.h"

#include <fstream>
#include <system_error>

namespace spoor::support {

namespace fs = std::filesystem;

void TreeWriter::fill(int directories) {
  for (int i = 0; i < directories; ++i) make_directory();
  for (int i = 0; i < 3 * directories; ++i) write_file();
  changed_.clear();
}

void TreeWriter::change() {
  switch (random_.below(6)) {
    case 0:
      return make_directory();
    case 1:
      return remove_something();
    case 2:
      return rename_something();
    default:
      return write_file();
  }
}

std::string TreeWriter::take_changed() {
  std::string lines;
  for (const fs::path& path : changed_) lines += path.native() + '\n';
  changed_.clear();
  return lines;
}

std::vector<fs::path> TreeWriter::all_directories() const {
  std::vector<fs::path> found;
  auto at = fs::recursive_directory_iterator(drive_);
  for (; at != fs::recursive_directory_iterator(); ++at) {
    const auto path = at->path().lexically_relative(drive_);
    if (path == ".spoor") {
      at.disable_recursion_pending();  // a daemon writes there meanwhile
    } else if (at->is_directory()) {
      found.push_back(path);
    }
  }
  return found;
}

fs::path TreeWriter::some_directory() {
  const auto all = all_directories();
  return all.empty() || random_.one_in(20) ? fs::path("bucket") : random_.pick(all);
}

void TreeWriter::make_directory() {
  const fs::path path = some_directory() / ("d" + random_.letters(3));
  fs::create_directories(drive_ / path);
  changed_.push_back(path);
}

void TreeWriter::write_file() {
  const fs::path path = some_directory() / ("f" + random_.letters(2));
  fs::create_directories((drive_ / path).parent_path());
  if (fs::is_directory(drive_ / path)) return;
  std::ofstream(drive_ / path, std::ios::app) << random_.bytes(random_.below(2000));
  changed_.push_back(path);
}

void TreeWriter::remove_something() {
  const fs::path path = some_directory();
  if (random_.one_in(4)) {
    fs::remove_all(drive_ / path);
  } else {
    std::error_code gone;  // the top directory may have been removed, too
    for (const auto& entry : fs::directory_iterator(drive_ / path, gone)) {
      if (entry.is_directory()) continue;
      fs::remove(entry.path());
      break;
    }
  }
  changed_.push_back(path);
}

void TreeWriter::rename_something() {
  const fs::path from = some_directory();
  const fs::path to = some_directory() / ("r" + random_.letters(3));
  std::error_code into_itself;
  fs::rename(drive_ / from, drive_ / to, into_itself);
  if (into_itself) return;
  changed_.push_back(from);
  changed_.push_back(to);
}

}  // namespace spoor::support
