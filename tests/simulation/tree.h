// The directories of a node in a simulation. All nodes have the same names and change them independently. A
// directory's content is a number that grows with every change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spoor::simulation {

class Tree {
 public:
  static constexpr std::size_t fan_out = 6;
  static constexpr std::size_t count = 1 + fan_out + fan_out * fan_out + fan_out * fan_out * fan_out;
  static constexpr std::size_t root = 0;

  // Breadth-first: the children of a directory have consecutive numbers.
  static std::size_t first_child(std::size_t directory) { return directory * fan_out + 1; }
  static bool has_children(std::size_t directory) { return first_child(directory) < count; }
  static std::size_t parent(std::size_t directory) { return (directory - 1) / fan_out; }

  static const std::string& name(std::size_t directory) { return names()[directory].name; }
  static const std::string& path(std::size_t directory) { return names()[directory].path; }

  std::uint64_t version(std::size_t directory) const { return versions_[directory]; }
  std::uint64_t change(std::size_t directory) { return ++versions_[directory]; }

 private:
  struct Names {
    std::string name;
    std::string path;
  };

  static const std::vector<Names>& names() {
    static const std::vector<Names> all = [] {
      std::vector<Names> made(count);
      for (std::size_t at = 1; at < count; ++at) {
        made[at].name = "d" + std::to_string((at - 1) % fan_out);
        const std::string& above = made[parent(at)].path;
        made[at].path = above.empty() ? made[at].name : above + '/' + made[at].name;
      }
      return made;
    }();
    return all;
  }

  std::array<std::uint64_t, count> versions_{};
};

}  // namespace spoor::simulation
