// What a hostile or broken client may send a running spoord: it answers or closes, keeps its memory bounded,
// and serves others meanwhile.
#include <fmt/core.h>
#include <sys/resource.h>

#include <deque>
#include <thread>

#include "tests/daemon/spoord_fixture.h"
#include "tests/support/raw_client.h"
#include "tests/support/sanitizer.h"

namespace spoor::daemon {
namespace {

using support::RawClient;

constexpr std::uint64_t resident_bytes_max = std::uint64_t{96} << 20U;

class AbuseTest : public SpoordTest {
 protected:
  AbuseTest() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    config_.erase("limits");
    start();
  }

  std::string talk(const std::string& bytes) {
    RawClient client(port());
    client.send(bytes);
    client.end_sending();
    return client.receive_all();
  }

  void expect_well(unsigned attempts_max = 1) {
    // A slow build has much to answer.
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2), .attempts_max = attempts_max});
    const auto answer = peer::exchange(transport, {base::parse_endpoint(url_).value(), "POST", "/v1/marks",
                                                   "application/json", R"({"paths":["well"]})"});
    ASSERT_TRUE(answer) << answer.error().message << daemon_->log();
    EXPECT_EQ(answer->status, 200U) << daemon_->log();
    if (support::is_sanitized) return;
    EXPECT_LT(daemon_->peak_resident_bytes(), resident_bytes_max);
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string post(const std::string& headers, const std::string& body) {
  return "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "\r\n" + body;
}

std::string post(const std::string& body) {
  return post("Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}

TEST_F(AbuseTest, Garbage_IsRefusedOrDisconnected) {
  const std::string client_hello("\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03", 11);
  for (const std::string& garbage :
       {std::string(100'000, '\0'), std::string(100'000, '\n'), std::string(100'000, 'A'),
        client_hello + std::string(300, 'x'), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\nHost: h\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), std::string("GET / HTTP/1.1\r\nHost h\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n"),
        std::string("GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n"),
        std::string("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"),
        std::string("GET http:// HTTP/1.1\r\nHost: h\r\n\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")}) {
    const std::string answer = talk(garbage);
    EXPECT_EQ(answer.find(" 200 OK"), std::string::npos) << garbage.substr(0, 40) << " -> " << answer;
    EXPECT_EQ(answer.find(" 500 "), std::string::npos) << garbage.substr(0, 40) << " -> " << answer;
  }
  expect_well();
}

// Whatever could be read as one request by some and as two by others is none here.
TEST_F(AbuseTest, RequestSmuggling_AmbiguousBody_IsRefused) {
  const std::string hidden = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const std::string& headers :
       {std::string("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
        std::string("Content-Length: 4\r\nContent-Length: 40\r\n"), std::string("Content-Length: 4, 40\r\n"),
        std::string("Content-Length: +4\r\n"), std::string("Content-Length: 0x4\r\n"),
        std::string("Content-Length: -4\r\n"), std::string("Content-Length: 4 4\r\n"),
        std::string("Content-Length : 4\r\n"), std::string("Content-Length: 99999999999999999999\r\n"),
        std::string("Content-Length:\r\n"), std::string("Transfer-Encoding: xchunked\r\n"),
        std::string("Transfer-Encoding: chunked, gzip\r\n"),
        std::string("Transfer-Encoding: gzip, chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        std::string("Transfer-Encoding: \x0b"
                    "chunked\r\n"),
        std::string("Transfer-Encoding:\r\n")}) {
    const std::string answer = talk(post(headers, "0\r\n\r\n" + hidden));
    EXPECT_EQ(answer.rfind("HTTP/1.1 400 ", 0), 0U) << headers << " -> " << answer;
    EXPECT_EQ(count(answer, "HTTP/1.1 "), 1U) << headers << " -> " << answer;
  }
  for (const std::string& chunks :
       {std::string("zz\r\nabc\r\n0\r\n\r\n"), std::string("-1\r\nabc\r\n0\r\n\r\n"),
        std::string("ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"), std::string("3\r\nabcdef\r\n0\r\n\r\n"),
        std::string("0x3\r\nabc\r\n0\r\n\r\n"), std::string("3\nabc\n0\n\n"),
        std::string(" 3\r\nabc\r\n0\r\n\r\n")}) {
    const std::string answer = talk(post("Transfer-Encoding: chunked\r\n", chunks + hidden));
    EXPECT_EQ(answer.find("HTTP/1.1 200"), std::string::npos) << chunks << " -> " << answer;
    EXPECT_LE(count(answer, "HTTP/1.1 "), 1U) << chunks << " -> " << answer;
  }
  const std::string http10 =
      "POST /v1/marks HTTP/1.0\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(talk(http10 + hidden).rfind("HTTP/1.1 400 ", 0), 0U);
  expect_well();
}

TEST_F(AbuseTest, HostileJson_IsRefused) {
  std::string numbers = R"({"paths":[)" + std::string(100'000, '9') + "e" + std::string(1'000, '9') + "]}";
  std::string keys = "{";
  for (int i = 0; i < 100'000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  keys += "\"paths\":[]}";
  for (const std::string& body :
       {std::string(100'000, '['), std::string(8'000'000, '['),
        R"({"paths":)" + std::string(100'000, '[') + "}", std::string(100'000, '{'), numbers, keys,
        std::string("{\"paths\":[\"\xff\xfe\"]}"), std::string("{\"paths\":[\"\xc0\xaf\"]}"),
        std::string(R"({"paths":["\ud800"]})"), std::string(R"({"paths":["a\u0000b"]})"),
        std::string("{\"paths\":[\"a\nb\"]}"), std::string(R"({"paths":["a"],"paths":["b"]})"),
        std::string(R"({"paths":["a"]}{"paths":["b"]})"),
        "{\"paths\":[\"" + std::string(8'000'000, 'x') + "\"]}"}) {
    const std::string answer = talk(post(body));
    EXPECT_EQ(answer.rfind("HTTP/1.1 400 ", 0), 0U) << body.substr(0, 60) << " -> " << answer.substr(0, 300);
  }
  expect_well();
}

TEST_F(AbuseTest, LargestBodies_UseLittleMemory) {
  // A sanitizer takes a minute for the largest, and more memory.
  constexpr std::size_t bytes = std::size_t{support::is_sanitized ? 1 : 8} << 20U;
  std::string paths = R"({"paths":["a")";
  while (paths.size() + 6 < bytes) paths += R"(,"a")";
  paths += "]}";
  EXPECT_EQ(talk(post(paths)).rfind("HTTP/1.1 200 ", 0), 0U);
  for (const std::string element : {"7,", "\"\",", "[],", "{},", "[", ",", "\"", "true,"}) {
    std::string body = R"({"paths":[)";
    while (body.size() + 10 < bytes) body += element;
    EXPECT_EQ(talk(post(body + R"("a"]})")).rfind("HTTP/1.1 400 ", 0), 0U) << element;
    expect_well();
  }
  std::string lines;
  while (lines.size() + 2 < bytes) lines += "a\n";
  EXPECT_EQ(request("POST", "/v1/marks", lines, "text/plain").status, 200U);
  expect_well();
}

// A large request on each connection, which then stays.
TEST_F(AbuseTest, IdleConnections_KeepNoLargeBuffers) {
  std::string chunked =
      post("Transfer-Encoding: chunked\r\n", "fa00\r\n{\"paths\":[\"a\"]}" + std::string(63'985, ' '));
  chunked += "\r\n0\r\n\r\n";
  std::deque<RawClient> clients;
  for (int i = 0; i < 1'000; ++i) {
    clients.emplace_back(port());
    clients.back().send(chunked);
    ASSERT_NE(clients.back().receive_until("\"cycle\"").find(" 200 OK"), std::string::npos) << i;
  }
  expect_well();
}

// More than there is memory for at a time.
TEST_F(AbuseTest, ManyLargeBodies_BeyondTheMemoryLimit_AreRefused) {
  std::deque<RawClient> clients;
  const std::string nearly(std::size_t{7} << 20U, 'x');
  for (int i = 0; i < 24; ++i) {
    clients.emplace_back(port());
    clients.back().send(
        "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
        "8000000\r\n\r\n" +
        nearly);
    expect_well();
  }
  EXPECT_NE(clients.back().receive_all().find("\"code\":\"overloaded\""), std::string::npos);
}

TEST_F(AbuseTest, ConnectionStorm_DaemonStaysHealthy) {
  for (int i = 0; i < 3'000; ++i) {
    RawClient client(port());
    if (i % 3 == 0) client.send("GET /livez HT");
    if (i % 3 == 1) client.send("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  expect_well(100);  // those before may not all be gone
}

TEST_F(AbuseTest, HalfClosedConnection_GetsItsResponse) {
  EXPECT_NE(talk("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").find("HTTP/1.1 200 OK"), std::string::npos);
  EXPECT_NE(talk(post(R"({"paths":["half"]})")).find("HTTP/1.1 200 OK"), std::string::npos);
  talk(post("Content-Length: 100\r\n", "{\"paths\":["));  // the rest never comes
  expect_well();
}

// Requests without end, whose answers nobody reads.
TEST_F(AbuseTest, ClientReadsNoResponses_DaemonStaysHealthy) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::deque<RawClient> clients;
  for (int i = 0; i < (support::is_sanitized ? 20 : 200); ++i) {
    clients.emplace_back(port());
    clients.back().send(many);
  }
  expect_well();
}

// By a user who may write to the top of a drive.
TEST_F(AbuseTest, HugeSnapshotOnADrive_IsNotRead) {
  EXPECT_EQ(stop(), 0);
  const auto file = directory_ / "drive/.spoor/.tracker.bin";
  std::filesystem::resize_file(file, std::uintmax_t{1} << 30U);
  start();
  expect_well();
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 200U);
  EXPECT_EQ(std::filesystem::file_size(file.native() + ".corrupt"), std::uintmax_t{1} << 30U);
  EXPECT_LT(std::filesystem::file_size(file), std::uintmax_t{1} << 20U);
}

// Only the filters grow with the marks; a snapshot copies, packs and encodes them.
TEST_F(AbuseTest, WritersOfNewPaths_UseMemoryForTheFiltersOnly) {
  const auto write = [this](int writer) {
    for (int batch = 0; batch < (support::is_sanitized ? 2 : 12); ++batch) {
      std::string paths;
      for (int i = 0; i < 100'000; ++i)
        paths += fmt::format("writer-{}/{:08}/{}/a file with a long name {:012}\n", writer, batch, i / 50, i);
      EXPECT_EQ(request("POST", "/v1/marks", paths, "text/plain").status, 200U);
    }
  };
  std::thread other(write, 1);
  write(0);
  other.join();
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 200U);
  const std::uint64_t filters = get("/v1/status")["filters"]["bytes"];
  if (support::is_sanitized) return;
  EXPECT_LT(daemon_->peak_resident_bytes(), resident_bytes_max + 4 * filters);
}

}  // namespace
}  // namespace spoor::daemon
