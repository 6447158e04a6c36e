# The warnings every target of the project is built with.
add_library(spoor_warnings INTERFACE)
target_compile_options(spoor_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Wundef -Wimplicit-fallthrough -Werror
  # GCC 12 sees overlaps where a literal is assigned to a string (gcc.gnu.org bug 105651).
  -Wno-restrict)

# How it ships: hardened, with what a backtrace needs, and the same bytes wherever the source lies.
add_library(spoor_release INTERFACE)
target_compile_options(spoor_release INTERFACE
  "$<$<CONFIG:Release>:-g1;-fstack-protector-strong;-D_FORTIFY_SOURCE=2;-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>")
target_link_options(spoor_release INTERFACE "$<$<CONFIG:Release>:LINKER:-z,relro,-z,now>")

# add_module(<folder> HEADERS ... SOURCES ... USES <modules> LIBRARIES <external targets>)
#
# One static library a folder. Its dependencies here are the complete list: the
# includes of the folder are held against them by tests/architecture.
function(add_module name)
  cmake_parse_arguments(ARG "" "" "HEADERS;SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(spoor_${name} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
  add_library(spoor::${name} ALIAS spoor_${name})
  target_include_directories(spoor_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  list(TRANSFORM ARG_USES PREPEND spoor::)
  target_link_libraries(spoor_${name} PUBLIC ${ARG_USES} ${ARG_LIBRARIES} PRIVATE spoor_warnings spoor_release)
endfunction()
