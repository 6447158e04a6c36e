#pragma once

#include <fmt/format.h>

#include <string>

namespace spoor::bench {

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
