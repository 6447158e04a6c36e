// A publisher over the feed of a scanned node, with a sink that fails as servers do.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "publish/publisher.h"
#include "scanner/database/checksum_vfs.h"
#include "scanner/database/sqlite.h"
#include "tests/publish/model_sink.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"

namespace spoor::publish {

class PublisherTest : public scanner::ScannedNode {
 protected:
  explicit PublisherTest(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {
    options.file_feed = true;
  }

  // As after a restart of the process.
  base::Result<> publish(std::size_t batch = 3, std::chrono::seconds read_max = std::chrono::seconds(60)) {
    Publisher publisher({.name = "bus",
                         .cluster = "cluster",
                         .node = "node",
                         .data_dir = temp.path(),
                         .batch_events_max = batch,
                         .publishes_existing = publishes_existing_,
                         .read_max = read_max},
                        sink_, clock);
    auto published = publisher.publish_all([this] { return stops_; });
    figures_ = publisher.figures();
    return published;
  }

  // Files of the first scan, all of which is published: as these events.
  std::vector<std::string> begin_with(const std::vector<std::string>& files) {
    make_files(files);
    scan();
    return published_events();
  }

  void make_files(const std::vector<std::string>& files) {
    for (const std::string& file : files) make_file(file);
  }

  // Those of a success.
  std::vector<std::string> published_events(std::size_t batch = 3) {
    EXPECT_TRUE(publish(batch));
    return events();
  }

  void scan_marked(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) mark(path);
    scan();
  }

  // Many directories, each with a file.
  void make_many() {
    for (int i = 0; i < 50; ++i) make_file("a" + std::to_string(i) + "/f");
  }

  void go_on() {
    stops_ = false;
    sink_.fails_one_in = 0;
    sink_.on_publish = [] {};
  }

  void forget() { scanner::Consumers::open(temp.path())->forget(Publisher::consumer_of("bus")).value(); }

  // Of the cursor.
  void fail_commits(bool fail) {
    scanner::SqliteDatabase database(temp / "consumers.db", SQLITE_OPEN_READWRITE, scanner::checksum_vfs());
    database.exec("DROP TRIGGER IF EXISTS fail");
    if (fail)
      database.exec(
          "CREATE TRIGGER fail BEFORE INSERT ON progress BEGIN SELECT RAISE(ABORT, 'no commit'); END");
  }

  void expect_equal_copy() { EXPECT_EQ(sink_.copy.tree(), tree_of(drive())); }

  // "new dir a", of what was stored since the last call.
  std::vector<std::string> events() {
    std::vector<std::string> lines;
    for (const Event& event : sink_.stored) {
      std::string line = name_of(event.kind);
      if (event.kind != Event::Kind::reset && event.kind != Event::Kind::scan)
        line += (event.is_file ? " file " : " dir ") + event.path;
      lines.push_back(line);
    }
    sink_.stored.clear();
    return lines;
  }

  support::Random random_;
  ModelSink sink_{random_.fork()};
  scanner::SinkFigures figures_;
  bool publishes_existing_ = true;
  bool stops_ = false;
};

}  // namespace spoor::publish
