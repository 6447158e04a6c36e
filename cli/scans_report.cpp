#include "cli/scans_report.h"

#include <fmt/core.h>

#include "base/iso_time.h"
#include "base/printable.h"
#include "cli/format.h"
#include "tracker/paths/path.h"

namespace spoor::cli {
namespace {

std::string false_positives_text(const scanner::ScanRecord& scan) {
  const auto rate = scan.false_positive_rate();
  return rate ? fmt::format("{} ({})", with_commas(*scan.false_positives()), percent(*rate)) : "-";
}

}  // namespace

std::string scans_text(const std::vector<scanner::ScanRecord>& scans) {
  if (scans.empty()) return "no scan is known\n";
  Table table({"scan", "started", "took", "mode", "walked", "skipped", "changed", "new", "deleted", "errors",
               "missed", "false positives", "files", "size", "remarks"},
              {1, 3, 14});
  for (const scanner::ScanRecord& scan : scans) {
    const scanner::WalkFigures& figures = scan.figures;
    std::string remarks = scan.partial ? "partial" : "";
    if (!scan.reason.empty()) remarks += (remarks.empty() ? "" : "; ") + base::printable(scan.reason);
    table.add({std::to_string(scan.id), base::iso_time(scan.started_at), human_duration(scan.took()),
               scan.walked_everything ? "full" : "incremental", with_commas(figures.dirs_walked),
               with_commas(figures.dirs_skipped), with_commas(figures.dirs_changed),
               with_commas(figures.dirs_new), with_commas(figures.dirs_deleted), with_commas(scan.errors),
               with_commas(figures.missed), false_positives_text(scan), with_commas(scan.files),
               human_bytes(scan.bytes), remarks});
  }
  return table.to_string();
}

}  // namespace spoor::cli
