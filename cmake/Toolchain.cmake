# How every target is compiled: the language level, warnings, sanitizers, and the fast
# tools (ccache, mold, precompiled headers) where the machine has them.

add_library(weft_compile_options INTERFACE)
add_library(weft::compile_options ALIAS weft_compile_options)
target_compile_features(weft_compile_options INTERFACE cxx_std_20)
target_compile_options(weft_compile_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # On aarch64 g++ notes, wherever a pair is returned, that its 10.1 release mended an ABI.
  target_compile_options(weft_compile_options INTERFACE -Wno-psabi)
  # Files that compile together are included, and g++ takes every included file for a header. In a release, where most of a
  # folder does, a local name hides that of another file: the tests' build shows who hides a name of their own.
  if(WEFT_UNITY)
    target_compile_options(weft_compile_options INTERFACE -Wno-subobject-linkage $<$<CONFIG:Release>:-Wno-shadow>)
  endif()
  # What only the optimizer suspects differs with every release of g++, and is wrong more often than not. A user who builds
  # a release can do nothing about it; the tests' build shows it.
  target_compile_options(weft_compile_options INTERFACE "$<$<CONFIG:Release>:-Wno-array-bounds;-Wno-stringop-overflow;\
-Wno-stringop-overread;-Wno-restrict;-Wno-free-nonheap-object;-Wno-maybe-uninitialized>")
  # g++ 13 takes every function that is given a temporary and returns a reference for a danger.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(weft_compile_options INTERFACE -Wno-dangling-reference)
  endif()
  # Looking for memory to use again, from 100 MB on, is a tenth of what a release takes to compile: from 1 GB on it is little.
  target_compile_options(weft_compile_options INTERFACE
    "$<$<CONFIG:Release>:--param=ggc-min-heapsize=524288;--param=ggc-min-expand=100>")
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
    # Checks make functions large, and the time that clang takes for one grows faster than it does. Where little is
    # inlined, and what is large still calls its checks, it takes half of the time. Kernels are inlined.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND WEFT_SANITIZE MATCHES "address")
      foreach(limit inline-threshold=25 asan-instrumentation-with-call-threshold=500)
        target_compile_options(weft_compile_options INTERFACE
          "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:WEFT_INLINED>>>:SHELL:-mllvm -${limit}>")
      endforeach()
    endif()
  endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Sloppiness, since ccache refuses sources that use a precompiled header otherwise; the folder, so that a second
  # checkout finds what the first has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${WEFT_CCACHE}")
endif()

find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  target_link_options(weft_compile_options INTERFACE -fuse-ld=mold)
endif()

# Most of the time goes into reading headers and making functions of templates, over and over: with WEFT_UNITY the sources of
# a target are compiled several at a time. In a release that is half of a folder, or all of it: nobody compiles it again
# after each edit.
function(weft_unity target)
  if(NOT WEFT_UNITY)
    return()
  endif()
  set(size 12)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR batches "(${count} + 39) / 40")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# What a release need not optimize for speed: no loop of it is long. Small functions are inlined, as that makes less to compile.
function(weft_calm target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-finline-small-functions;-foptimize-sibling-calls>")
  endif()
endfunction()

# Headers that most sources of a layer read, read once: the standard ones, the plan graph where a layer works on plans,
# JSON where it speaks it (its header takes longer to read than all others together). Layers whose compile options agree share
# what the first of them precompiled; so they must link weft::compile_options and nothing odd.
#   optimized in the tests' build     base <- cluster plan memory       ops <- spmd distribute program sim exec
#   not                               chunks <- algorithm check compile one_sided transport comm
#                                     language <- train rule equation cost search exchange run measure
#                                     formats, explain, session
function(weft_precompile target)
  if(NOT WEFT_PRECOMPILE OR WEFT_UNITY)  # which reads them seldom as it is
    return()
  endif()
  set(headers <algorithm> <functional> <map> <memory> <optional> <span> <string> <string_view>
    <unordered_map> <variant> <vector> <fmt/format.h>)
  set(weft "${CMAKE_SOURCE_DIR}/src/weft")
  if(target MATCHES "^weft_(base|chunks)$")
  elseif(target MATCHES "^weft_(ops|language)$")
    list(APPEND headers "${weft}/plan/graph/graph.h" "${weft}/plan/ops/evaluation.h")
  elseif(target STREQUAL "weft_formats")
    list(APPEND headers <nlohmann/json.hpp>)
  elseif(target STREQUAL "weft_explain")
    list(APPEND headers <nlohmann/json.hpp> "${weft}/plan/graph/graph.h")
  elseif(target MATCHES "^weft_(session|command)$")
    list(APPEND headers <nlohmann/json.hpp> "${weft}/language/bind.h" "${weft}/planner/search/distribution/choose_distribution.h" "${weft}/runtime/exec/rank.h")
  elseif(target MATCHES "^weft_(algorithm|check|compile|one_sided|transport|comm)$")
    target_precompile_headers(${target} REUSE_FROM weft_chunks)
    return()
  elseif(target MATCHES "^weft_(train|rule|equation|cost|search|exchange|run|measure)$")
    target_precompile_headers(${target} REUSE_FROM weft_language)
    return()
  elseif(target MATCHES "^weft_(spmd|distribute|program|sim|exec)$")
    target_precompile_headers(${target} REUSE_FROM weft_ops)
    return()
  else()
    target_precompile_headers(${target} REUSE_FROM weft_base)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)  # for ccache
  endif()
endfunction()
