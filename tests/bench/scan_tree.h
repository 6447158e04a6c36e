// A tree as an object store keeps one: buckets, prefixes, and a directory of a few files for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace spoor::bench {

// Paths are computed from an object's number and never kept: what this process holds of memory counts as
// that of the programs it starts (ru_maxrss).
class ScanTree {
 public:
  static constexpr std::size_t files_max = 5;

  // Takes over the tree that an earlier run kept in `folder` if it has so many objects of so many files, at
  // least one, else makes it, which takes a while. Throws where the folder holds anything else.
  ScanTree(std::filesystem::path folder, std::uint64_t objects, std::size_t files, bool keep);
  ScanTree(const ScanTree&) = delete;
  ScanTree& operator=(const ScanTree&) = delete;
  // Removes the tree, unless it is to be kept.
  ~ScanTree();

  std::filesystem::path drive() const { return folder_ / "drive"; }
  std::uint64_t objects() const { return objects_; }
  std::size_t files() const { return files_; }  // of each object
  std::vector<std::string> buckets() const;

  // Some objects' paths below the drive, none twice, all over the tree.
  std::vector<std::string> pick(std::uint64_t count, std::mt19937_64& random) const;

  // Appends to a file of each of these objects.
  void change(const std::vector<std::string>& paths) const;

 private:
  std::filesystem::path marker() const { return folder_ / "scan-bench-tree"; }
  void make() const;
  void make_bucket(std::uint64_t bucket) const;

  const std::filesystem::path folder_;
  const std::uint64_t objects_;
  const std::size_t files_;
  const bool keep_;
};

enum class Depth { only_these, all_below };

// The least that any walker has to do: lists each of these directories of the tree, and looks at each file in
// it, by two threads, and keeps nothing of what it sees. Gives the number of directories. Throws
// std::system_error.
std::uint64_t visit(const std::filesystem::path& tree, const std::vector<std::string>& paths, Depth depth);

}  // namespace spoor::bench
