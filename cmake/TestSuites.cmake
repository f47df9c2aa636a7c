# Read by ctest: one test for each suite of a googletest program. A process for each single test took longer to start than
# most tests run. Expects `program`, its path and `name`, their `group`, the `environment` of its tests, and
# their `limit` of seconds.
execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  # Not built yet, or it cannot start: then there is one test, which fails and says why.
  add_test("${name}" "${program}")
  set_tests_properties("${name}" PROPERTIES LABELS "${group}")
  return()
endif()
string(REPLACE "\n" ";" lines "${listed}")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.( |$)")  # "Suite." or "Values/Suite.  # what its values are"; tests are indented
    set(test "${group}/${CMAKE_MATCH_1}")
    add_test("${test}" "${program}" "--gtest_filter=${CMAKE_MATCH_1}.*")
    set_tests_properties("${test}" PROPERTIES TIMEOUT ${limit} LABELS "${group}" ENVIRONMENT "${environment}")
  endif()
endforeach()
