# weft_embed(target name files...) embeds text files into a target as
#
#   std::span<const weft::EmbeddedFile> weft::name();      // see weft/base/embedded.h
#
# in the given order. The build generates the source and updates it when a file changes.

function(weft_embed target name)
  set(files "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" NORMALIZE)
    list(APPEND files "${file}")
  endforeach()

  # The list is a separate file, so that removing a file also triggers an update.
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${name}.list")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(CONFIGURE OUTPUT "${list}" CONTENT "@files@" @ONLY)
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DNAME=${name}" "-DLIST=${list}" "-DROOT=${CMAKE_SOURCE_DIR}"
            "-DOUTPUT=${source}" -P "${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake"
    DEPENDS "${list}" ${files} "${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake"
    COMMENT "Embedding ${name}"
    VERBATIM)
  set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # so that a changed text recompiles alone
  target_sources(${target} PRIVATE "${source}")
endfunction()
