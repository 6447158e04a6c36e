#include "tests/watch/tree_load.h"

#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

// Few names, so that most operations meet what earlier ones left. Many directories, so that a change that was
// missed is not found by the mark of a later one.
constexpr std::uint64_t directory_names = 20;
constexpr std::uint64_t file_names = 10;
// Some thousand operations a second: they must not fill the machine that the daemons run on.
constexpr std::chrono::microseconds pause{200};

std::string directory_name(std::uint64_t number) { return "d" + std::to_string(number); }
std::string random_directory(support::Random& random) {
  return directory_name(random.below(directory_names));
}
std::string random_file(support::Random& random) { return "f" + std::to_string(random.below(file_names)); }

}  // namespace

TreeLoad::TreeLoad(support::Random& random, fs::path top) : random_(random), top_(std::move(top)) {
  for (std::uint64_t number = 0; number < directory_names * directory_names; ++number)
    fs::create_directories(top_ / directory_name(number / directory_names) /
                           directory_name(number % directory_names));
}

void TreeLoad::start() {
  stopping_ = false;
  writer_ = std::thread([this, random = random_.fork()] { write(random); });
}

void TreeLoad::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  if (writer_.joinable()) writer_.join();
}

void TreeLoad::wait_for_more(std::size_t operations) {
  std::unique_lock lock(mutex_);
  const std::size_t wanted = operations_.size() + operations;
  changed_.wait(lock, [&] { return operations_.size() >= wanted; });
}

std::string TreeLoad::operations_on(const std::string& path) const {
  constexpr std::size_t lines_max = 20;
  const std::scoped_lock lock(mutex_);
  std::string found;
  std::size_t lines = 0;
  for (auto each = operations_.rbegin(); each != operations_.rend() && lines < lines_max; ++each) {
    if (each->find(path) == std::string::npos) continue;
    found.insert(0, std::to_string(operations_.rend() - each) + ": " + *each + '\n');
    ++lines;
  }
  return found;
}

std::size_t TreeLoad::count() const {
  const std::scoped_lock lock(mutex_);
  return operations_.size();
}

void TreeLoad::write(support::Random random) {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return;
    }
    change(random);
    std::this_thread::sleep_for(pause);
  }
}

void TreeLoad::change(support::Random& random) {
  switch (random.below(8)) {
    case 0:
      return make_directory(random);
    case 1:
      return rename(random);
    case 2:
    case 3:
      return remove(random);
    default:
      return write_file(random);
  }
}

fs::path TreeLoad::some_directory(support::Random& random) const {
  fs::path directory = top_;
  while (!random.one_in(6)) {
    const fs::path below = directory / random_directory(random);
    if (!fs::is_directory(below)) break;
    directory = below;
  }
  return directory;
}

fs::path TreeLoad::some_path(support::Random& random) const {
  const fs::path directory = some_directory(random);
  return directory / (random.one_in(4) ? random_directory(random) : random_file(random));
}

void TreeLoad::make_directory(support::Random& random) {
  const fs::path path = some_directory(random) / random_directory(random);
  std::error_code failed;
  fs::create_directory(path, failed);
  record("mkdir " + path.native());
}

void TreeLoad::write_file(support::Random& random) {
  const fs::path path = some_directory(random) / random_file(random);
  std::ofstream(path, random.one_in(2) ? std::ios::trunc : std::ios::app)
      << random.letters(random.below(500));
  record("write " + path.native());
}

void TreeLoad::rename(support::Random& random) {
  const fs::path from = some_path(random);
  const fs::path to = some_path(random);
  std::error_code failed;
  fs::rename(from, to, failed);
  if (!failed) record("rename " + from.native() + " to " + to.native());
}

void TreeLoad::remove(support::Random& random) {
  const fs::path path = some_path(random);
  std::error_code failed;
  // Mostly a file or an empty directory: most directories have to last.
  const bool is_removed = random.one_in(20) ? fs::remove_all(path, failed) > 0 : fs::remove(path, failed);
  if (is_removed) record("remove " + path.native());
}

void TreeLoad::record(const std::string& operation) {
  const std::scoped_lock lock(mutex_);
  operations_.push_back(operation);
  changed_.notify_all();
}

}  // namespace spoor::watch
