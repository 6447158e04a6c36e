// The check itself: it must see made-up violations, or it would prove nothing about the sources.
#include "tests/architecture/arrows.h"

#include <gmock/gmock.h>

namespace spoor::architecture {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Folders everything = {"base",   "tracker", "peer",  "scanner", "config",
                            "daemon", "cli",     "watch", "publish"};

std::vector<std::string> check(std::string_view file, std::string_view text,
                               const Folders& declared = everything) {
  return check_includes(rules(), file, text, declared);
}

TEST(ArrowsTest, Includes_AreAcceptedOrReportedWithTheReason) {
  const auto include = [](const std::string& path) { return "#include \"" + path + "\"\n"; };
  const std::string beast = "#include <boost/beast/http.hpp>";
  struct Case {
    const char* file;
    std::string text;
    std::vector<const char*> broken = {};
  };
  const Case cases[] = {
      {"base/error.cpp", include("base/error.h") + "#include <vector>\n#include <sys/stat.h>\n"},
      {"tracker/cycles/tracker.h", include("base/clock.h")},
      {"peer/gather/gather.cpp", include("tracker/cycles/tracker.h") + include("base/clock.h")},
      {"daemon/main.cpp", include("config/load.h") + include("scanner/usage.h")},
      {"base/error.h", include("tracker/paths/path.h"), {"base may not use tracker"}},
      {"tracker/a.h", include("peer/b.h"), {"tracker may not use peer"}},
      {"peer/a.h", include("scanner/b.h"), {"peer may not use scanner"}},
      {"scanner/a.h", include("peer/b.h"), {"scanner may not use peer"}},
      {"scanner/a.h", include("config/config.h"), {"scanner may not use config"}},
      {"config/a.h", include("peer/b.h"), {"config may not use peer"}},
      {"cli/a.h", include("daemon/b.h"), {"cli may not use daemon"}},
      {"daemon/a.h", include("cli/b.h"), {"daemon may not use cli"}},
      {"watch/a.h", include("scanner/b.h"), {"watch may not use scanner"}},
      {"tracker/a.cpp", include("tests/fakes/clock.h"), {"does not know the tests"}},
      // within a module
      {"tracker/storage/a.h", include("tracker/cycles/tracker.h") + include("tracker/errors.h")},
      {"scanner/scan.cpp", include("scanner/walk/walker.h")},
      {"tracker/filter/a.h",
       include("tracker/cycles/tracker.h"),
       {"tracker/filter may not use tracker/cycles"}},
      {"scanner/walk/a.h", include("scanner/scan.h"), {"scanner/walk may not use scanner"}},
      {"peer/util/a.h", include("peer/http/transport.h"), {"peer/util has no place among the arrows"}},
      // unusual syntax, and a comment
      {"base/a.h", "#include <tracker/paths/path.h>", {"may not use"}},
      {"base/a.h", "  #  include\t\"tracker/paths/path.h\"  // why", {"may not use"}},
      {"base/a.h",
       "#include \"a.h\"\r\n#include \"tracker/paths/path.h\"\r\n",
       {"by its path from the top", "may not use"}},
      {"base/a.h", include("../tracker/path.h"), {"by its path from the top"}},
      {"base/a.h", "\n\n" + include("cli/b.h"), {"base/a.h:3: includes cli/b.h: base may not use cli"}},
      {"base/a.h", "// " + include("cli/b.h")},
      // Beast in other files than those allowed
      {"peer/http/http_transport.cpp", beast},
      {"daemon/http/http_session.cpp", beast},
      {"daemon/http/http_server.h", beast, {"Beast"}},
      {"cli/main.cpp", beast, {"Beast"}},
      {"tracker/a.cpp", "#include <boost/beast.hpp>", {"Beast"}},
      {"tracker/a.cpp", "#include <boost/asio.hpp>"},
  };
  for (const Case& each : cases) {
    std::vector<::testing::Matcher<std::string>> reasons;
    for (const char* reason : each.broken) reasons.emplace_back(HasSubstr(reason));
    EXPECT_THAT(check(each.file, each.text), ::testing::ElementsAreArray(reasons))
        << each.file << ' ' << each.text;
  }
}

TEST(ArrowsTest, UnknownFolder_IsReported) {
  EXPECT_THAT(check("util/a.cpp", ""), ElementsAre(HasSubstr("util has no place")));
  EXPECT_THAT(check_declared(rules(), "util", {}), ElementsAre(HasSubstr("util has no place")));
}

TEST(ArrowsTest, UndeclaredUse_IsReported) {
  EXPECT_THAT(
      check("peer/a.cpp", "#include \"base/clock.h\"\n#include \"tracker/paths/path.h\"", {"tracker"}),
      ElementsAre(HasSubstr("peer/CMakeLists.txt does not declare that it uses base")));
}

TEST(ArrowsTest, CmakeDeclarations_AreParsed) {
  EXPECT_THAT(
      declared_uses("add_module(peer\n  SOURCES a.cpp\n  USES tracker\n    base\n  LIBRARIES fmt::fmt)"),
      ElementsAre("base", "tracker"));
  EXPECT_THAT(declared_uses("add_module(base SOURCES a.cpp)"), IsEmpty());
  EXPECT_THAT(declared_uses("add_module(a USES base) # USES cli"), ElementsAre("base"));
  EXPECT_THAT(declared_uses("target_link_libraries(spoord PRIVATE spoor::daemon spoor_warnings)"),
              ElementsAre("daemon"));
}

TEST(ArrowsTest, ForbiddenDeclaration_IsReported) {
  EXPECT_THAT(check_declared(rules(), "peer", {"base", "tracker", "peer"}), IsEmpty());
  EXPECT_THAT(check_declared(rules(), "peer", {"base", "config"}),
              ElementsAre(HasSubstr("peer may not use config")));
}

}  // namespace
}  // namespace spoor::architecture
