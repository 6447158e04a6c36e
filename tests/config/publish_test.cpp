// `publish.sinks` and the URLs in it.
#include <gmock/gmock.h>

#include "config/sink_url.h"
#include "config/validate.h"

namespace spoor::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

std::vector<std::string> problems(std::vector<Sink> sinks) {
  Config config;
  config.node.name = "n1";
  config.drives = {"/mnt/a"};
  config.publish.sinks = std::move(sinks);
  return validate(config);
}

Sink sink(const std::string& url) { return {.name = "bus", .url = url}; }

TEST(SinkTest, EachKind_IsAccepted) {
  for (const char* url : {"http://h/", "https://h/", "nats://h", "tls://h", "kafka://h", "postgresql://h/db"})
    EXPECT_THAT(problems({sink(url)}), IsEmpty()) << url;
}

TEST(SinkTest, Name_IsRequiredAndUnique) {
  EXPECT_THAT(problems({{.url = "http://h/"}}),
              ElementsAre(HasSubstr("publish.sinks[0].name: a sink needs a name")));
  EXPECT_THAT(problems({sink("http://h/"), sink("http://i/")}),
              ElementsAre(HasSubstr("publish.sinks[1].name: \"bus\" is the name of another sink")));
}

TEST(SinkTest, Topic_HasNoWildcards) {
  for (const char* bad : {"", "a.*", "a.>", "a..b", ".a", "a b"}) {
    Sink one = sink("nats://h");
    one.topic = bad;
    EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("publish.sinks[0].topic"))) << bad;
  }
}

TEST(SinkTest, Batch_HasARange) {
  for (const std::uint32_t batch : {0U, 1U, 100'000U, 100'001U}) {
    Sink one = sink("nats://h");
    one.batch = batch;
    const bool is_valid = batch == 1 || batch == 100'000;
    EXPECT_EQ(problems({one}).empty(), is_valid) << batch;
    if (is_valid) continue;
    EXPECT_THAT(problems({one}),
                ElementsAre(HasSubstr("publish.sinks[0].batch: " + std::to_string(batch) +
                                      " is out of range: expected a whole number from 1 to")));
  }
}

TEST(SinkTest, Credentials_BelongToTheKind) {
  Sink one = sink("kafka://h");
  one.token_file = "/token";
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("publish.sinks[0].token_file")));
  one = sink("https://h/");
  one.user = "me";
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("an HTTP sink has a 'token_file' instead")));
  one = sink("nats://h");
  one.password_file = "/password";
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("publish.sinks[0].user")));
  one.user = "me";
  one.token_file = "/token";
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("either 'token_file', or 'user'")));
  one = sink("http://h/");
  one.tls = PeerTls{.ca = "/ca"};
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("with 'tls' the URL starts with https://")));
  one = sink("tls://h");
  one.tls = PeerTls{.ca = "ca", .certificate = "/c"};
  EXPECT_THAT(problems({one}), Contains(HasSubstr("publish.sinks[0].tls.ca")));
}

TEST(SinkTest, TlsOfPostgresql_NeedsAnAuthority) {
  Sink one = sink("postgresql://h/db");
  one.tls = PeerTls{};
  EXPECT_THAT(problems({one}), ElementsAre(HasSubstr("publish.sinks[0].tls.ca")));
  one.tls = PeerTls{.ca = "/ca"};
  EXPECT_THAT(problems({one}), IsEmpty());
}

TEST(SinkTest, NumberOfSinks_IsBounded) {
  std::vector<Sink> many;
  for (int i = 0; i < 17; ++i) many.push_back({.name = std::to_string(i), .url = "http://h/"});
  EXPECT_THAT(problems(many), ElementsAre(HasSubstr("at most 16 sinks")));
}

}  // namespace
}  // namespace spoor::config
