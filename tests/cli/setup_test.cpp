// What `spoor setup` writes and sends; tests/cluster/setup_test.sh makes whole clusters with it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "base/base64.h"
#include "base/clock.h"
#include "cli/setup/authority.h"
#include "cli/setup/invitation.h"
#include "cli/setup/node_files.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/raw_client.h"
#include "tests/support/temp_directory.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class SetupTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).native();
  }

  std::string openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    const auto result = support::run_command(arguments);
    return result.out + result.err;
  }

  const base::WallTime now_ = base::SystemClock().wall_now();
  support::TempDirectory directory_;
  KeyAndCertificate authority_ = make_authority("photos", now_);
  std::string key_ = make_key();
};

class AuthorityTest : public SetupTest {};

TEST_F(AuthorityTest, Certificate_IsForTheNodeAsServerAndClientAlone) {
  const auto certificate = issue(authority_, make_request(key_), {"node-1_b", "10.0.0.1"}, now_);
  ASSERT_TRUE(certificate);
  const std::string ca = write("ca.pem", authority_.certificate);
  const std::string file = write("node.pem", *certificate);
  for (const std::string purpose : {"sslserver", "sslclient"}) {
    EXPECT_THAT(openssl({"verify", "-x509_strict", "-CAfile", ca, "-purpose", purpose, "-verify_hostname",
                         "node-1_b.spoor.internal", "-verify_ip", "10.0.0.1", file}),
                HasSubstr("node.pem: OK"));
  }
  EXPECT_THAT(openssl({"verify", "-CAfile", ca, "-verify_ip", "10.0.0.2", file}),
              HasSubstr("IP address mismatch"));
  EXPECT_THAT(openssl({"x509", "-in", file, "-noout", "-ext", "basicConstraints"}), HasSubstr("CA:FALSE"));
  const auto day = std::chrono::hours(24);
  EXPECT_THAT(openssl({"verify", "-CAfile", ca, "-attime",
                       std::to_string(std::chrono::system_clock::to_time_t(
                           std::chrono::time_point_cast<std::chrono::seconds>(now_ + 731 * day))),
                       file}),
              HasSubstr("has expired"));
}

TEST_F(AuthorityTest, RequestThatItsKeyHasNotSigned_IsRefused) {
  std::string request = make_request(key_);
  const auto body = request.find('\n') + 1;
  auto bytes = *base::from_base64([&] {
    std::string lines = request.substr(body, request.find("-----END") - body);
    std::erase(lines, '\n');
    return lines;
  }());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto forged = "-----BEGIN CERTIFICATE REQUEST-----\n" + base::to_base64(bytes) +
                      "\n-----END CERTIFICATE REQUEST-----\n";
  for (const std::string& text : {forged, std::string(), std::string("no request"), authority_.certificate})
    EXPECT_FALSE(issue(authority_, text, {"node1", "10.0.0.1"}, now_)) << text;
  EXPECT_FALSE(issue({key_, authority_.certificate}, request, {"node1", "10.0.0.1"}, now_));
}

// The first label of a certificate's name identifies a node.
TEST_F(AuthorityTest, NameThatIsNoLabel_IsRefused) {
  for (const std::string& name : {std::string("node1.b"), std::string("."), std::string("-x"), std::string(),
                                  std::string(64, 'x'), std::string("a,DNS:b"), std::string("a\nb")})
    EXPECT_FALSE(issue(authority_, make_request(key_), {name, "10.0.0.1"}, now_)) << name;
}

class InvitationTest : public SetupTest {
 protected:
  InvitationTest() {
    const auto certificate = issue(authority_, make_request(key_), {"node1", support::own_loopback()}, now_);
    invitation_ = {.address = support::own_loopback(),
                   .port = 0,
                   .certificate = write("node.pem", *certificate),
                   .key = write("node.key", key_),
                   .token = make_join_token(*fingerprint_of(*certificate))};
  }

  // Invites on a thread; returns the port.
  std::uint16_t start(const std::function<base::Result<ordered_json>(const ordered_json&)>& admit) {
    std::promise<std::uint16_t> listening;
    auto port = listening.get_future();
    inviting_ = std::async(std::launch::async, [this, admit, listening = std::move(listening)]() mutable {
      return invite(invitation_,
                    {.listening = [&](std::uint16_t at) { listening.set_value(at); },
                     .admit = [&](const ordered_json& request, const std::string&) { return admit(request); },
                     .refused = [](const std::string&, const std::string&) {}});
    });
    return port.get();
  }

  base::Result<ordered_json> join_with(std::uint16_t port, const JoinToken& token, bool* is_sent = nullptr) {
    return join(support::own_loopback(), port, token, [&](const std::string& own_address) {
      if (is_sent != nullptr) *is_sent = true;
      return ordered_json{{"address", own_address}};
    });
  }

  Invitation invitation_;
  std::future<base::Result<>> inviting_;
};

TEST_F(InvitationTest, Token_IsReadAsItIsPrinted) {
  const std::string text = to_text(invitation_.token);
  EXPECT_EQ(text.size(), 64U);
  EXPECT_EQ(*parse_join_token(text), invitation_.token);
  for (const std::string& wrong : {text + "A", text.substr(1), std::string(), std::string(64, '!')})
    EXPECT_FALSE(parse_join_token(wrong)) << wrong;
}

TEST_F(InvitationTest, WrongTokens_AreRefusedAndTheRightOneIsAdmitted) {
  int admitted = 0;
  const auto port = start([&](const ordered_json& request) -> base::Result<ordered_json> {
    ++admitted;
    return ordered_json{{"of", request.at("address")}};
  });
  JoinToken guessed = invitation_.token;
  guessed.secret.back() = static_cast<char>(guessed.secret.back() ^ 1);
  EXPECT_THAT(join_with(port, guessed).error().message, HasSubstr("refuses: it has another token"));
  JoinToken elsewhere = invitation_.token;
  elsewhere.fingerprint.back() = static_cast<char>(elsewhere.fingerprint.back() ^ 1);
  bool is_sent = false;
  EXPECT_THAT(join_with(port, elsewhere, &is_sent).error().message, HasSubstr("nothing was sent to it"));
  EXPECT_FALSE(is_sent);
  EXPECT_EQ(admitted, 0);
  const auto response = join_with(port, invitation_.token);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->at("of"), "127.0.0.1");
  EXPECT_TRUE(inviting_.get());
}

TEST_F(InvitationTest, NodeThatKeepsItsConnection_HasUsedTheToken) {
  namespace asio = boost::asio;
  int admitted = 0;
  const auto port = start([&](const ordered_json&) -> base::Result<ordered_json> {
    ++admitted;
    return ordered_json::object();
  });
  asio::io_context context;
  asio::ssl::context tls(asio::ssl::context::tlsv13_client);
  asio::ssl::stream<asio::ip::tcp::socket> first(context, tls);
  first.next_layer().connect({asio::ip::make_address(support::own_loopback()), port});
  first.handshake(asio::ssl::stream_base::client);
  const std::string line = ordered_json{{"secret", base::to_base64(invitation_.token.secret)}}.dump() + '\n';
  asio::write(first, asio::buffer(line));
  std::string response;
  asio::read_until(first, asio::dynamic_buffer(response), '\n');
  EXPECT_EQ(response, "{}\n");
  EXPECT_FALSE(join_with(port, invitation_.token));
  EXPECT_TRUE(inviting_.get());
  EXPECT_EQ(admitted, 1);
}

TEST_F(InvitationTest, RefusedNode_LearnsWhyAndMayTryAgain) {
  bool is_first = true;
  const auto port = start([&](const ordered_json&) -> base::Result<ordered_json> {
    if (std::exchange(is_first, false))
      return base::Error(std::make_error_code(std::errc::invalid_argument), "no such name");
    return ordered_json::object();
  });
  EXPECT_THAT(join_with(port, invitation_.token).error().message, HasSubstr("no such name"));
  EXPECT_TRUE(join_with(port, invitation_.token));
  EXPECT_TRUE(inviting_.get());
}

TEST(AddressTest, OfAnotherMachineOrOfNone_IsNotOwn) {
  for (const char* address : {"127.0.0.1", "::1", "0.0.0.0", "fe80::1", "224.0.0.1", "node1", ""})
    EXPECT_FALSE(is_of_network(address)) << address;
  EXPECT_TRUE(is_of_network("10.0.0.1"));
  EXPECT_TRUE(is_own_address("127.0.0.1"));
  EXPECT_FALSE(is_own_address("192.0.2.1"));  // RFC 5737
}

TEST_F(InvitationTest, ConnectionsThatAreNotOfNodes_DoNotEndIt) {
  const auto port =
      start([](const ordered_json&) -> base::Result<ordered_json> { return ordered_json::object(); });
  support::RawClient silent(port);  // is open while the others are served
  support::RawClient plain(port);
  plain.send("GET / HTTP/1.1\r\n\r\n");
  for (const std::string& line : {std::string(line_bytes_max + 1, 'x'), std::string("[1]\n"),
                                  std::string("{\"secret\":7}\n"), std::string(1000, '[') + "\n"}) {
    const auto result =
        support::run_command({"timeout", "20", "openssl", "s_client", "-quiet", "-no_ign_eof", "-connect",
                              support::own_loopback() + ":" + std::to_string(port)},
                             line);
    EXPECT_THAT(result.out, testing::AnyOf("", HasSubstr("error")));
  }
  EXPECT_TRUE(join_with(port, invitation_.token));
  EXPECT_TRUE(inviting_.get());
}

class NodeFilesTest : public SetupTest {
 protected:
  const fs::path file_ = directory_ / "spoor.json";
  const ordered_json json_ = {{"node", {{"name", "node1"}}}, {"drives", {directory_.path().native()}}};
};

TEST_F(NodeFilesTest, ConfigurationOfThePackage_IsReplacedAndKept) {
  EXPECT_FALSE(is_configured(file_));
  write("spoor.json", "// as installed\n{\"node\": {\"name\": \"node1\"}, \"drives\": [\"/srv/data\"]}\n");
  EXPECT_FALSE(is_configured(file_));
  ASSERT_TRUE(write_config(file_, json_));
  EXPECT_TRUE(is_configured(file_));
  EXPECT_THAT(text_of(file_.native() + ".old"), HasSubstr("as installed"));
  struct stat info{};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
}

TEST_F(NodeFilesTest, InvalidConfiguration_ChangesNothing) {
  write("spoor.json", "{\"node\": {\"name\": \"other\"}}");
  auto invalid = json_;
  invalid["drives"] = {"relative"};
  EXPECT_FALSE(write_config(file_, invalid));
  invalid["drives"] = {"/a\xff"};
  EXPECT_THAT(write_config(file_, invalid).error().message, HasSubstr("not UTF-8"));
  EXPECT_EQ(text_of(file_), "{\"node\": {\"name\": \"other\"}}");
  EXPECT_FALSE(fs::exists(file_.native() + ".old"));
}

TEST_F(NodeFilesTest, FormerConfigurations_AreAllKept) {
  for (const std::string name : {"a", "b", "c"}) {
    ordered_json json = json_;
    json["node"]["name"] = name;
    ASSERT_TRUE(write_config(file_, json));
  }
  EXPECT_THAT(text_of(file_.native() + ".old"), HasSubstr("\"a\""));
  EXPECT_THAT(text_of(file_.native() + ".old.2"), HasSubstr("\"b\""));
}

TEST_F(NodeFilesTest, EditedFile_KeepsItsModeAndTheLinkToIt) {
  ASSERT_TRUE(write_config(directory_ / "real.json", json_));
  fs::permissions(directory_ / "real.json", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real.json", file_);
  ASSERT_TRUE(
      edit_config(file_, "x", [](ordered_json& json) { json["peers"]["static"].push_back("http://a:1"); }));
  EXPECT_TRUE(fs::is_symlink(file_));
  EXPECT_THAT(text_of(directory_ / "real.json"), HasSubstr("http://a:1"));
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// The owner of a drive could have root give away any directory.
TEST_F(NodeFilesTest, LinkInPlaceOfTheDaemonsDirectory_IsRefused) {
  fs::create_directories(directory_ / "drive");
  fs::create_directory(directory_ / "victim");
  const auto before = fs::status(directory_ / "victim").permissions();
  fs::create_directory_symlink(directory_ / "victim", directory_ / "drive/.spoor");
  EXPECT_FALSE(prepare_drives({directory_ / "drive"}));
  EXPECT_EQ(fs::status(directory_ / "victim").permissions(), before);
  fs::create_directory(directory_ / "other");
  ASSERT_TRUE(prepare_drives({directory_ / "other"}));
  EXPECT_TRUE(fs::is_directory(directory_ / "other/.spoor"));
}

TEST_F(NodeFilesTest, EditedConfiguration_StaysValid) {
  ASSERT_TRUE(write_config(file_, json_));
  const std::string before = text_of(file_);
  EXPECT_FALSE(
      edit_config(file_, "x", [](ordered_json& json) { json["peers"]["static"].push_back("no URL:"); }));
  EXPECT_EQ(text_of(file_), before);
  EXPECT_TRUE(
      edit_config(file_, "x", [](ordered_json& json) { json["peers"]["static"].push_back("http://a:1"); }));
  EXPECT_THAT(text_of(file_), HasSubstr("http://a:1"));
  write("spoor.json", "// ours\n" + before);
  EXPECT_THAT(edit_config(file_, "THIS", [](ordered_json&) {}).error().message, HasSubstr("add THIS there"));
  EXPECT_EQ(text_of(file_), "// ours\n" + before);
}

TEST(DrivesInTest, NameThatBeginsAlike_IsNotInAFolder) {
  EXPECT_TRUE(is_in_one_of("/home", {"/tmp", "/home"}));
  EXPECT_TRUE(is_in_one_of("/home/a", {"/tmp", "/home"}));
  EXPECT_FALSE(is_in_one_of("/homework", {"/tmp", "/home"}));
}

TEST(DrivesInTest, FileSystemsOnDisks_WithoutThoseOfTheSystem) {
  EXPECT_THAT(drives_in("/dev/a / ext4 rw 0 0\n/dev/b /boot ext4 rw 0 0\n/dev/c /srv/data xfs rw 0 0\n"
                        "tmpfs /run tmpfs rw 0 0\nproc /proc proc rw 0 0\n/dev/d /mnt/disk\\0401 xfs rw 0 0\n"
                        "/dev/e /mnt/disk2 btrfs rw 0 0\n/dev/f /var/lib/x ext4 rw 0 0\n\n"),
              ElementsAre("/srv/data", "/mnt/disk2"));
}

}  // namespace
}  // namespace spoor::cli
