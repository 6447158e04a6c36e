#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "config/check.h"
#include "config/settings.h"
#include "config/units.h"
#include "tracker/filter/bloom_filter.h"

namespace spoor::config {
namespace {

// Checks every setting that has a range in settings.h; ignores all other settings.
class RangeCheck {
 public:
  explicit RangeCheck(Problems& problems) : problems_(problems) {}

  template <class T>
  void operator()(std::string_view key, Whole<T> setting) {
    if (setting.value >= setting.least && setting.value <= setting.most) return;
    refuse(key, fmt::format("{}", setting.value),
           fmt::format("a whole number from {} to {}", setting.least, setting.most));
  }

  template <class T>
  void operator()(std::string_view key, ByteSize<T> setting) {
    if (setting.bytes >= setting.least && setting.bytes <= setting.most) return;
    refuse(key, in_quotes(format_size(setting.bytes)),
           fmt::format("a size from {} to {}", format_size(setting.least), format_size(setting.most)));
  }

  template <class T>
  void operator()(std::string_view key, Duration<T> setting) {
    if (setting.value >= setting.least && setting.value <= duration_most) return;
    const bool negative = setting.value < std::chrono::milliseconds::zero();
    refuse(key,
           negative ? fmt::format("{}ms", setting.value.count()) : in_quotes(format_duration(setting.value)),
           fmt::format("a duration from {} to {}", format_duration(setting.least),
                       format_duration(duration_most)));
  }

  void operator()(std::string_view key, const std::optional<Etcd>& etcd) {
    if (!etcd) return;
    visit_parts(*etcd, [&](std::string_view name, const auto& part) {
      (*this)(fmt::format("{}.{}", key, name), part);
    });
  }

  void operator()(std::string_view key, const std::vector<Sink>& sinks) {
    for (std::size_t at = 0; at < sinks.size(); ++at) {
      visit_parts(sinks[at], [&](std::string_view name, const auto& part) {
        (*this)(fmt::format("{}[{}].{}", key, at, name), part);
      });
    }
  }

  template <class T>
  void operator()(std::string_view /*key*/, const T& /*setting*/) {}

 private:
  void refuse(std::string_view key, std::string_view value, std::string_view expected) {
    add(problems_, std::string(key), fmt::format("{} is out of range: expected {}", value, expected));
  }

  Problems& problems_;
};

// The bounds of responses to peers and of snapshots are in peer/ and tracker/.
constexpr double filter_bytes_max = 128.0 * 1024 * 1024;

void check_memory(const Config::Tracker& settings, Problems& problems) {
  const auto shape = tracker::BloomShape::for_items(settings.items, settings.fp_rate);
  const double one = std::ceil(static_cast<double>(shape.bits) / 8);
  if (one > filter_bytes_max) {
    add(problems, "tracker.items",
        fmt::format("{} at fp_rate {} need a filter of over 128MiB per cycle, which "
                    "is too large for a response to a peer; lower it",
                    settings.items, settings.fp_rate));
    return;
  }
  const double needed = (static_cast<double>(settings.history) + 1) * one;
  if (needed <= static_cast<double>(settings.memory_limit_bytes)) return;
  constexpr double mebibyte = 1024.0 * 1024;
  add(problems, "tracker.memory_limit",
      fmt::format("{} is too small: {} cycles of {} items at fp_rate {} need at least "
                  "{:.0f}MiB; raise it, or lower tracker.items or tracker.history",
                  in_quotes(format_size(settings.memory_limit_bytes)), settings.history + 1, settings.items,
                  settings.fp_rate, std::ceil(needed / mebibyte)));
}

}  // namespace

void check_ranges(const Config& config, Problems& problems) {
  const std::size_t before = problems.size();
  visit_settings(config, RangeCheck(problems));
  if (!(config.tracker.fp_rate > 0 && config.tracker.fp_rate < 1)) {
    add(problems, "tracker.fp_rate",
        fmt::format("{} is out of range: expected a number between 0 and 1, such as 0.1",
                    config.tracker.fp_rate));
  }
  // check_memory() requires numbers within their ranges.
  if (problems.size() == before) check_memory(config.tracker, problems);
}

}  // namespace spoor::config
