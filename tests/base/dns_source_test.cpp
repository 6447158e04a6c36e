#include "base/dns_source.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace spoor::base {
namespace {

using testing::HasSubstr;

const std::string label(63, 'a');
const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');

TEST(DnsSourceTest, Name_HasGivenOrDefaultPort) {
  EXPECT_EQ(parse_dns_source("spoor.example").value(), (DnsSource{"spoor.example", 7420, false}));
  EXPECT_EQ(parse_dns_source("spoor.example:1").value(), (DnsSource{"spoor.example", 1, false}));
  EXPECT_EQ(parse_dns_source("spoor.example").value().to_string(), "spoor.example:7420");
  for (const std::string& good :
       {std::string("a"), std::string("spoor.example.:65535"), std::string("1-a_b.example"), longest})
    EXPECT_TRUE(parse_dns_source(good)) << good;
}

TEST(DnsSourceTest, SrvName_ParsesOnlyWithoutPort) {
  const auto source = parse_dns_source("srv:_spoor._tcp.example");
  EXPECT_EQ(source.value(), (DnsSource{"_spoor._tcp.example", 0, true}));
  EXPECT_EQ(source.value().to_string(), "srv:_spoor._tcp.example");
  EXPECT_TRUE(parse_dns_source("srv:_spoor._tcp.example."));
  EXPECT_TRUE(parse_dns_source("srv:_spoor._tcp.storage.svc.cluster.local"));
  for (const char* bad :
       {"srv:_spoor._tcp.example:7420", "srv:", "srv:example", "srv:_spoor.example", "srv:_spoor._tcp",
        "srv:_spoor._tcp.", "srv:_spoor.x._tcp.example", "srv:_spoor._tcp.a..b"})
    EXPECT_FALSE(parse_dns_source(bad)) << bad;
}

TEST(DnsSourceTest, InvalidName_IsRefused) {
  for (const std::string& bad : std::vector<std::string>{
           "", ".", ":7420", "a:", "a:0", "a:65536", "a:1x", "a..b", ".a", "a b", std::string("a\0b", 3),
           "\xc3\xa9", "http://a", "a/b", label + "a", longest + "a"}) {
    const auto source = parse_dns_source(bad);
    ASSERT_FALSE(source) << bad;
    EXPECT_EQ(source.error().code, std::errc::invalid_argument);
  }
}

TEST(DnsSourceTest, Address_BelongsIntoAnotherSetting) {
  for (const char* address : {"10.0.0.1", "10.0.0.1:7420", "::1"})
    EXPECT_THAT(parse_dns_source(address).error().message, HasSubstr("list it in peers.static"));
  EXPECT_FALSE(parse_dns_source("[::1]:1"));
}

TEST(DnsServerTest, Address_HasGivenOrDefaultPort) {
  EXPECT_EQ(parse_dns_server("10.0.0.1").value(), (DnsServer{"10.0.0.1", 53}));
  EXPECT_EQ(parse_dns_server("10.0.0.1:8600").value(), (DnsServer{"10.0.0.1", 8600}));
  EXPECT_EQ(parse_dns_server("fd00::1").value(), (DnsServer{"fd00::1", 53}));
  EXPECT_EQ(parse_dns_server("[fd00::1]").value(), (DnsServer{"fd00::1", 53}));
  EXPECT_EQ(parse_dns_server("[fd00::1]:8600").value(), (DnsServer{"fd00::1", 8600}));
}

TEST(DnsServerTest, InvalidAddress_IsRefused) {
  for (const std::string& bad : std::vector<std::string>{
           "", "dns.example", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:x", "[fd00::1", "[fd00::1]8600",
           "[10.0.0.1]:53", std::string("10.0.0.1\0x", 10), "[", "[]", ":53"}) {
    EXPECT_FALSE(parse_dns_server(bad)) << bad;
  }
}

}  // namespace
}  // namespace spoor::base
