# How every target is compiled: the language level, warnings, sanitizers, and the fast
# tools (ccache, mold, precompiled headers) where the machine has them.

add_library(weft_compile_options INTERFACE)
add_library(weft::compile_options ALIAS weft_compile_options)
target_compile_features(weft_compile_options INTERFACE cxx_std_20)
target_compile_options(weft_compile_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # On aarch64 g++ notes, wherever a pair is returned, that its 10.1 release mended an ABI.
  target_compile_options(weft_compile_options INTERFACE -Wno-psabi)
  # g++ 13 takes every function that is given a temporary and returns a reference for a danger.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(weft_compile_options INTERFACE -Wno-dangling-reference)
  endif()
endif()
# Reports of a failed check name files as the repository does, wherever it was built.
target_compile_options(weft_compile_options INTERFACE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
if(WEFT_WARNINGS_AS_ERRORS)
  target_compile_options(weft_compile_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What only the optimizer suspects differs with every release of g++: shown, but no error.
    target_compile_options(weft_compile_options INTERFACE
      -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=restrict -Wno-error=free-nonheap-object)
  endif()
endif()

if(WEFT_SANITIZE)
  target_compile_options(weft_compile_options INTERFACE
    -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(weft_compile_options INTERFACE -fsanitize=${WEFT_SANITIZE})
  # A target's own options come before these, where -fsanitize would undo them: what it goes without is a property.
  if(WEFT_SANITIZE MATCHES "undefined")
    # Line numbers are a tenth of the time that clang takes; g++ wants them as in what it precompiled.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(weft_compile_options INTERFACE "$<$<BOOL:$<TARGET_PROPERTY:WEFT_UNTRACED>>:-g0>")
    endif()
    set(unwatched "$<TARGET_PROPERTY:WEFT_UNWATCHED>")
    target_compile_options(weft_compile_options INTERFACE
      "$<$<BOOL:${unwatched}>:-fno-sanitize=$<JOIN:${unwatched},$<COMMA>>>")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks that sanitizers insert lead g++ to see uninitialized values where there are none.
    target_compile_options(weft_compile_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Its checks of 128-bit products call a function that libgcc does not have.
    target_link_options(weft_compile_options INTERFACE -rtlib=compiler-rt -unwindlib=libgcc)
  endif()
  # Without -O1 the sanitized tests take minutes; with it the stack traces are still good. What only tests
  # runs once: there it would cost more to compile than it saves.
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(weft_compile_options INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:WEFT_UNOPTIMIZED>>,-O0,-O1>)
  endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Without this ccache refuses sources that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${WEFT_CCACHE}")
endif()

find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  target_link_options(weft_compile_options INTERFACE -fuse-ld=mold)
endif()

# The standard headers that nearly every source reads, read once. Targets with the same compile
# options share the one of weft_base, so they must link weft::compile_options and nothing odd.
function(weft_precompile target)
  if(NOT WEFT_PRECOMPILE)
    return()
  endif()
  set(headers <algorithm> <functional> <map> <memory> <optional> <span> <string> <string_view>
    <unordered_map> <variant> <vector> <fmt/format.h>)
  # Most files of these speak JSON, whose header takes longer to read than all others together.
  if(target MATCHES "^weft_(formats|explain|session)$")
    target_precompile_headers(${target} PRIVATE ${headers} <nlohmann/json.hpp>)
  elseif(target MATCHES "^weft_(base|rule)$")  # base is optimized in the tests' build, rule is not
    target_precompile_headers(${target} PRIVATE ${headers})
  elseif(target MATCHES "^weft_(collective|search|transport|comm)$")
    target_precompile_headers(${target} REUSE_FROM weft_rule)
    return()
  else()
    target_precompile_headers(${target} REUSE_FROM weft_base)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)  # for ccache
  endif()
endfunction()
