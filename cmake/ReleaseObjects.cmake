# weft_release_objects(VARIABLE SOURCE...) -- sets VARIABLE to objects of these sources of
# weft_device, compiled as in a release: by g++ at -O3 without sanitizers, whatever compiler this
# build uses. Empty if g++ is not installed.
find_program(WEFT_RELEASE_COMPILER g++)
mark_as_advanced(WEFT_RELEASE_COMPILER)

function(weft_release_objects variable)
  set(objects "")
  if(WEFT_RELEASE_COMPILER)
    set(definitions "$<TARGET_PROPERTY:weft_device,COMPILE_DEFINITIONS>")
    set(folders "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:weft_device,INCLUDE_DIRECTORIES>>")
    foreach(source IN LISTS ARGN)
      cmake_path(GET source STEM name)
      set(object "${CMAKE_CURRENT_BINARY_DIR}/release_objects/${name}.o")
      add_custom_command(OUTPUT "${object}"
        COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${WEFT_RELEASE_COMPILER}" -std=c++20 -O3 -DNDEBUG -fPIC
          -fvisibility=hidden -fvisibility-inlines-hidden -w
          "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>" "-I$<JOIN:${folders},;-I>"
          -MD -MF "${object}.d" -c "${source}" -o "${object}"
        DEPENDS "${source}" DEPFILE "${object}.d" COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Building ${name} as in a release")
      list(APPEND objects "${object}")
    endforeach()
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  endif()
  set(${variable} "${objects}" PARENT_SCOPE)
endfunction()
