// The resolver against a real DNS server, and against those that are none.
#include "peer/membership/dns_members.h"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <string>
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

TEST(DnsResolverTest, Name_ResolvesToIpv4AndIpv6Addresses) {
  const DnsServer server({"--host-record=a.test,10.0.0.2,fd00::1", "--host-record=a.test,10.0.0.1",
                          "--host-record=b.test,10.0.0.3"});
  const auto answer = resolve(server, "a.test");
  EXPECT_EQ(answer.problem, "");
  EXPECT_THAT(urls(answer),
              ElementsAre("http://10.0.0.1:7420", "http://10.0.0.2:7420", "http://[fd00::1]:7420"));
  EXPECT_THAT(urls(resolve(server, "b.test:1")), ElementsAre("http://10.0.0.3:1"));
}

TEST(DnsResolverTest, SrvRecord_ResolvesToAddressesOfAllTargets) {
  const DnsServer server({"--srv-host=_spoor._tcp.test,a.test,7001,0,9",
                          "--srv-host=_spoor._tcp.test,b.test,7002,5,1",
                          "--srv-host=_spoor._tcp.test,b.test,7003", "--host-record=a.test,10.0.0.1",
                          "--host-record=b.test,10.0.0.2,fd00::2"});
  const auto answer = resolve(server, "srv:_spoor._tcp.test");
  EXPECT_EQ(answer.problem, "");
  EXPECT_THAT(urls(answer),
              ElementsAre("http://10.0.0.1:7001", "http://10.0.0.2:7002", "http://10.0.0.2:7003",
                          "http://[fd00::2]:7002", "http://[fd00::2]:7003"));
}

TEST(DnsResolverTest, Cname_IsFollowed) {
  const DnsServer server({"--cname=alias.test,a.test", "--host-record=a.test,10.0.0.1"});
  const auto answer = resolve(server, "alias.test");
  EXPECT_EQ(answer.problem, "");
  EXPECT_THAT(urls(answer), ElementsAre("http://10.0.0.1:7420"));
}

TEST(DnsResolverTest, NameOrRecordMissing_IsAnEmptyAnswer) {
  const DnsServer server({"--txt-record=other.test,text", "--srv-host=_away._tcp.test"});
  for (const std::string name :
       {"missing.test", "other.test", "srv:_missing._tcp.test", "srv:_away._tcp.test"}) {
    const auto answer = resolve(server, name);
    EXPECT_EQ(answer.problem, "") << name;
    EXPECT_THAT(answer.endpoints, IsEmpty()) << name;
  }
}

// The service is there: only where is not known, for now.
TEST(DnsResolverTest, SrvTargetWithoutAddress_IsAnError) {
  const DnsServer server({"--srv-host=_spoor._tcp.test,a.test,7001",
                          "--srv-host=_spoor._tcp.test,gone.test,7002", "--host-record=a.test,10.0.0.1",
                          "--srv-host=_bare._tcp.test,other.test,7003", "--txt-record=other.test,text",
                          "--srv-host=_six._tcp.test,six.test,7004", "--host-record=six.test,fd00::1"});
  const auto answer = resolve(server, "srv:_spoor._tcp.test");
  EXPECT_EQ(answer.problem, "its target 'gone.test' has no address");
  EXPECT_THAT(urls(answer), ElementsAre("http://10.0.0.1:7001"));
  const auto bare = resolve(server, "srv:_bare._tcp.test");
  EXPECT_EQ(bare.problem, "its target 'other.test' has no address");
  EXPECT_THAT(bare.endpoints, IsEmpty());
  EXPECT_EQ(resolve(server, "srv:_six._tcp.test").problem, "") << "one kind of address is enough";
}

TEST(DnsResolverTest, NameAddedOrRemoved_IsSeenByNextResolve) {
  DnsServer server({"--host-record=a.test,10.0.0.1"});
  EXPECT_THAT(urls(resolve(server, "a.test")), ElementsAre("http://10.0.0.1:7420"));
  server.restart({});
  EXPECT_THAT(urls(resolve(server, "a.test")), IsEmpty());
  server.restart({"--host-record=a.test,10.0.0.2"});
  EXPECT_THAT(urls(resolve(server, "a.test")), ElementsAre("http://10.0.0.2:7420"));
}

TEST(DnsResolverTest, ServerRefusesQuery_IsAnError) {
  const DnsServer server({});
  EXPECT_THAT(resolve(server, "not.ours").problem, HasSubstr("no DNS server resolves the name"));
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

TEST(DnsResolverTest, SrvTargetLookupFails_OtherTargetsAreReturned) {
  const DnsServer server({"--srv-host=_spoor._tcp.test,a.test,7001",
                          "--srv-host=_spoor._tcp.test,not.ours,7002", "--host-record=a.test,10.0.0.1"});
  const auto answer = resolve(server, "srv:_spoor._tcp.test");
  EXPECT_THAT(answer.problem, HasSubstr("not.ours: no DNS server resolves the name"));
  EXPECT_THAT(urls(answer), ElementsAre("http://10.0.0.1:7001"));
}

TEST(DnsResolverTest, SrvTargetWithoutPort_IsAnError) {
  const DnsServer server({"--srv-host=_spoor._tcp.test,a.test,0", "--host-record=a.test,10.0.0.1"});
  EXPECT_THAT(resolve(server, "srv:_spoor._tcp.test").problem, HasSubstr("has no port"));
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

TEST(DnsResolverTest, SrvTargetsOverLimit_AreAnError) {
  const DnsServer server({"--srv-host=_spoor._tcp.test,a.test,7001",
                          "--srv-host=_spoor._tcp.test,a.test,7002", "--host-record=a.test,10.0.0.1"});
  auto options = asking(server.port());
  options.addresses_max = 1;
  const auto answer = resolve_all(options, {"srv:_spoor._tcp.test"}).at(0);
  EXPECT_EQ(answer.problem, "it has more than 1 targets");
  EXPECT_THAT(answer.endpoints, SizeIs(1));
}

}  // namespace
}  // namespace spoor::peer
