#include "config/sink_url.h"

#include <gmock/gmock.h>

namespace spoor::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SinkUrlTest, Http_HasAnEndpointAndATarget) {
  const auto plain = parse_sink_url("http://hook.example/a/b?c=d").value();
  EXPECT_EQ(plain.kind, SinkKind::http);
  EXPECT_EQ(plain.endpoint.to_string(), "http://hook.example:80");
  EXPECT_EQ(plain.target, "/a/b?c=d");
  const auto tls = parse_sink_url("https://[::1]:8443").value();
  EXPECT_EQ(tls.endpoint.to_string(), "https://[::1]:8443");
  EXPECT_EQ(tls.target, "/");
  EXPECT_TRUE(tls.is_tls);
  EXPECT_EQ(parse_sink_url("https://host?x=y").value().target, "/?x=y");
}

TEST(SinkUrlTest, NatsAndKafka_HaveServers) {
  const auto nats = parse_sink_url("nats://a:4222,b").value();
  EXPECT_EQ(nats.kind, SinkKind::nats);
  EXPECT_THAT(nats.servers, ElementsAre("a:4222", "b"));
  EXPECT_FALSE(nats.is_tls);
  EXPECT_TRUE(parse_sink_url("tls://a").value().is_tls);
  EXPECT_EQ(parse_sink_url("tls://a").value().kind, SinkKind::nats);
  EXPECT_EQ(parse_sink_url("kafka://a:9092").value().kind, SinkKind::kafka);
  EXPECT_EQ(parse_sink_url("postgresql:///spoor?host=/run/postgresql").value().kind, SinkKind::postgresql);
}

TEST(SinkUrlTest, AnythingElse_IsRefusedWithTheAcceptedForms) {
  for (const char* bad :
       {"", "host", "ftp://host/", "://", "http://", "nats://", "nats://a,,b", "kafka://a:x",
        "http://host/a b", "http://host/a\nb", "http://host/#f", "http://host:0/", "HTTP://host"}) {
    const auto parsed = parse_sink_url(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("expected")) << bad;
  }
  EXPECT_FALSE(parse_sink_url("http://host/" + std::string(3000, 'a')));
}

// The configuration is shown in many places.
TEST(SinkUrlTest, Secrets_AreRefusedAndNotQuoted) {
  for (const char* bad :
       {"nats://user:geheim@host", "https://geheim@host/", "postgresql://spoor:geheim@host/db",
        "postgresql://host/db?password=geheim", "postgres://spoor:geheim@host/db", "nats://user:ge/heim@host",
        "spoor:geheim@host"}) {
    const auto parsed = parse_sink_url(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("password_file"));
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("heim")));
  }
}

}  // namespace
}  // namespace spoor::config
