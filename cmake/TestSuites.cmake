# Included by ctest: adds one test per suite of a googletest program. Starting a process takes
# longer than most single tests. Reads `program` (a path), its `name`, and the `group`,
# `environment` and `limit` (in seconds) of its tests.
execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  # Not built yet, or it does not start: add one test, which fails with the reason.
  add_test("${name}" "${program}")
  set_tests_properties("${name}" PROPERTIES LABELS "${group}")
  return()
endif()
string(REPLACE "\n" ";" lines "${listed}")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.( |$)")  # "Suite." or "Suite/0.  # TypeParam = ..."; tests are indented
    set(test "${group}/${CMAKE_MATCH_1}")
    add_test("${test}" "${program}" "--gtest_filter=${CMAKE_MATCH_1}.*")
    set_tests_properties("${test}" PROPERTIES TIMEOUT ${limit} LABELS "${group}" ENVIRONMENT "${environment}")
  endif()
endforeach()
