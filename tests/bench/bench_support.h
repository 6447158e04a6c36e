// What the benchmarks share: the disk that they write to, figures that are taken often and told briefly, and
// how they end.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::bench {

// Parses the options and runs; returns the exit code. What `run` throws is printed.
int run_bench(CLI::App& program, int argc, char** argv, const std::function<void()>& run);

// Where a benchmark leaves its figures for machines: build/release/bench/NAME.json
std::filesystem::path results_file(std::string_view name);

// Makes $TMPDIR, or the build folder where it is not set, the place of every TempDirectory from here on,
// and names its file system: "ext4 on /dev/sda1". Throws where that is memory: syncing costs nothing there.
// Before any thread starts.
std::string use_disk();

// The file system of a folder, in the same words. Throws where it lies in memory.
std::string disk_of(const std::filesystem::path& folder);

// How often the device of this folder was read since the machine started; 0 where the kernel does not count
// that.
std::uint64_t disk_reads(const std::filesystem::path& folder);

// Nothing of any file system is in memory then. Throws without the rights of root.
void drop_caches();

// What some runs of the same thing came to. Not empty when asked.
class Figures {
 public:
  void add(double figure) {
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), figure), figure);
  }

  bool empty() const { return sorted_.empty(); }
  double median() const { return sorted_[sorted_.size() / 2]; }
  double min() const { return sorted_.front(); }
  double max() const { return sorted_.back(); }

 private:
  std::vector<double> sorted_;
};

// The value below which this share of them lies; they are put in order for it.
template <class Value>
Value quantile(std::vector<Value>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(static_cast<double>(values.size()) * share);
  return values[std::min(at, values.size() - 1)];
}

// Prints what was measured beside what is wanted, a line each.
class Targets {
 public:
  void at_most(const std::string& what, double figure, double bound) {
    print(what, figure, "at most", bound, figure <= bound);
  }
  void at_least(const std::string& what, double figure, double bound) {
    print(what, figure, "at least", bound, figure >= bound);
  }

 private:
  void print(const std::string& what, double figure, const char* relation, double bound, bool met) {
    if (is_first_) fmt::print("\n{:<56}{:>9}   {}\n", "targets", "measured", "wanted");
    is_first_ = false;
    fmt::print("{:<56}{:>9.2f}   {:<18}{}\n", what, figure, fmt::format("{} {}", relation, bound),
               met ? "met" : "missed");
  }

  bool is_first_ = true;
};

}  // namespace spoor::bench
