#include "daemon/api/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace spoor::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

HttpResponse get(const std::string& path, const std::string& encoding = "", const std::string& tag = "") {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.accept_encoding = encoding;
  request.if_none_match = tag;
  return page_response(request);
}

TEST(PageTest, AllFilesTogether_AreSmall) {
  std::size_t bytes = 0;
  for (const PageFile& file : page_files()) bytes += file.name == "openapi.yaml" ? 0 : file.gzip.size();
  EXPECT_GT(page_files().size(), 10U);
  EXPECT_LE(bytes, std::size_t{100} << 10U);
}

TEST(PageTest, EachFile_HasItsTypeAndTheHeadersThatConfineIt) {
  for (const PageFile& file : page_files()) {
    const std::string name(file.name);
    const auto response = get(name == "index.html"     ? "/"
                              : name == "openapi.yaml" ? "/openapi.yaml"
                                                       : "/page/" + name);
    EXPECT_EQ(response.status, 200U) << name;
    EXPECT_EQ(response.content(), file.plain) << name;
    const char* const type = name.ends_with(".html")  ? "text/html; charset=utf-8"
                             : name.ends_with(".css") ? "text/css; charset=utf-8"
                             : name.ends_with(".svg") ? "image/svg+xml"
                             : name == "openapi.yaml" ? "application/yaml"
                                                      : "text/javascript; charset=utf-8";
    EXPECT_EQ(response.content_type, type) << name;
    EXPECT_THAT(response.headers.at("Content-Security-Policy"), StartsWith("default-src 'self'; "));
    EXPECT_THAT(response.headers.at("Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(response.headers.at("Content-Security-Policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(response.headers.at("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(response.headers.at("X-Frame-Options"), "DENY");
    EXPECT_EQ(response.headers.at("Referrer-Policy"), "no-referrer");
    EXPECT_FALSE(response.headers.contains("Content-Encoding"));
  }
}

TEST(PageTest, Gzip_IsSentIfItIsAccepted) {
  for (const char* accepted : {"gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8", " br ,\tgzip"}) {
    const auto response = get("/", accepted);
    EXPECT_EQ(response.headers.at("Content-Encoding"), "gzip") << accepted;
    EXPECT_THAT(response.content(), StartsWith("\x1f\x8b")) << accepted;
    EXPECT_EQ(response.headers.at("Vary"), "Accept-Encoding");
  }
  for (const char* accepted : {"", "br", "gzip;q=0", "gzip; q=0.0", "identity", "xgzip"}) {
    EXPECT_FALSE(get("/", accepted).headers.contains("Content-Encoding")) << accepted;
  }
}

TEST(PageTest, UnchangedFile_IsNotSentAgain) {
  const auto first = get("/page/page.css", "gzip");
  const std::string tag = first.headers.at("ETag");
  EXPECT_NE(tag, get("/page/page.css").headers.at("ETag")) << "it is another representation";
  for (const std::string& sent : {tag, "\"x\", " + tag, "W/" + tag}) {
    const auto again = get("/page/page.css", "gzip", sent);
    EXPECT_EQ(again.status, 304U);
    EXPECT_EQ(again.content(), "");
    EXPECT_EQ(again.headers.at("ETag"), tag);
    EXPECT_FALSE(again.headers.contains("Content-Encoding"));
  }
  EXPECT_EQ(get("/page/app.js", "gzip", tag).status, 200U);
  EXPECT_EQ(first.headers.at("Cache-Control"), "no-cache");
}

TEST(PageTest, UnknownFile_IsNotFound) {
  for (const char* path : {"/page/nothing.js", "/page/index.html", "/page/openapi.yaml", "/page/..",
                           "/page/uPlot", "/page/vendor"}) {
    EXPECT_EQ(get(path).status, 404U) << path;
  }
}

TEST(PageTest, OnlyPathsRightBelowPage_AreFiles) {
  EXPECT_TRUE(is_page_file("/page/app.js"));
  for (const char* path :
       {"/page", "/page/", "/page/vendor/uPlot.min.css", "/pages/app.js", "/v1/page/app.js", "/"}) {
    EXPECT_FALSE(is_page_file(path)) << path;
  }
}

}  // namespace
}  // namespace spoor::daemon
