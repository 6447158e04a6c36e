#include "tests/publish/published_node.h"

#include <algorithm>
#include <csignal>
#include <fstream>

namespace spoor::publish {

using nlohmann::json;

PublishedNode::PublishedNode(bool file_feed) {
  configure("scan", {{"min_cycle_age", "1ms"}, {"file_feed", file_feed}});
}

void PublishedNode::configure(const std::string& section, const json& value) {
  const auto file = cluster_.config_of(node());
  json config = json::parse(std::ifstream(file));
  config[section] = value;
  std::ofstream(file) << config;
}

void PublishedNode::set_sinks(const std::vector<json>& sinks) {
  json named = json::array();
  for (json sink : sinks) {
    sink.update({{"name", "s" + std::to_string(named.size())}, {"batch", batch}});
    named.push_back(sink);
  }
  configure("publish", {{"interval", "100ms"}, {"sinks", named}});
}

void PublishedNode::mark(const std::string& kind, const std::string& paths) {
  if (paths.empty()) return;
  const auto marked = cluster_.spoor(node(), {"mark", "--kind", kind, "-0"}, paths);
  ASSERT_EQ(marked.code, 0) << marked.err;
}

std::uint64_t PublishedNode::scan(const std::vector<std::string>& options) {
  return cluster_.scan(node(), 0, options).at("scan");
}

void PublishedNode::change_and_scan(DriveChanges& changes, support::Random& random) {
  for (std::uint64_t count = random.between(2, 10); count > 0; --count) changes.change();
  mark("dir", changes.take_changed());
  mark("tree", changes.take_moved());
  changes.found_by(random.one_in(10) ? scan({"--full"}) : scan());
}

void PublishedNode::write_and_scan(const std::string& directory, int files) {
  std::filesystem::create_directories(drive() / directory);
  for (int each = 0; each < files; ++each)
    std::ofstream(drive() / directory / ("file" + std::to_string(each))) << each;
  mark("dir", directory + '\0');
  scan();
}

void PublishedNode::start() {
  publisher_ = std::make_unique<support::Daemon>(
      std::vector<std::string>{SPOOR_PUBLISH, "--config", cluster_.config_of(node()).native()});
}

void PublishedNode::kill() { publisher_.reset(); }

int PublishedNode::stop(int signal) {
  publisher_->signal(signal);
  const int code = publisher_->wait();
  publisher_.reset();
  return code;
}

bool PublishedNode::has_published_all() {
  const auto listed = cluster_.spoor(node(), {"changes", "--consumers", "--json"});
  const json consumers = json::parse(listed.out).at("consumers");
  return !consumers.empty() &&
         std::ranges::all_of(consumers, [](const json& each) { return each["behind"] == 0; });
}

support::CommandResult PublishedNode::publish_once() {
  kill();
  return support::run_command({SPOOR_PUBLISH, "--config", cluster_.config_of(node()).native(), "--once"});
}

void PublishedNode::forget() {
  const auto forgotten = cluster_.spoor(node(), {"changes", "--consumer", "publish:s0", "--forget"});
  const bool was_unknown = forgotten.err.find("there is no consumer") != std::string::npos;
  ASSERT_TRUE(forgotten.code == 0 || was_unknown) << forgotten.err;
}

}  // namespace spoor::publish
