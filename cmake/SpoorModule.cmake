# The warnings every target of the project is built with.
add_library(spoor_warnings INTERFACE)
target_compile_options(spoor_warnings INTERFACE
  -Wall -Wextra -Wpedantic
  # Where several sources are one unit, a local name may be one of another source, and all but the unit count as headers.
  $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,-Wno-subobject-linkage,-Wshadow>
  -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Wundef -Wimplicit-fallthrough -Werror
  # GCC 12 sees overlaps where a literal is assigned to a string (gcc.gnu.org bug 105651).
  -Wno-restrict)

# How it ships: hardened, with what a backtrace needs, and the same bytes wherever the source lies, whether or not a
# compiler cache makes the paths of the commands relative.
file(RELATIVE_PATH source_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
string(REGEX REPLACE "/$" "" source_from_build ${source_from_build})
add_library(spoor_release INTERFACE)
target_compile_options(spoor_release INTERFACE
  "$<$<CONFIG:Release>:-g1;-fstack-protector-strong;-D_FORTIFY_SOURCE=2;-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.;-ffile-prefix-map=${source_from_build}=.;-ffile-prefix-map=${CMAKE_BINARY_DIR}/=>")
target_link_options(spoor_release INTERFACE "$<$<CONFIG:Release>:LINKER:-z,relro,-z,now>")

# add_module(<folder> HEADERS ... SOURCES ... [APART <sources>] [BATCH <number>] USES <modules>
#            LIBRARIES <external targets>)
#
# One static library a folder. APART: sources with local names that others of the folder have, too: each of these
# is a translation unit of its own. BATCH: how many of the others make one; 8 by default, more where the headers take
# most of the time. Its dependencies here are the complete list: the includes of the folder are held against them by
# tests/architecture.
function(add_module name)
  cmake_parse_arguments(ARG "" "BATCH" "HEADERS;SOURCES;APART;USES;LIBRARIES" ${ARGN})
  add_library(spoor_${name} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(spoor::${name} ALIAS spoor_${name})
  if(ARG_BATCH)
    set_target_properties(spoor_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${ARG_BATCH})
  endif()
  target_include_directories(spoor_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  list(TRANSFORM ARG_USES PREPEND spoor::)
  target_link_libraries(spoor_${name} PUBLIC ${ARG_USES} ${ARG_LIBRARIES} PRIVATE spoor_warnings spoor_release)
endfunction()
