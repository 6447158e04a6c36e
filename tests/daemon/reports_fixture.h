// The reports on a scan database that a test fills by hand.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/api/reports.h"
#include "scanner/store/usage_database.h"
#include "tests/daemon/stepped_node.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {

class ReportsTest : public SteppedTest {
 protected:
  // A scan that found directories of this name, each of one file more than the one before.
  void store(const std::vector<std::string>& names) {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    scanner::DirectoryStore& directories = transaction->directories();
    const std::int64_t drive = transaction->add_drive("/drive").id;
    scanner::DirectoryRow root;
    root.id = directories.new_id();
    std::uint64_t files = 0;
    for (const std::string& name : names) {
      scanner::DirectoryRow row;
      row.name = name;
      row.id = directories.new_id();
      row.subtree.files = ++files;
      root.add_child(row);
      directories.put(root.id, row);
    }
    directories.put(scanner::DirectoryStore::parent_of_root(drive), root);
    scanner::ScanRecord record;
    record.walked_everything = true;
    record.reason = reason_;
    transaction->set_peers(peers_);
    transaction->commit(record);
  }

  void begin_usage(std::map<std::string, std::string> query) {
    begin([this](const HttpRequest& request) { return reports_.usage(request, "anyone"); }, std::move(query));
  }
  void begin_scans(std::map<std::string, std::string> query, const std::string& caller = "anyone") {
    begin([this, caller](const HttpRequest& request) { return reports_.scans(request, caller); },
          std::move(query));
  }

  void begin_changes(std::map<std::string, std::string> query, std::function<bool()> is_abandoned = {}) {
    begin(
        [this, is_abandoned = std::move(is_abandoned)](HttpRequest& request) {
          request.is_abandoned = is_abandoned;
          return reports_.changes(request, "anyone");
        },
        std::move(query));
  }

  void begin_start_scan() {
    begin([this](const HttpRequest& request) { return waits_.start_scan(request, "anyone"); }, {});
  }

  HttpResponse usage(std::map<std::string, std::string> query = {}) {
    begin_usage(std::move(query));
    return finish();
  }
  HttpResponse scans(std::map<std::string, std::string> query = {}) {
    begin_scans(std::move(query));
    return finish();
  }

  HttpResponse changes(std::map<std::string, std::string> query) {
    begin_changes(std::move(query));
    return finish();
  }

  HttpResponse unread(const std::string& body) {
    begin(
        [this, body](HttpRequest& request) {
          request.body = body;
          return reports_.unread(request, "anyone");
        },
        {});
    return finish();
  }

  static void expect_problem(const HttpResponse& response, unsigned status, const std::string& code) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(nlohmann::json::parse(response.body)["code"], code) << response.body;
  }

  // Until all that was begun has its answer; gives the last one.
  HttpResponse finish() {
    context_.restart();
    context_.run();
    return answers_.empty() ? HttpResponse() : answers_.back();
  }

  const support::TempDirectory directory_;
  const std::filesystem::path file_ = directory_ / "scan.db";
  std::string reason_ = "it is the first scan";
  tracker::PeerBook peers_;
  ScanWaits waits_{file_, pool_, clock_, timers_};
  Reports reports_{file_, pool_, clock_, waits_};
  std::vector<HttpResponse> answers_;  // in the order in which they came

 private:
  template <class Route>
  void begin(Route route, std::map<std::string, std::string> query) {
    HttpRequest& request = requests_.emplace_back();
    request.query = std::move(query);
    boost::asio::co_spawn(context_, route(request),
                          [this](const std::exception_ptr& failure, HttpResponse response) {
                            rethrow(failure);
                            answers_.push_back(std::move(response));
                          });
  }

  std::deque<HttpRequest> requests_;
};

}  // namespace spoor::daemon
