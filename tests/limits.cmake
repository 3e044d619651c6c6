# What a session may cost: time to create, memory, threads, allocations. Each test has its figure.
nori_test(creation full test_creation.c)
set_tests_properties(creation PROPERTIES RUN_SERIAL ON)
