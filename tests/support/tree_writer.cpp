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
  if (oddities_ == TreeOddities::all && random_.one_in(3)) {
    switch (random_.below(3)) {
      case 0:
        return make_link();
      case 1:
        return change_rights();
      default:
        return replace_by_another_type();
    }
  }
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
  for (const fs::path& path : changed_) lines += path.native() + '\0';
  changed_.clear();
  return lines;
}

// A link is asked about first: what it points to may be the link itself, and cannot be asked about then.
std::vector<fs::path> TreeWriter::all_directories() const {
  std::vector<fs::path> found;
  auto at = fs::recursive_directory_iterator(drive_);
  for (; at != fs::recursive_directory_iterator(); ++at) {
    const auto path = at->path().lexically_relative(drive_);
    if (path == ".spoor") {
      at.disable_recursion_pending();  // a daemon writes there at the same time
    } else if (!at->is_symlink() && at->is_directory()) {
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
  const fs::path path = some_directory() / new_name("d" + random_.letters(3));
  std::error_code taken;  // a file may have the name
  fs::create_directories(drive_ / path, taken);
  if (!taken) changed_.push_back(path);
}

void TreeWriter::write_file() {
  const fs::path path = some_directory() / new_name("f" + random_.letters(2));
  fs::create_directories((drive_ / path).parent_path());
  if (fs::is_symlink(drive_ / path) || fs::is_directory(drive_ / path)) return;
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
      if (!entry.is_symlink() && entry.is_directory()) continue;
      fs::remove(entry.path());
      break;
    }
  }
  changed_.push_back(path);
}

void TreeWriter::rename_something() {
  const fs::path from = some_directory();
  const fs::path to = some_directory() / new_name("r" + random_.letters(3));
  std::error_code into_itself;
  fs::rename(drive_ / from, drive_ / to, into_itself);
  if (into_itself) return;
  changed_.push_back(from);
  changed_.push_back(to);
}

// Every program of a pipeline must interpret these names in the same way.
std::string TreeWriter::new_name(const std::string& plain) {
  if (oddities_ == TreeOddities::none || random_.one_in(2)) return plain;
  static const std::vector<std::string> odd{
      "-rf ",  "line\nbreak",    "\n",         "Gr\xc3\xbcn", "\xff\xfe",    "deleting x",
      "#hash", ";semicolon",     " blank ",    "tab\t",       "\\#012",      "*deleting   y",
      "a\\nb", "quote\"'`$(id)", "\x1b[2J\r",  "[a-z]*?",     "~",           "%n",
      "{x,y}", "=> z",           "link -> to", "!",           "\xe2\x80\xae"};
  return random_.pick(odd) + (random_.one_in(2) ? plain.substr(0, 2) : "");
}

void TreeWriter::make_link() {
  const fs::path directory = some_directory();
  const fs::path path = directory / new_name("l" + random_.letters(2));
  fs::create_directories(drive_ / directory);
  std::error_code failed;  // the name may be taken
  if (random_.one_in(2)) {
    fs::create_symlink(new_name("target"), drive_ / path, failed);
    if (!failed) changed_.push_back(path);
    return;
  }
  for (const auto& entry : fs::directory_iterator(drive_ / directory, failed)) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    fs::create_hard_link(entry.path(), drive_ / path, failed);
    if (!failed) changed_.push_back(path);
    return;
  }
}

void TreeWriter::change_rights() {
  const fs::path directory = some_directory();
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(drive_ / directory, gone)) {
    if (entry.is_symlink() || entry.is_directory()) continue;
    fs::permissions(entry.path(), fs::perms::others_exec,
                    random_.one_in(2) ? fs::perm_options::add : fs::perm_options::remove);
    changed_.push_back(directory / entry.path().filename());
    return;
  }
}

void TreeWriter::replace_by_another_type() {
  const fs::path directory = some_directory();
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(drive_ / directory, gone)) {
    if (entry.path().filename() == ".spoor") continue;
    const bool was_directory = !entry.is_symlink() && entry.is_directory();
    const fs::path path = entry.path();
    fs::remove_all(path);
    if (!was_directory && random_.one_in(2)) {
      fs::create_directory(path);
      std::ofstream(path / "inside") << random_.letters(10);
    } else if (random_.one_in(2)) {
      fs::create_symlink("elsewhere", path);
    } else {
      std::ofstream(path) << random_.letters(20);
    }
    changed_.push_back(directory / path.filename());
    return;
  }
}

}  // namespace spoor::support
