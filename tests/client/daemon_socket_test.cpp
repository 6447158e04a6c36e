// Responses that no proper daemon sends, and connections that end.
#include "client/daemon_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/listening_socket.h"
#include "tests/support/temp_directory.h"

namespace spoor::client {
namespace {

using std::chrono::minutes;
using std::chrono::steady_clock;
using testing::HasSubstr;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
const std::string not_now = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";

// Takes one connection after the other, and plays a list of responses on each: one whenever a header has
// arrived.
class PlayedServer {
 public:
  PlayedServer(const std::filesystem::path& path, std::vector<std::vector<std::string>> connections)
      : listening_(path), thread_([this, connections = std::move(connections)] {
          for (const auto& responses : connections) play(responses);
        }) {}

  PlayedServer(const PlayedServer&) = delete;
  PlayedServer& operator=(const PlayedServer&) = delete;
  ~PlayedServer() { ::shutdown(listening_.fd(), SHUT_RDWR); }  // no client may come

 private:
  void play(const std::vector<std::string>& responses) const {
    const int fd = ::accept(listening_.fd(), nullptr, nullptr);
    if (fd < 0) return;
    for (const std::string& response : responses) {
      std::string request;
      std::array<char, 4096> chunk{};
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::read(fd, chunk.data(), chunk.size());
        if (got <= 0) break;
        request.append(chunk.data(), static_cast<std::size_t>(got));
      }
      ::send(fd, response.data(), response.size(), MSG_NOSIGNAL);
    }
    ::close(fd);
  }

  const support::ListeningSocket listening_;
  std::jthread thread_;
};

class DaemonSocketTest : public testing::Test {
 protected:
  base::Result<peer::HttpResponse> request(const std::string& body = "a") {
    return request_of(socket_, body);
  }

  base::Result<peer::HttpResponse> request_of(DaemonSocket& socket, const std::string& body = "a") const {
    socket.set_deadline(steady_clock::now() + minutes(2));
    base::Endpoint daemon;
    daemon.unix_path = path_;
    return peer::exchange(socket, {daemon, "POST", "/v1/marks", "text/plain", body});
  }

  // The error of a request that is answered so, and then closed.
  base::Error error_after(const std::string& response) {
    const PlayedServer server(path_, {{response}});
    auto result = request();
    EXPECT_FALSE(result);
    ::unlink(path_.c_str());
    return result ? base::Error() : result.error();
  }

  support::TempDirectory directory_;
  const std::string path_ = directory_ / "socket";
  DaemonSocket socket_{path_, ""};
};

TEST_F(DaemonSocketTest, Connection_ServesSeveralRequests) {
  const PlayedServer server(path_, {{ok, ok}});
  EXPECT_EQ(request().value().body, "{}");
  EXPECT_EQ(request().value().status, 200U);
}

// By the daemon without a word, or after it has said so.
TEST_F(DaemonSocketTest, ClosedConnection_IsMadeAnew) {
  for (const std::string& response :
       {ok, std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")}) {
    const PlayedServer server(path_, {{response}, {response}});
    EXPECT_TRUE(request());
    EXPECT_TRUE(request());
    ::unlink(path_.c_str());
  }
}

TEST_F(DaemonSocketTest, ChunkedResponse_OrOneThatEndsWithTheConnection_IsWhole) {
  const PlayedServer server(path_,
                            {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
                             {"HTTP/1.0 503 No\r\n\r\nnot now"}});
  EXPECT_EQ(request().value().body, "{}");
  const auto response = request();
  EXPECT_EQ(response.value().status, 503U);
  EXPECT_EQ(response.value().body, "not now");
}

TEST_F(DaemonSocketTest, ResponseBeforeTheEndOfTheRequest_IsRead) {
  const PlayedServer server(path_,
                            {{"HTTP/1.1 413 Too large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"}});
  EXPECT_EQ(request(std::string(std::size_t{8} << 20U, 'a')).value().status, 413U);
}

TEST_F(DaemonSocketTest, InvalidResponses_AreErrors) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& response :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), head + "Content-Length: -1\r\n\r\n",
        head + "X: " + std::string(20'000, 'a'),
        // A line without an end.
        head + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(1 << 20U, 'a'),
        head + "Content-Length: 100000\r\n\r\n" + std::string(100'000, 'a'),
        // An interim response is none.
        "HTTP/1.1 100 Continue\r\n\r\n" + ok})
    EXPECT_EQ(error_after(response).code, std::errc::protocol_error) << response.substr(0, 100);
  for (const std::string& response : {std::string(), head + "Content-Length: 5\r\n\r\n{"})
    EXPECT_EQ(error_after(response).code, std::errc::connection_aborted) << response;
}

// What comes after a response is not taken for the response to the next request.
TEST_F(DaemonSocketTest, BytesAfterAResponse_EndTheConnection) {
  const PlayedServer server(path_, {{ok + not_now}, {ok}});
  EXPECT_EQ(request().value().status, 200U);
  EXPECT_EQ(request().value().status, 200U);
}

// Also if it arrives when the exchange is over.
TEST_F(DaemonSocketTest, BytesThatNoRequestAskedFor_EndTheConnection) {
  const support::ListeningSocket listening(path_);
  std::promise<void> is_over;
  std::promise<void> is_sent;
  const std::jthread server([&] {
    std::array<char, 4096> request{};
    const int first = ::accept(listening.fd(), nullptr, nullptr);
    EXPECT_GT(::read(first, request.data(), request.size()), 0);
    EXPECT_GT(::send(first, ok.data(), ok.size(), MSG_NOSIGNAL), 0);
    is_over.get_future().wait();
    EXPECT_GT(::send(first, ok.data(), ok.size(), MSG_NOSIGNAL), 0);
    is_sent.set_value();
    const int second = ::accept(listening.fd(), nullptr, nullptr);
    EXPECT_GT(::read(second, request.data(), request.size()), 0);
    EXPECT_GT(::send(second, not_now.data(), not_now.size(), MSG_NOSIGNAL), 0);
    ::close(first);
    ::close(second);
  });
  EXPECT_EQ(request().value().status, 200U);
  is_over.set_value();
  is_sent.get_future().wait();
  EXPECT_EQ(request().value().status, 503U);
}

// The descriptor of this process that is connected to the socket.
int connection_to(const std::string& socket) {
  constexpr int descriptors_max = 1024;
  for (int fd = 0; fd < descriptors_max; ++fd) {
    sockaddr_un peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        static_cast<const char*>(peer.sun_path) == socket)
      return fd;
  }
  return -1;
}

// The number of its descriptor is that of a file of the program, which has closed all of them as it became a
// daemon.
TEST_F(DaemonSocketTest, DescriptorThatIsNoLongerItsConnection_IsNeitherUsedNorClosed) {
  const auto inode_of = [](int fd) {
    struct stat status{};
    return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
  };
  for (const bool is_used_again : {true, false}) {
    const PlayedServer server(path_, {{ok}, {ok}});
    std::optional<DaemonSocket> client(std::in_place, path_, "");
    ASSERT_EQ(request_of(*client).value().status, 200U);
    const int connection = connection_to(path_);
    const base::Descriptor own(::memfd_create("of the program", MFD_CLOEXEC));
    ASSERT_EQ(::dup3(own.get(), connection, O_CLOEXEC), connection);
    if (is_used_again) {
      EXPECT_EQ(request_of(*client).value().status, 200U);
    } else {
      client.reset();
    }
    EXPECT_EQ(inode_of(connection), inode_of(own.get()));
    ::close(connection);
    ::unlink(path_.c_str());
  }
}

TEST_F(DaemonSocketTest, SuccessBeforeTheEndOfTheRequest_IsNone) {
  const PlayedServer server(path_, {{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"}});
  const auto response = request(std::string(std::size_t{8} << 20U, 'a'));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::protocol_error);
}

TEST_F(DaemonSocketTest, NoSocket_IsAnErrorThatNamesIt) {
  EXPECT_THAT(request().error().message, HasSubstr("cannot connect to " + path_));
}

}  // namespace
}  // namespace spoor::client
