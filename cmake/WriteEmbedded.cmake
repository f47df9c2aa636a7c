# Run by Embed.cmake: writes OUTPUT, a C++ source with the function NAME that returns the files
# listed in LIST, with their paths relative to ROOT.

cmake_minimum_required(VERSION 3.25)

# C++ compilers must accept literals of 64 KiB; a file is split at line ends into much shorter
# pieces.
set(piece_bytes 8192)

function(append_literal variable text)
  set(literal "")
  string(LENGTH "${text}" left)
  while(left GREATER 0)
    string(SUBSTRING "${text}" 0 ${piece_bytes} piece)
    if(left GREATER piece_bytes)
      string(FIND "${piece}" "\n" end REVERSE)
      if(end LESS 0)
        string(FIND "${text}" "\n" end)  # one long line: take it whole
      endif()
      if(end GREATER_EQUAL 0)
        math(EXPR end "${end} + 1")
        string(SUBSTRING "${text}" 0 ${end} piece)
      else()
        set(piece "${text}")
      endif()
    endif()
    string(LENGTH "${piece}" taken)
    string(SUBSTRING "${text}" ${taken} -1 text)
    string(LENGTH "${text}" left)
    string(APPEND literal "\n     R\"weft(${piece})weft\"")
  endwhile()
  if(literal STREQUAL "")
    set(literal " \"\"")
  endif()
  set(${variable} "${${variable}}${literal}" PARENT_SCOPE)
endfunction()

file(READ "${LIST}" files)
set(entries "")
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE path)
  file(READ "${file}" text)
  string(FIND "${text}" ")weft\"" terminator)
  if(terminator GREATER_EQUAL 0)
    message(FATAL_ERROR "cannot embed ${path}: it holds the text )weft\"")
  endif()
  string(APPEND entries "    {\"${path}\",")
  append_literal(entries "${text}")
  string(APPEND entries "},\n")
endforeach()

if(entries STREQUAL "")
  set(body "  return {};\n")
else()
  set(body "  static constexpr EmbeddedFile kFiles[] = {\n${entries}  };\n  return kFiles;\n")
endif()
file(WRITE "${OUTPUT}" "// Written by cmake/WriteEmbedded.cmake.
#include \"weft/base/embedded.h\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace weft {

std::span<const EmbeddedFile> ${NAME}();

std::span<const EmbeddedFile> ${NAME}() {
${body}}

}  // namespace weft
")
