// What comes over a connection, to the whole API: in one piece and in many, from a friend and from a
// stranger.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/api/api.h"
#include "daemon/api/page.h"
#include "daemon/process/task.h"
#include "tests/fakes/answering_transport.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/memory_file_system.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using fuzz::require;
using nlohmann::json;

struct Answer {
  unsigned status = 0;
  std::string body;
};

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end != text.data(), "there is a number where one belongs");
  return value;
}

// Of the connection's bytes the next answer.
Answer take_answer(std::string_view& bytes) {
  constexpr std::string_view version = "HTTP/1.1 ";
  constexpr std::string_view length_field = "\r\nContent-Length: ";
  require(bytes.starts_with(version), "an answer begins where the one before ends");
  const std::size_t header_end = bytes.find("\r\n\r\n");
  require(header_end != std::string_view::npos, "a header has an end");
  const std::string_view header = bytes.substr(0, header_end + 2);
  Answer answer;
  answer.status = static_cast<unsigned>(number(header.substr(version.size())));
  bytes.remove_prefix(header_end + 4);
  const std::size_t length_at = header.find(length_field);
  if (length_at == std::string_view::npos) return answer;
  const std::size_t length = number(header.substr(length_at + length_field.size()));
  if (bytes.empty() || bytes.starts_with(version)) return answer;  // to HEAD
  require(bytes.size() >= length, "a body is as long as its header says");
  answer.body = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return answer;
}

// What anyone may read: that the daemon runs, and the files of the page, which are part of the program.
bool is_public(std::string_view body) {
  return body.empty() || body == R"({"status":"ok"})" ||
         std::ranges::any_of(page_files(),
                             [&](const PageFile& file) { return body == file.plain || body == file.gzip; });
}

void check(const Answer& answer, bool is_stranger) {
  require(answer.status < 500 || answer.status == 503, "no request makes the daemon fail");
  if (answer.status >= 400 && !answer.body.empty()) {
    const json problem = json::parse(answer.body, nullptr, false);
    require(problem.is_object() && problem["status"] == answer.status && problem["code"].is_string(),
            "a problem says what it is");
  }
  if (is_stranger && answer.status < 300) require(is_public(answer.body), "a stranger learns nothing");
}

// A node whose disk is memory, without peers.
class Node {
 public:
  Node() {
    for (const char* directory : {"/data", "/drive"}) files_.make_directory(directory);
    tracker::Persistence::Options options;
    options.data_dir = "/data";
    options.drives = {"/drive"};
    options.owner = node_;
    options.durability = tracker::Durability::memory;
    auto started = tracker::Persistence::start(files_, clock_, std::move(options));
    require(started.has_value(), "the node starts");
    persistence_ = *std::move(started);
    snapshot_scheduler_ = std::make_unique<SnapshotScheduler>(context_, pool_, *persistence_, clock_, timers_,
                                                              std::chrono::minutes(5));
    group_commit_ =
        std::make_unique<GroupCommit>(context_, pool_, *persistence_, *snapshot_scheduler_, clock_, timers_);
    introduction_ = std::make_unique<Introduction>(context_, pool_, *persistence_, node_.node,
                                                   std::chrono::hours(12), clock_, timers_);
    introduction_->open_alone();
    peers_ = std::make_unique<PeerWatch>(context_, pool_, PeerWatch::Options{.cluster = "default"},
                                         *introduction_, clock_, timers_);
    retirement_ = std::make_unique<Retirement>(
        pool_,
        Retirement::Options{
            .node = node_, .rules_digest = rules_.digest(), .own_unread = [] { return peer::UnreadFrom(); }},
        *persistence_, *introduction_, *peers_, nullptr);
    intake_ = std::make_unique<MarkIntake>(context_, pool_, *persistence_, rules_, tracker::DrivePaths(),
                                           *group_commit_, *introduction_, clock_);
    routes_ =
        std::make_unique<NodeRoutes>(NodeRoutes::Parts{{node_, "0", *persistence_, *snapshot_scheduler_,
                                                        *group_commit_, *peers_, nullptr, scans_, watched_},
                                                       1,
                                                       rules_.digest(),
                                                       *introduction_,
                                                       *retirement_,
                                                       *intake_,
                                                       metrics_,
                                                       pool_},
                                     clock_);
    gather_ = std::make_unique<ScanGather>(
        context_,
        ScanGather::Options{.node = node_,
                            .instance = persistence_->tracker().state().instance,
                            .self = base::parse_endpoint("http://n1:7420").value(),
                            .dns = nullptr,
                            .members_digest = 0,
                            .make_transport = fakes::transport_maker(nobody_, nobody_)},
        [this](const HttpRequest& request) { return routes_->cycle(request); }, *peers_, nullptr, clock_);
    api_ = std::make_unique<Api>(context_, node_.node,
                                 Api::Services{*intake_, *routes_, reports_, scan_waits_, *gather_}, access_,
                                 clock_);
    sessions_->service.handle = [this](const HttpRequest& request) {
      return metrics_.measure(request, route_of(request.path), api_->handle(request));
    };
    sessions_->service.admit = [this](const HttpRequest& request) { return api_->admit(request); };
    sessions_->limits.body_bytes_max = std::uint64_t{64} << 10U;
  }

  // What a client gets who sends this in pieces of so many bytes, and then no more.
  std::vector<Answer> serve(std::string_view input, std::size_t piece_bytes, bool is_stranger) {
    asio::local::stream_protocol::socket client(context_);
    asio::local::stream_protocol::socket server(context_);
    asio::local::connect_pair(client, server);
    client.non_blocking(true);
    const Caller caller{.is_trusted = !is_stranger};
    auto place = std::make_unique<HttpPlace>(sessions_->places, caller, server.native_handle());
    auto session = std::make_shared<HttpSession>(sessions_, std::move(place),
                                                 HttpSession::Socket(std::move(server)), caller, nullptr);
    bool is_over = false;
    asio::co_spawn(context_, session->run(), [&](const std::exception_ptr& failure) {
      rethrow(failure);
      is_over = true;
    });
    context_.restart();
    std::string received;
    while (!input.empty() && !is_over) {
      boost::system::error_code error;
      const auto piece = input.substr(0, piece_bytes);
      input.remove_prefix(client.send(asio::buffer(piece), 0, error));
      if (error && error != asio::error::would_block) break;  // it has hung up
      context_.poll();
      drain(client, received);
    }
    boost::system::error_code ignored;
    client.shutdown(asio::socket_base::shutdown_send, ignored);
    while (!is_over) {
      require(context_.run_one() > 0, "a connection ends when its client does");
      drain(client, received);
    }
    drain(client, received);
    std::vector<Answer> answers;
    for (std::string_view rest = received; !rest.empty();) {
      answers.push_back(take_answer(rest));
      check(answers.back(), is_stranger);
      if (answers.back().status < 200)
        answers.pop_back();  // whether to go on is asked only where nothing came
    }
    session.reset();
    const HttpPlaces& places = sessions_->places;
    require(totals_->open == 0 && totals_->served == 0 && totals_->answer_bytes == 0,
            "connections and responses are given back");
    require(places.body_bytes() == 0, "bodies are given back");
    return answers;
  }

 private:
  static void drain(asio::local::stream_protocol::socket& client, std::string& received) {
    std::array<char, 4096> bytes{};
    boost::system::error_code error;
    while (const std::size_t size = client.receive(asio::buffer(bytes), 0, error)) {
      received.append(bytes.data(), size);
    }
  }

  fakes::MemoryFileSystem files_;
  fakes::ManualClock clock_;
  asio::io_context context_{1};
  asio::thread_pool pool_{1};
  const tracker::NamespaceRules rules_;
  std::unique_ptr<tracker::Persistence> persistence_;
  SystemTimers timers_{context_};
  std::unique_ptr<SnapshotScheduler> snapshot_scheduler_;
  std::unique_ptr<GroupCommit> group_commit_;
  std::unique_ptr<Introduction> introduction_;
  std::unique_ptr<PeerWatch> peers_;
  std::unique_ptr<Retirement> retirement_;
  ScanWaits scan_waits_{"/nowhere/scan.db", pool_, clock_, timers_};
  Reports reports_{"/nowhere/scan.db", pool_, clock_, scan_waits_};
  ScanWatch scans_{context_, pool_, "/nowhere/scan.db"};
  const HttpServer server_{context_, {}};
  Metrics metrics_{server_, scans_, clock_};
  const std::shared_ptr<const Access> access_ = std::make_shared<const Access>(Access::load({}).value());
  const tracker::NodeIdentity node_{"default", "n1"};
  std::unique_ptr<MarkIntake> intake_;
  WatchedDrives watched_{
      timers_, clock_, {"/drive"}, {"/drive"}, [this](const auto& drive, const auto& name, auto done) {
        snapshot_scheduler_->touch(drive, name, std::move(done));
      }};
  fakes::FakeCluster nobody_{clock_};
  std::unique_ptr<NodeRoutes> routes_;
  std::unique_ptr<ScanGather> gather_;
  std::unique_ptr<Api> api_;
  const std::shared_ptr<HttpTotals> totals_ = std::make_shared<HttpTotals>();
  const std::shared_ptr<HttpSessions> sessions_ = std::make_shared<HttpSessions>(totals_);
};

// The first byte: who sends it, and in pieces of how many bytes.
void check(std::string_view input) {
  if (input.empty()) return;
  static Node node;
  const auto choice = static_cast<unsigned char>(input.front());
  const bool is_stranger = choice >= 0x80;
  const std::size_t piece_bytes = 1 + choice % 0x80;
  input.remove_prefix(1);
  const auto whole = node.serve(input, input.size() + 1, is_stranger);
  const auto pieces = node.serve(input, piece_bytes, is_stranger);
  // One of them may end earlier: a connection goes on after a refusal where all of the body is there already.
  for (std::size_t i = 0; i < std::min(whole.size(), pieces.size()); ++i) {
    require(whole[i].status == pieces[i].status, "how a request is cut does not change its answer");
  }
}

}  // namespace
}  // namespace spoor::daemon

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spoor::daemon::check(spoor::fuzz::text_of(data, size));
  return 0;
}
