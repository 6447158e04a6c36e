// Reads directories that nobody marked, to find changes that nobody marked (docs/scanner.md, "Audit").
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/directory_reader.h"
#include "scanner/directory_store.h"
#include "scanner/pace.h"
#include "scanner/stored_tree.h"
#include "tracker/mark_set.h"
#include "tracker/namespace_rules.h"

namespace spoor::scanner {

// What an audit works with. All that is referred to must outlive it.
struct AuditContext {
  const DirectoryReader& reader;
  const tracker::MarkSet& marks;
  const tracker::NamespaceRules& rules;
  DirectoryStore& store;
  Pace& pace;
  std::stop_token stop = {};
  // When the scan began to gather: what changed shortly before may still be marked.
  base::WallTime started_at = {};
  const base::Clock& clock;
  base::SteadyTime until = {};  // no directory is read any more
  // Called when it goes on for longer than until then; may be empty.
  base::SteadyTime long_from = {};
  std::function<void()> lasts = {};
};

struct AuditedDrive {
  std::int64_t id = 0;
  std::filesystem::path path;
};

// Compares what is stored of directories with what is there. Changes nothing: what differs is for the walk to
// read again.
//
// Not thread-safe.
class Audit {
 public:
  // Changes so short before the scan are not called missed: their marks may be on the way.
  static constexpr std::chrono::minutes grace{1};
  static constexpr std::size_t missed_kept_max = 1000;
  static constexpr std::size_t differing_max = 1'000'000;

  struct Outcome {
    std::uint64_t visited = 0;              // marked ones included, which the walk reads
    std::uint64_t audited = 0;              // read
    std::uint64_t missed = 0;               // differ, though nobody marked them
    std::vector<std::string> missed_paths;  // logical; the first ones
    std::set<std::string> differing;        // logical paths of what is to be read again, missed or not
    std::optional<std::string> last_path;   // visited on this drive; nothing for none
    bool is_at_end = false;                 // of the drive
  };

  explicit Audit(const AuditContext& context) : context_(context) {}

  // Visits at most `count` directories behind `after`, or from the root on, until the time is over. A drive
  // that can't be opened, or is another one now, has come to its end: that is for the walk. Fails where the
  // database does, or with Errc::interrupted.
  base::Result<Outcome> run(const AuditedDrive& drive, const std::optional<std::string>& after,
                            std::uint64_t count);

 private:
  bool is_walked(std::string_view path) const;
  bool has_time();
  base::Result<> visit(const DirectoryHandle& top, const DirectoryRow& row, const std::string& path);
  void differs(const std::string& path, std::int64_t changed_ns);
  std::int64_t when_it_went(const DirectoryHandle& top, std::string_view path) const;

  const AuditContext& context_;
  bool is_long_ = false;
  Outcome outcome_;
};

// Marks of these paths alone.
tracker::MarkSet marks_of(const std::set<std::string>& paths);

}  // namespace spoor::scanner
