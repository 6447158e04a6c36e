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

TEST(ArrowsTest, AllowedInclude_IsAccepted) {
  EXPECT_THAT(
      check("base/error.cpp", "#include \"base/error.h\"\n#include <vector>\n#include <sys/stat.h>\n"),
      IsEmpty());
  EXPECT_THAT(check("tracker/cycles/tracker.h", "#include \"base/clock.h\""), IsEmpty());
  EXPECT_THAT(
      check("peer/gather/gather.cpp", "#include \"tracker/cycles/tracker.h\"\n#include \"base/clock.h\""),
      IsEmpty());
  EXPECT_THAT(check("daemon/main.cpp", "#include \"config/load.h\"\n#include \"scanner/usage.h\""),
              IsEmpty());
}

TEST(ArrowsTest, ForbiddenInclude_IsReported) {
  EXPECT_THAT(check("base/error.h", "#include \"tracker/paths/path.h\""),
              ElementsAre(HasSubstr("base may not use tracker")));
  EXPECT_THAT(check("tracker/a.h", "#include \"peer/b.h\""),
              ElementsAre(HasSubstr("tracker may not use peer")));
  EXPECT_THAT(check("peer/a.h", "#include \"scanner/b.h\""),
              ElementsAre(HasSubstr("peer may not use scanner")));
  EXPECT_THAT(check("scanner/a.h", "#include \"peer/b.h\""),
              ElementsAre(HasSubstr("scanner may not use peer")));
  EXPECT_THAT(check("scanner/a.h", "#include \"config/config.h\""),
              ElementsAre(HasSubstr("scanner may not use config")));
  EXPECT_THAT(check("config/a.h", "#include \"peer/b.h\""),
              ElementsAre(HasSubstr("config may not use peer")));
  EXPECT_THAT(check("cli/a.h", "#include \"daemon/b.h\""), ElementsAre(HasSubstr("cli may not use daemon")));
  EXPECT_THAT(check("daemon/a.h", "#include \"cli/b.h\""), ElementsAre(HasSubstr("daemon may not use cli")));
  EXPECT_THAT(check("watch/a.h", "#include \"scanner/b.h\""),
              ElementsAre(HasSubstr("watch may not use scanner")));
}

TEST(ArrowsTest, IncludeWithinAModule_FollowsItsInnerArrows) {
  EXPECT_THAT(
      check("tracker/storage/a.h", "#include \"tracker/cycles/tracker.h\"\n#include \"tracker/errors.h\""),
      IsEmpty());
  EXPECT_THAT(check("scanner/scan.cpp", "#include \"scanner/walk/walker.h\""), IsEmpty());
  EXPECT_THAT(check("tracker/filter/a.h", "#include \"tracker/cycles/tracker.h\""),
              ElementsAre(HasSubstr("tracker/filter may not use tracker/cycles")));
  EXPECT_THAT(check("scanner/walk/a.h", "#include \"scanner/scan.h\""),
              ElementsAre(HasSubstr("scanner/walk may not use scanner")));
  EXPECT_THAT(check("peer/util/a.h", "#include \"peer/http/transport.h\""),
              ElementsAre(HasSubstr("peer/util has no place among the arrows")));
}

TEST(ArrowsTest, UnusualIncludeSyntax_IsDetected) {
  EXPECT_THAT(check("base/a.h", "#include <tracker/paths/path.h>"), ElementsAre(HasSubstr("may not use")));
  EXPECT_THAT(check("base/a.h", "  #  include\t\"tracker/paths/path.h\"  // why"),
              ElementsAre(HasSubstr("may not use")));
  EXPECT_THAT(check("base/a.h", "#include \"a.h\"\r\n#include \"tracker/paths/path.h\"\r\n"),
              ElementsAre(HasSubstr("by its path from the top"), HasSubstr("may not use")));
  EXPECT_THAT(check("base/a.h", "#include \"../tracker/path.h\""),
              ElementsAre(HasSubstr("by its path from the top")));
}

TEST(ArrowsTest, Message_NamesFileAndLine) {
  EXPECT_THAT(check("base/a.h", "\n\n#include \"cli/b.h\"\n"),
              ElementsAre("base/a.h:3: includes cli/b.h: base may not use cli"));
}

TEST(ArrowsTest, CommentedInclude_IsIgnored) {
  EXPECT_THAT(check("base/a.h", "// #include \"cli/b.h\""), IsEmpty());
}

TEST(ArrowsTest, ProductionCodeIncludesTests_IsReported) {
  EXPECT_THAT(check("tracker/a.cpp", "#include \"tests/fakes/clock.h\""),
              ElementsAre(HasSubstr("does not know the tests")));
}

TEST(ArrowsTest, BeastOutsideAllowedFiles_IsReported) {
  constexpr std::string_view beast = "#include <boost/beast/http.hpp>";
  EXPECT_THAT(check("peer/http/http_transport.cpp", beast), IsEmpty());
  EXPECT_THAT(check("daemon/http/http_session.cpp", beast), IsEmpty());
  EXPECT_THAT(check("daemon/http/http_server.h", beast), ElementsAre(HasSubstr("Beast")));
  EXPECT_THAT(check("cli/main.cpp", beast), ElementsAre(HasSubstr("Beast")));
  EXPECT_THAT(check("tracker/a.cpp", "#include <boost/beast.hpp>"), ElementsAre(HasSubstr("Beast")));
  EXPECT_THAT(check("tracker/a.cpp", "#include <boost/asio.hpp>"), IsEmpty());
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
