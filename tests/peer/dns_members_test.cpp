// Members in the DNS: a real DNS server, and those that are none.
#include "peer/membership/dns_members.h"

#include <gmock/gmock.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/dns_server.h"
#include "tests/support/loopback.h"
#include "tests/support/temp_directory.h"

namespace spoor::peer {
namespace {

using support::DnsServer;
using support::SilentUdpPort;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Long enough for any machine; a test that passes does not wait for it.
constexpr std::chrono::minutes patience{2};

std::vector<std::string> urls(const DnsAnswer& answer) {
  std::vector<std::string> urls;
  for (const base::Endpoint& endpoint : answer.endpoints) urls.push_back(endpoint.to_string());
  return urls;
}

std::vector<DnsAnswer> resolve_all(DnsMembers::Options options, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) options.names.push_back(base::parse_dns_source(text).value());
  return resolve_names(options);
}

DnsMembers::Options asking(std::uint16_t port) {
  return {.servers = {{support::own_loopback(), port}}, .timeout = patience};
}

DnsAnswer resolve(const DnsServer& server, const std::string& text) {
  return resolve_all(asking(server.port()), {text}).at(0);
}

const std::vector<std::string> records = {
    "--host-record=a.test,10.0.0.1",
    "--host-record=b.test,10.0.0.2,fd00::2",
    "--host-record=three.test,10.0.0.2,fd00::1",
    "--host-record=three.test,10.0.0.1",
    "--host-record=six.test,fd00::1",
    "--cname=alias.test,a.test",
    "--txt-record=text.test,text",
    "--srv-host=_spoor._tcp.test,a.test,7001,0,9",
    "--srv-host=_spoor._tcp.test,b.test,7002,5,1",
    "--srv-host=_spoor._tcp.test,b.test,7003",
    "--srv-host=_away._tcp.test",
    "--srv-host=_gone._tcp.test,a.test,7001",
    "--srv-host=_gone._tcp.test,gone.test,7002",
    "--srv-host=_bare._tcp.test,text.test,7003",
    "--srv-host=_six._tcp.test,six.test,7004",
    "--srv-host=_ours._tcp.test,a.test,7001",
    "--srv-host=_ours._tcp.test,not.ours,7002",
    "--srv-host=_none._tcp.test,a.test,0",
};

struct Case {
  const char* name;
  std::vector<std::string> urls;
  const char* problem;
};

TEST(DnsResolverTest, NamesAndSrvRecords_ResolveToAllAddresses) {
  const DnsServer server(records);
  const std::string unresolved = "no DNS server resolves the name: each fails, refuses or can't be reached";
  const std::string target_unresolved = "not.ours: " + unresolved;
  for (const auto& [name, expected, problem] : std::vector<Case>{
           {"a.test:1", {"http://10.0.0.1:1"}, ""},
           {"three.test", {"http://10.0.0.1:7420", "http://10.0.0.2:7420", "http://[fd00::1]:7420"}, ""},
           {"alias.test", {"http://10.0.0.1:7420"}, ""},
           {"srv:_spoor._tcp.test",
            {"http://10.0.0.1:7001", "http://10.0.0.2:7002", "http://10.0.0.2:7003", "http://[fd00::2]:7002",
             "http://[fd00::2]:7003"},
            ""},
           // A name, or a record of this type, that does not exist is an empty answer.
           {"missing.test", {}, ""},
           {"text.test", {}, ""},
           {"srv:_missing._tcp.test", {}, ""},
           {"srv:_away._tcp.test", {}, ""},
           // The service is there: only where is not known, for now. One kind of address is enough.
           {"srv:_gone._tcp.test", {"http://10.0.0.1:7001"}, "its target 'gone.test' has no address"},
           {"srv:_bare._tcp.test", {}, "its target 'text.test' has no address"},
           {"srv:_six._tcp.test", {"http://[fd00::1]:7004"}, ""},
           {"srv:_ours._tcp.test", {"http://10.0.0.1:7001"}, target_unresolved.c_str()},
           {"srv:_none._tcp.test", {}, "its SRV record for 'a.test' has no port"},
           {"not.ours", {}, unresolved.c_str()},
       }) {
    const auto answer = resolve(server, name);
    EXPECT_EQ(answer.problem, problem) << name;
    EXPECT_EQ(urls(answer), expected) << name;
  }
  auto options = asking(server.port());
  options.addresses_max = 1;
  const auto cut = resolve_all(options, {"srv:_spoor._tcp.test"}).at(0);
  EXPECT_EQ(cut.problem, "it has more than 1 targets");
  EXPECT_THAT(cut.endpoints, SizeIs(1));
}

// Responds to queries of A records with 10.0.0.1, and to others with a failure; until an empty datagram
// comes.
void respond_to_ipv4_alone(int fd) {
  std::string packet(512, '\0');
  sockaddr_in from{};
  auto* const address = reinterpret_cast<sockaddr*>(&from);
  for (;;) {
    socklen_t size = sizeof(from);
    const ssize_t got = ::recvfrom(fd, packet.data(), packet.size(), 0, address, &size);
    if (got <= 0) return;
    constexpr std::size_t header_bytes = 12;
    const std::size_t type_at = packet.find('\0', header_bytes) + 1;
    const bool is_ipv4 = packet[type_at + 1] == 1;
    std::string response = packet.substr(0, type_at + 4);
    response[2] = static_cast<char>(response[2] | '\x80');  // it is a response
    response[3] = static_cast<char>(is_ipv4 ? 0 : 2);       // SERVFAIL
    response[7] = static_cast<char>(is_ipv4 ? 1 : 0);       // answers
    response[11] = 0;                                       // additional records
    if (is_ipv4) response += std::string("\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x0a\0\0\1", 16);
    ::sendto(fd, response.data(), response.size(), 0, address, size);
  }
}

// Members may be missing.
TEST(DnsResolverTest, OneKindOfAddressFails_IsAnError) {
  const SilentUdpPort port;
  const std::jthread serving([&] { respond_to_ipv4_alone(port.fd()); });
  const auto answer = resolve_all(asking(port.port()), {"a.test"}).at(0);
  EXPECT_THAT(answer.problem, HasSubstr("no DNS server resolves the name"));
  EXPECT_THAT(urls(answer), ElementsAre("http://10.0.0.1:7420"));
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  ASSERT_EQ(::getsockname(port.fd(), address, &size), 0);
  ASSERT_EQ(::sendto(port.fd(), "", 0, 0, address, size), 0);
}

TEST(DnsResolverTest, NameAddedOrRemoved_IsSeenByNextResolve) {
  DnsServer server({"--host-record=a.test,10.0.0.1"});
  EXPECT_THAT(urls(resolve(server, "a.test")), ElementsAre("http://10.0.0.1:7420"));
  server.restart({});
  EXPECT_THAT(urls(resolve(server, "a.test")), IsEmpty());
  server.restart({"--host-record=a.test,10.0.0.2"});
  EXPECT_THAT(urls(resolve(server, "a.test")), ElementsAre("http://10.0.0.2:7420"));
}

TEST(DnsResolverTest, ServerUnreachable_IsAnError) {
  const std::uint16_t port = SilentUdpPort().port();
  auto options = asking(port);
  options.timeout = std::chrono::milliseconds(400);
  EXPECT_NE(resolve_all(options, {"a.test"}).at(0).problem, "");
}

TEST(DnsResolverTest, ServerNeverResponds_IsATimeout) {
  const SilentUdpPort silent;
  auto options = asking(silent.port());
  options.timeout = std::chrono::milliseconds(40);
  for (const auto& answer : resolve_all(options, {"a.test", "srv:_spoor._tcp.test"})) {
    EXPECT_EQ(answer.problem, "no answer in time");
    EXPECT_THAT(answer.endpoints, IsEmpty());
  }
}

TEST(DnsResolverTest, Timeout_FailsQueuedQueriesToo) {
  const SilentUdpPort silent;
  auto options = asking(silent.port());
  options.timeout = std::chrono::milliseconds(40);
  options.concurrent_max = 1;
  for (const auto& answer : resolve_all(options, {"a.test", "b.test", "c.test"})) {
    EXPECT_EQ(answer.problem, "no answer in time");
  }
}

TEST(DnsResolverTest, FirstServerSilent_NextServerIsQueriedInTime) {
  const SilentUdpPort silent;
  const DnsServer server({"--host-record=a.test,10.0.0.1"});
  const auto answers = resolve_all(
      {.servers = {{support::own_loopback(), silent.port()}, {support::own_loopback(), server.port()}},
       .timeout = std::chrono::seconds(8)},
      {"a.test"});
  EXPECT_EQ(answers[0].problem, "");
  EXPECT_THAT(urls(answers[0]), ElementsAre("http://10.0.0.1:7420"));
}

TEST(DnsResolverTest, ManyNames_AreResolvedConcurrently) {
  const DnsServer server({"--address=/test/10.0.0.1"});
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("n" + std::to_string(i) + ".test");
  names.emplace_back("not.ours");
  const auto answers = resolve_all(asking(server.port()), names);
  ASSERT_THAT(answers, SizeIs(201));
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(answers[i].problem, "");
    EXPECT_THAT(urls(answers[i]), ElementsAre("http://10.0.0.1:7420")) << i;
  }
  EXPECT_THAT(answers[200].problem, HasSubstr("no DNS server resolves the name"));
}

// More than a packet holds: over TCP.
TEST(DnsResolverTest, LargeResponse_IsCompleteUpToAddressLimit) {
  const support::TempDirectory directory;
  {
    std::ofstream hosts(directory / "hosts");
    for (int i = 0; i < 500; ++i) hosts << "10.0." << i / 250 << '.' << i % 250 << " many.test\n";
  }
  const DnsServer server({"--addn-hosts=" + (directory / "hosts").native()});
  const auto answer = resolve(server, "many.test");
  EXPECT_EQ(answer.problem, "");
  EXPECT_THAT(answer.endpoints, SizeIs(500));

  auto options = asking(server.port());
  options.addresses_max = 500;
  EXPECT_EQ(resolve_all(options, {"many.test"}).at(0).problem, "");
  options.addresses_max = 499;
  const auto cut = resolve_all(options, {"many.test"}).at(0);
  EXPECT_EQ(cut.problem, "it has more than 499 addresses");
  EXPECT_THAT(cut.endpoints, SizeIs(499));
}

class DnsMembersTest : public ::testing::Test {
 protected:
  std::vector<SourceListing> listings(DnsAnswer answer, bool is_tls = false) {
    return to_listings({.names = {base::parse_dns_source("x").value()}, .is_tls = is_tls},
                       {std::move(answer)});
  }
};

TEST_F(DnsMembersTest, Problem_IsThatOfTheListing) {
  const auto listing = listings({{{"a", 1, {}}}, "no answer in time"}).at(0);
  EXPECT_EQ(listing.source, "dns x:7420");
  EXPECT_THAT(listing.listed, ElementsAre("http://a:1"));
  EXPECT_EQ(listing.problem, "no answer in time");
}

TEST_F(DnsMembersTest, InvalidAddress_IsAProblem) {
  const auto listing = listings({{{"[a", 80, {}}, {"fine", 80, {}}, {"a b", 80, {}}}, {}}).at(0);
  EXPECT_THAT(listing.listed, ElementsAre("http://fine:80"));
  EXPECT_THAT(listing.problem, HasSubstr("http://[a:80"));
}

TEST_F(DnsMembersTest, DnsTls_ListsHttpsUrlsWithTheirNames) {
  base::Endpoint address{"10.0.0.1", 7420, {}};
  address.tls_name = "node1.example";
  EXPECT_THAT(listings({{address}, {}}, true).at(0).listed,
              ElementsAre("https://10.0.0.1:7420#node1.example"));
  EXPECT_THAT(listings({{address}, {}}, false).at(0).listed, ElementsAre("http://10.0.0.1:7420"));
}

TEST_F(DnsMembersTest, NameGivenTwice_IsListedOnce) {
  const auto name = base::parse_dns_source("x").value();
  DnsMembers::Options options{.servers = {{support::own_loopback(), 1}},
                              .timeout = std::chrono::milliseconds(1)};
  options.names = {name, name};
  EXPECT_THAT(DnsMembers(options).list(), SizeIs(1));
}

TEST_F(DnsMembersTest, NoName_HasNoListing) { EXPECT_THAT(DnsMembers({}).list(), IsEmpty()); }

}  // namespace
}  // namespace spoor::peer
