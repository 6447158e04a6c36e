#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "base/endpoint.h"
#include "base/error.h"
#include "config/config.h"
#include "peer/http/transport.h"
#include "watch/drive_watch.h"

namespace spoor::watch {

// Sends marks and reports to the daemon of this node, marks in one request or several. After a failure, it
// chooses the endpoint again, and reads the credentials: a Unix socket may exist by then.
//
// Not thread-safe. `config` must outlive it.
class MarkSender final : public MarkSink {
 public:
  explicit MarkSender(const config::Config& config) : config_(config) {}

  base::Result<> send(const std::filesystem::path& drive, const EventMarks& marks) override;
  base::Result<> report(const peer::WatchedDrive& drive) override;

 private:
  base::Result<> connect();
  base::Result<> send_all(const EventMarks& marks);
  base::Result<> send(const char* kind, const std::set<std::string>& paths);
  base::Result<> send_batch(const char* kind, std::string batch);

  const config::Config& config_;
  std::string drive_;  // that the marks name; empty: none
  base::Endpoint daemon_;
  std::unique_ptr<peer::Transport> transport_;  // null: not connected
};

}  // namespace spoor::watch
