# Tests of the provider nnapi: against a double of Android's library, which looks at every call and
# computes; `lacking` is the same without one symbol.
foreach(kind double lacking)
    add_library(nnapi_${kind} MODULE
        nnapi_double.c
        nnapi_double_bytes.c
        nnapi_double_model.c
        nnapi_double_moves.c
        nnapi_double_rules.c
        nnapi_double_windows.c
    )
    set_target_properties(nnapi_${kind} PROPERTIES C_VISIBILITY_PRESET default)
    target_link_libraries(nnapi_${kind} PRIVATE m Threads::Threads)
    # what Android's header would declare
    target_compile_options(nnapi_${kind} PRIVATE -Wno-missing-prototypes)
endforeach()
target_compile_definitions(nnapi_lacking PRIVATE LACKING)
nori_test(nnapi_double fast
    nnapi_double.c
    nnapi_double_bytes.c
    nnapi_double_model.c
    nnapi_double_moves.c
    nnapi_double_rules.c
    nnapi_double_windows.c
    test_nnapi_double.c
)
target_compile_options(test_nnapi_double PRIVATE -Wno-missing-prototypes)
target_link_libraries(test_nnapi_double PRIVATE m)
foreach(name nnapi nnapi_bytes)
    nori_test(${name} fast test_${name}.c)
    add_dependencies(test_${name} nnapi_double nnapi_lacking)
    target_link_libraries(test_${name} PRIVATE m ${CMAKE_DL_LIBS})
    target_compile_definitions(test_${name} PRIVATE
        NNAPI_DOUBLE="$<TARGET_FILE:nnapi_double>"
        NNAPI_LACKING="$<TARGET_FILE:nnapi_lacking>"
    )
endforeach()
if(Python3_FOUND)
    add_test(NAME models_nnapi COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/run_nnapi.py
        --nori $<TARGET_FILE:nori> --models ${NORI_SHARED_DIR}/models
        --double $<TARGET_FILE:nnapi_double> --large skip --threads 1,2)
    set_tests_properties(models_nnapi PROPERTIES LABELS "full;models" TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
