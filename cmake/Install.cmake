# The shared library with the C API, and the files of `make install`:
#
#   bin/weft                                the program
#   lib/libweft.so.0, include/weft/*.h      the library (docs/c_api.md)
#   lib/pkgconfig/weft.pc, lib/cmake/weft/  for pkg-config and find_package(weft)
#   lib/weft/weft_mpi_*.so                  MPI plugins, where program and library look for them
#
# Models, clusters, rules and algorithms are embedded in the program and the library. The
# installation is relocatable: it contains no absolute paths.

include(CMakePackageConfigHelpers)

set(public_headers "${CMAKE_SOURCE_DIR}/src/weft/app/session/weft.h" "${CMAKE_SOURCE_DIR}/src/weft/communication/comm/weft_comm.h")

# Links the layers' archives into the library. A linker takes from archives only what is referenced,
# so one function of each source with exported functions is named as undefined.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/library.cpp" CONTENT "// libweft.so has no source of its own: see cmake/Install.cmake.\n")
add_library(weft_library SHARED "${CMAKE_BINARY_DIR}/library.cpp")
add_library(weft::weft ALIAS weft_library)
set(exports "${CMAKE_SOURCE_DIR}/cmake/exports.map")
set_target_properties(weft_library PROPERTIES
  OUTPUT_NAME weft
  EXPORT_NAME weft
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  PUBLIC_HEADER "${public_headers}"
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}"
  LINK_DEPENDS "${exports}")
target_link_libraries(weft_library PRIVATE weft::session)
target_link_options(weft_library PRIVATE
  LINKER:--version-script=${exports} LINKER:--undefined=weft_session_open LINKER:--undefined=weft_connect
  LINKER:--undefined=weft_all_reduce LINKER:--undefined=weft_send_tagged)
# The wheel has libraries of the distribution beside libweft.so; a DT_RPATH also holds for those that they need.
# `make install` removes it.
set_target_properties(weft_library PROPERTIES BUILD_RPATH "$ORIGIN")
set_target_properties(weft PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
target_link_options(weft_library PRIVATE LINKER:--disable-new-dtags)
target_link_options(weft PRIVATE LINKER:--disable-new-dtags)
if(NOT WEFT_SANITIZE)  # the program provides the sanitizers' runtime
  target_link_options(weft_library PRIVATE LINKER:-z,defs)
endif()
target_include_directories(weft_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

add_custom_target(installed DEPENDS weft weft_library)  # the prerequisites of `cmake --install`
install(TARGETS weft RUNTIME)
install(TARGETS weft_library EXPORT weft
  PUBLIC_HEADER DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft")
foreach(flavour openmpi mpich)
  if(TARGET weft_mpi_${flavour})
    add_dependencies(installed weft_mpi_${flavour})
    install(TARGETS weft_mpi_${flavour} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/weft")
  endif()
endforeach()

# pkg-config: paths relative to the .pc file.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE lib_folder)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE include_folder)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE prefix_from_pkgconfig)
configure_file("${CMAKE_SOURCE_DIR}/cmake/weft.pc.in" "${CMAKE_BINARY_DIR}/weft.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/weft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
install(EXPORT weft NAMESPACE weft:: FILE weftConfig.cmake DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/weftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/weftConfigVersion.cmake" DESTINATION "${package}")
