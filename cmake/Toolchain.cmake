# Compile options of all targets: language standard, warnings, sanitizers, and the tools that speed
# up builds (ccache, mold, precompiled headers) if they are installed.

add_library(weft_compile_options INTERFACE)
add_library(weft::compile_options ALIAS weft_compile_options)
target_compile_features(weft_compile_options INTERFACE cxx_std_20)
target_compile_options(weft_compile_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # On aarch64, g++ notes wherever a pair is returned that its ABI changed in release 10.1.
  target_compile_options(weft_compile_options INTERFACE -Wno-psabi)
  # A unity build includes its source files, and g++ treats every included file as a header. In a
  # release most files of a folder compile together, so local names may shadow names of other files.
  # The test build reports real shadowing.
  if(WEFT_UNITY)
    target_compile_options(weft_compile_options INTERFACE -Wno-subobject-linkage $<$<CONFIG:Release>:-Wno-shadow>)
  endif()
  # Warnings of the optimizer differ between releases of g++ and are usually wrong. A user who
  # builds a release cannot act on them; the test build shows them.
  target_compile_options(weft_compile_options INTERFACE "$<$<CONFIG:Release>:-Wno-array-bounds;-Wno-stringop-overflow;\
-Wno-stringop-overread;-Wno-restrict;-Wno-free-nonheap-object;-Wno-maybe-uninitialized>")
  # g++ 13 warns about every function that takes a temporary and returns a reference.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(weft_compile_options INTERFACE -Wno-dangling-reference)
  endif()
  # With the default heap limits, garbage collection takes a tenth of the compile time of a release;
  # with these, little.
  target_compile_options(weft_compile_options INTERFACE
    "$<$<CONFIG:Release>:--param=ggc-min-heapsize=524288;--param=ggc-min-expand=100>")
endif()
# Failed checks report paths relative to the repository, wherever it was built.
target_compile_options(weft_compile_options INTERFACE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
if(WEFT_WARNINGS_AS_ERRORS)
  target_compile_options(weft_compile_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Warnings of the optimizer differ between releases of g++: show them, but not as errors.
    target_compile_options(weft_compile_options INTERFACE
      -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=restrict -Wno-error=free-nonheap-object)
  endif()
endif()

if(WEFT_SANITIZE)
  target_compile_options(weft_compile_options INTERFACE
    -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(weft_compile_options INTERFACE -fsanitize=${WEFT_SANITIZE})
  # -fsanitize would override the options of a target, which come earlier, so targets disable checks
  # by a property.
  if(WEFT_SANITIZE MATCHES "undefined")
    # Line numbers cost clang a tenth of its time. g++ needs the same -g option as in its
    # precompiled headers.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(weft_compile_options INTERFACE "$<$<BOOL:$<TARGET_PROPERTY:WEFT_UNTRACED>>:-g0>")
    endif()
    set(unwatched "$<TARGET_PROPERTY:WEFT_UNWATCHED>")
    target_compile_options(weft_compile_options INTERFACE
      "$<$<BOOL:${unwatched}>:-fno-sanitize=$<JOIN:${unwatched},$<COMMA>>>")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With the sanitizers' checks, g++ reports uninitialized values where there are none.
    target_compile_options(weft_compile_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Clang's overflow check of 128-bit products calls a function that libgcc lacks.
    target_link_options(weft_compile_options INTERFACE -rtlib=compiler-rt -unwindlib=libgcc)
  endif()
  # Without -O1 the sanitized tests take minutes, and stack traces are still usable with it. Test
  # code runs only once, so there -O1 would cost more to compile than it saves.
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(weft_compile_options INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:WEFT_UNOPTIMIZED>>,-O0,-O1>)
    # Checks make functions large, and clang's compile time grows faster than their size. With less
    # inlining, and with checks by calls in large functions, it takes half the time. Kernels keep
    # full inlining.
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
  # ccache needs the sloppiness for sources with precompiled headers, and the base folder to share
  # results between checkouts.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${WEFT_CCACHE}")
endif()

find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  target_link_options(weft_compile_options INTERFACE -fuse-ld=mold)
endif()

# Most of the compile time goes into headers and template instantiations. With WEFT_UNITY, several
# sources of a target are compiled at a time: up to 40 in a release, which is not recompiled after
# each edit.
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

# For targets without long loops, which a release need not optimize for speed. Small functions are
# still inlined, since that leaves less code to compile.
function(weft_calm target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-finline-small-functions;-foptimize-sibling-calls>")
  endif()
endfunction()

# Precompiles the headers that most sources of a layer include: standard headers, the plan graph for
# layers that work on plans, and JSON, whose header takes longer than all others together. Layers
# with the same compile options share the precompiled header of the first, so they must link
# weft::compile_options and no other options.
#   optimized in the test build       base <- cluster plan memory       ops <- spmd distribute program sim exec
#   not optimized                     chunks <- algorithm check compile one_sided transport comm
#                                     language <- train rule equation cost search exchange run measure
#                                     formats <- text      explain, session
function(weft_precompile target)
  if(NOT WEFT_PRECOMPILE OR WEFT_UNITY)  # a unity build includes headers rarely anyway
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
  elseif(target STREQUAL "weft_text")
    target_precompile_headers(${target} REUSE_FROM weft_formats)
    return()
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
