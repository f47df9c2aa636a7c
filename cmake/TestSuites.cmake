# Read by ctest: one test for each suite of a googletest program. A process for each single test took longer to start than
# most tests run. Expects `program`, its path, and the `environment` of its tests.
execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  # Not built yet, or it cannot start: then there is one test, which fails and says why.
  add_test("${program}" "${program}")
  return()
endif()
string(REPLACE "\n" ";" lines "${listed}")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.( |$)")  # "Suite." or "Values/Suite.  # what its values are"; tests are indented
    add_test("${CMAKE_MATCH_1}" "${program}" "--gtest_filter=${CMAKE_MATCH_1}.*")
    set_tests_properties("${CMAKE_MATCH_1}" PROPERTIES TIMEOUT 300 ENVIRONMENT "${environment}")
  endif()
endforeach()
