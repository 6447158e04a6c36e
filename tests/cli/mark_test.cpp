// `spoor mark` at a daemon that stops to acknowledge.
#include <gmock/gmock.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/support/canned_server.h"
#include "tests/support/process.h"

namespace spoor::cli {
namespace {

using nlohmann::json;
using support::CannedServer;

// Marks that are sent in several batches, and the requests that are acknowledged: those of the first batch.
struct Marks {
  const char* name;
  std::vector<std::string> arguments;
  std::string input;
  int first_request;
  int end_request;
  std::size_t paths;  // of each of these requests
};

std::vector<Marks> several_batches() {
  const std::vector<std::string> paths(2'000, std::string(200, 'a'));
  return {{"Kinds", {"--from", "rsync"}, ">f+++++++++ a/file\ncd+++++++++ b/\n", 0, 1, 1},
          {"Bytes", paths, "", 0, 1, 1'304},
          // After a failure, half of the batch is sent; both halves once there are no more paths.
          {"BytesAfterAFailure", paths, "", 1, 3, 652}};
}

class LaterBatchTest : public testing::TestWithParam<std::tuple<Marks, bool>> {};

TEST_P(LaterBatchTest, NotAcknowledged_IsAFailure) {
  const auto& [marks, hangs] = GetParam();
  std::atomic<int> requests = 0;
  const CannedServer daemon([&](const std::string&, const CannedServer::Connection& connection) {
    const int request = requests++;
    if (request >= marks.first_request && request < marks.end_request) {
      connection.send(
          CannedServer::response(json{{"marked", marks.paths}, {"ignored", 0}, {"cycle", 1}}.dump()));
    } else if (hangs) {
      connection.wait_until_closed();
    }
  });
  std::vector<std::string> command{SPOOR, "--url", daemon.url(), "mark", "--timeout", "1", "--json"};
  command.insert(command.end(), marks.arguments.begin(), marks.arguments.end());
  const auto marked = support::run_command(command, marks.input);
  EXPECT_EQ(marked.code, 1);
  EXPECT_THAT(marked.err, testing::HasSubstr("not marked: "));
  // Fewer on a machine so busy that the time was over before an acknowledgement.
  EXPECT_LE(json::parse(marked.out)["marked"],
            static_cast<std::size_t>(marks.end_request - marks.first_request) * marks.paths);
}

INSTANTIATE_TEST_SUITE_P(Batches, LaterBatchTest,
                         testing::Combine(testing::ValuesIn(several_batches()), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "_hangs" : "_closes");
                         });

}  // namespace
}  // namespace spoor::cli
