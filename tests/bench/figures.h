// Figures that are taken often and told briefly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spoor::bench {

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

}  // namespace spoor::bench
