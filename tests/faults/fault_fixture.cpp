#include "tests/faults/fault_fixture.h"

#include <thread>
#include <utility>

namespace spoor::faults {

FaultTest::FaultTest() {
  config_["listen"].push_back({{"unix", directory_ / "sock"}});  // where `spoor` finds it
  // Small filters, many cycles: none may be dropped while its paths are still asked for.
  config_["tracker"] = {{"items", 10'000}, {"history", 1024}};
  config_["scan"] = {{"min_cycle_age", "1ms"}};
}

fs::path FaultTest::drive(std::size_t index) const {
  return config_["drives"].at(index).get<std::filesystem::path>();
}

void FaultTest::add_drive() {
  const auto path = directory_ / ("drive" + std::to_string(config_["drives"].size()));
  fs::create_directory(path);
  config_["drives"].push_back(path);
}

void FaultTest::kill_hard() {
  daemon_->signal(SIGKILL);
  EXPECT_EQ(daemon_->wait(), 128 + SIGKILL) << daemon_->log();
}

support::CommandResult FaultTest::spoor(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {SPOOR, "--config", config_file()});
  return support::run_command(arguments);
}

nlohmann::json FaultTest::spoor_json(std::vector<std::string> arguments) const {
  arguments.emplace_back("--json");
  const auto result = spoor(std::move(arguments));
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

bool FaultTest::mark(const std::string& path) {
  return request("POST", "/v1/marks", nlohmann::json{{"paths", {path}}}.dump()).status == 200;
}

void FaultTest::wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

void FaultTest::wait_until_ready() {
  wait_until([this] { return request("GET", "/readyz").status == 200; });
}

void FaultTest::expect_kept(const Load& load, std::size_t from) {
  daemon::KeptConnection connection(port());
  const auto is_dirty = [&](const std::string& path) -> bool {
    const auto answer = connection.send("GET", "/v1/dirty?path=" + path);
    return nlohmann::json::parse(answer.value().body)["dirty"];
  };
  std::size_t lost = 0;
  for (std::size_t i = from; i < load.acknowledged().size(); ++i) {
    const SentMark& mark = load.acknowledged()[i];
    if (is_dirty(mark.witness())) continue;
    if (++lost <= 3) ADD_FAILURE() << (mark.is_tree ? "tree " : "") << mark.path << " was acknowledged";
  }
  EXPECT_EQ(lost, 0U) << "of " << load.acknowledged().size() - from << '\n' << daemon_->log();
  EXPECT_FALSE(is_dirty("never/marked")) << "else the answers above say nothing";
  EXPECT_GE(get("/v1/status")["cycle"]["current"].get<std::uint64_t>(), load.newest_cycle());
}

void FaultTest::expect_kill_loses_nothing(Load& load) {
  const std::string before = instance();
  kill_hard();
  load.stop();
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  expect_kept(load);
}

void FaultTest::expect_journal_error() {
  const auto ready = request("GET", "/readyz");
  EXPECT_EQ(ready.status, 503U);
  const auto reasons = nlohmann::json::parse(ready.body)["reasons"];
  ASSERT_FALSE(reasons.empty());
  EXPECT_EQ(reasons.back().get<std::string>().rfind("journal: ", 0), 0U) << reasons;
  const auto journal = get("/v1/status")["journal"];
  EXPECT_EQ(journal["ok"], false);
  EXPECT_TRUE(journal["error"].is_string());
  EXPECT_EQ(request("GET", "/livez").status, 200U) << "a restart would not help";
}

void FaultTest::expect_healthy() {
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
  const auto journal = get("/v1/status")["journal"];
  EXPECT_EQ(journal["ok"], true);
  EXPECT_TRUE(journal["error"].is_null());
}

}  // namespace spoor::faults
