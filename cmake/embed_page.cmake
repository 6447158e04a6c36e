# cmake -DOUTPUT=page_files.cpp -DFOLDER=daemon/page "-DFILES=index.html;vendor/a.js" -P embed_page.cmake
#
# Writes the C++ source that holds the files of the page, plain and compressed. The same files give the same bytes.

set(arrays "")
set(entries "")
set(number 0)

# Appends an array with the bytes of `file`, and sets `size` to their number.
function(add_array name file)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char ${name}[] = {${bytes}};\n")
  set(arrays "${arrays}" PARENT_SCOPE)
endfunction()

foreach(file IN LISTS FILES)
  set(plain "${FOLDER}/${file}")
  get_filename_component(name "${file}" NAME)
  set(zipped "${OUTPUT}.${number}.gz")
  execute_process(COMMAND gzip -9nc "${plain}" OUTPUT_FILE "${zipped}" COMMAND_ERROR_IS_FATAL ANY)
  add_array(plain_${number} "${plain}")
  add_array(gzip_${number} "${zipped}")
  file(REMOVE "${zipped}")
  file(SHA256 "${plain}" digest)
  string(SUBSTRING "${digest}" 0 32 digest)
  string(APPEND entries "    {\"${name}\", \"${digest}\", {plain_${number}, sizeof(plain_${number})},\n"
                        "     {gzip_${number}, sizeof(gzip_${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Made by cmake/embed_page.cmake.
#include \"daemon/api/page.h\"

namespace spoor::daemon {
namespace {

${arrays}
constexpr PageFile files[] = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() { return files; }

}  // namespace spoor::daemon
")
