# cmake -DOUTPUT=version.cpp -DSOURCE=<the tree> -DVERSION=1.0.0 -DCOMMIT=<the commit, or empty> -P write_version.cmake
#
# Writes the C++ source that holds the version and the commit, if it is not the same already. Without COMMIT it is that
# of the archive that `git archive` made of the tree, else that of the git checkout. A checkout that merely contains the
# tree, as that of a packager, has commits of something else.

set(commit "${COMMIT}")
if(commit STREQUAL "")
  file(STRINGS "${SOURCE}/cmake/archived_commit.txt" commit LIMIT_COUNT 1 REGEX "^[0-9a-f]+$")
endif()
if("${commit}" STREQUAL "" AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 "--exclude=*"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE ignored)
endif()
if(NOT "${commit}" MATCHES "^[0-9A-Za-z.+~-]*$")
  message(FATAL_ERROR "SPOOR_COMMIT is '${commit}': it has letters, digits and .+~- only")
endif()
if("${commit}" MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${commit}" 0 12 commit)
endif()
if(NOT "${commit}" STREQUAL "")
  set(commit " (${commit})")
endif()

set(text "// Made by cmake/write_version.cmake.
#include \"base/version.h\"

namespace spoor::base {

std::string_view version() { return \"${VERSION}\"; }

std::string version_text(std::string_view program) { return std::string(program) + \" ${VERSION}${commit}\"; }

}  // namespace spoor::base
")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${text}" @ONLY)
