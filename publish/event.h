// The events that spoor-publish publishes, and their form as CloudEvents 1.0.2
// (https://github.com/cloudevents/spec/tree/v1.0.2). docs/publish.md describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scanner/feed/change_feed.h"
#include "scanner/store/scan_record.h"

namespace spoor::publish {

// Whose change feed it is.
struct Source {
  std::string cluster;
  std::string node;
  std::string feed;  // scanner::feed_id()
};

struct Event {
  enum class Kind {
    created,   // a directory or a file that is new
    changed,   // the entries of a directory, or a file
    replaced,  // deleted, with all below it, and there again: what is below it follows, as new
    deleted,   // with all below it
    reset,     // what changed is no longer known: everything that exists follows, as new
    scan,      // all changes that this scan and those before it found are published
  };

  Kind kind = Kind::changed;
  bool is_file = false;
  bool is_file_entry = false;  // of the feed, which tells a file in a directory's place twice
  bool is_deeper = false;      // something below the path changed, whose own path is too long for an event
  std::string path = {};       // "" is the root
  std::uint64_t scan = 0;      // the last one that found it
  // The same for the same change, however often it is published; another one for another change, also of the
  // same path.
  std::string id = {};
  std::string totals = {};  // of a scan: its figures as JSON members, each after a comma
};

// `start_over_id`: that of scanner::ConsumerProgress, or empty.
Event make_event(const Source& source, const scanner::FeedEntry& entry, const std::string& start_over_id);
Event make_reset(const Source& source, std::uint64_t scan, const std::string& start_over_id);
// `record`: of the scan, if it is kept.
Event make_scan_end(const Source& source, std::uint64_t scan,
                    const std::optional<scanner::ScanRecord>& record, const std::string& start_over_id);

// "new", "changed", "replaced", "deleted", "reset" or "scan"; the type of the event is "spoor." and this.
const char* name_of(Event::Kind kind);

// A hash that no writer can make collide, in hexadecimal.
std::string digest(std::string_view bytes);

// The JSON of the event, in one line.
std::string to_json(const Source& source, const Event& event);

}  // namespace spoor::publish
