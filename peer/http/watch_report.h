// How spoor-watch, the daemon and a scan agree on what was watched: spoor-watch reports each drive to the
// daemon (POST /v1/watch); for a scan, the daemon makes a cookie on each drive, which spoor-watch reports
// once all changes before it are marked (POST /v1/watch/sync).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "peer/http/transport.h"

namespace spoor::peer {

// A time in which changes on a drive may have been missed: a scan that does not know this gap walks all of
// the drive.
struct DriveGap {
  std::string id = {};  // random; another one for each gap
  std::string reason = {};
  base::WallTime at = {};  // reported in whole seconds

  friend bool operator==(const DriveGap&, const DriveGap&) = default;
};

// Since spoor-watch started, but for the sizes at this moment.
struct WatchFigures {
  std::uint64_t events = 0;     // read from the kernel
  std::uint64_t marks = 0;      // acknowledged by the daemon
  std::uint64_t coalesced = 0;  // events whose mark another event of the batch made
  std::uint64_t gaps = 0;
  std::uint64_t queue_bytes_max = 0;  // of events in the kernel's queue, when a batch was read
  std::uint64_t pending_marks = 0;    // not acknowledged yet
  double lag_seconds = 0;             // how long the oldest of them has waited

  friend bool operator==(const WatchFigures&, const WatchFigures&) = default;
};

struct WatchedDrive {
  std::string drive = {};   // its path
  bool is_watched = false;  // whether the kernel's events of it are read
  std::string error = {};   // why not, or why its marks are not acknowledged; empty: all is well
  DriveGap gap = {};        // the last one
  std::string cookie = {};  // the last one that was seen, once all changes before it are marked; empty: none
  WatchFigures figures = {};

  friend bool operator==(const WatchedDrive&, const WatchedDrive&) = default;
};

nlohmann::ordered_json watched_drive_json(const WatchedDrive& drive);
// Fails with std::errc::bad_message for anything else than such an object.
base::Result<WatchedDrive> parse_watched_drive(std::string_view text);

// The name of a file that the daemon makes in `.spoor`, and removes again. Random: only what can list that
// directory, or reads the kernel's events, can report it.
std::string new_cookie();
bool is_cookie(std::string_view name);

struct SyncRequest {
  // Of the daemon that is asked: another one's watch of a drive with the same path proves nothing.
  std::string cluster = {};
  std::string node = {};
  std::vector<std::string> drives = {};
  std::chrono::milliseconds timeout{0};
};
base::Result<SyncRequest> parse_sync_request(std::string_view text);

// Whether spoor-watch has marked all that changed on the drive before the request.
struct DriveSync {
  std::string drive = {};
  std::string error = {};  // why that is not known; empty: it has
  DriveGap gap = {};       // the last one, if it has
};
nlohmann::ordered_json sync_json(const std::vector<DriveSync>& drives);

// Asks the daemon, and waits. One result for each drive, in the same order: where the daemon does not
// respond, or does not know the drive, that is the error. `transport` waits longer than the request.
std::vector<DriveSync> synchronise(Transport& transport, const base::Endpoint& daemon,
                                   const SyncRequest& request);

}  // namespace spoor::peer
