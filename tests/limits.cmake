# What a session may cost: time to create, memory, threads, allocations. Each test has its figure.
nori_test(creation full test_creation.c)
set_tests_properties(creation PROPERTIES RUN_SERIAL ON)
nori_test(memory full test_memory.c)
set_tests_properties(memory PROPERTIES RUN_SERIAL ON)
nori_test(steady fast test_steady.c)
nori_test(cpu_half full test_cpu_half.c)
set_tests_properties(cpu_half PROPERTIES RUN_SERIAL ON)
# Models that torch exports, against torch's own outputs; they are made once, outside the tree.
set(NORI_TORCH_EXPORTER "${NORI_SHARED_DIR}/tools/export_torch_models.py" CACHE FILEPATH
    "script that exports models of torch with torch's outputs")
if(DEFINED ENV{NORI_TORCH_MODELS})
    set(torch_cache $ENV{NORI_TORCH_MODELS})
else()
    set(torch_cache ${PROJECT_BINARY_DIR}/torch)
endif()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND EXISTS ${NORI_TORCH_EXPORTER})
    add_test(NAME torch COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/run_torch.py
        --nori $<TARGET_FILE:nori> --exporter ${NORI_TORCH_EXPORTER} --cache ${torch_cache})
    set_tests_properties(torch PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
else()
    message(STATUS "no exporter of torch models: test `torch` left out")
endif()
