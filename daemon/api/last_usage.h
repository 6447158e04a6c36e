#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>

#include "scanner/store/usage_query.h"

namespace spoor::daemon {

// The totals of directories that nodes reported last, for the time when they do not respond.
//
// Memory is bounded: of each report the first directories are kept, and the reports that came in last. Not
// thread-safe.
class LastUsage {
 public:
  static constexpr std::size_t bytes_max = std::size_t{16} << 20U;  // of all, about
  static constexpr std::size_t entries_each = 200;
  static constexpr std::size_t path_bytes_each = std::size_t{64} << 10U;

  // What was asked for: the same answer to it is replaced.
  struct Query {
    std::string path;
    std::uint64_t depth = 1;
    bool owners = false;

    friend bool operator==(const Query&, const Query&) = default;
  };

  struct Report {
    std::string node;
    std::string url;  // where it responded
    scanner::Usage usage;
  };

  // Without growth, and without directories that exist no longer.
  void keep(const Query& query, Report report);

  // Null if none is kept. With the owners if they are wanted, and as deep, if there is such a report. The
  // pointer is valid until the next keep().
  const Report* of_node(std::string_view node, const Query& query) const;
  const Report* of_url(std::string_view url, const Query& query) const;

 private:
  struct Kept {
    Query query;
    Report report;
    std::size_t bytes = 0;
  };

  const Report* find(const Query& query, const std::function<bool(const Report&)>& is_of) const;

  std::list<Kept> newest_first_;
  std::size_t bytes_ = 0;
};

}  // namespace spoor::daemon
