# What a session may cost: time to create, memory, threads, allocations. Each test has its figure.
nori_test(creation full test_creation.c)
set_tests_properties(creation PROPERTIES RUN_SERIAL ON)
nori_test(memory full test_memory.c)
set_tests_properties(memory PROPERTIES RUN_SERIAL ON)
nori_test(steady fast test_steady.c)
