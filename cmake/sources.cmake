# nori_sources(FILES...): adds files beside the calling list to the library.
function(nori_sources)
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
    target_sources(nori_objects PRIVATE ${ARGN})
endfunction()

# nori_isa_flags(LEVEL FILES...): compiles files beside the calling list with the instructions of a
# CPU level. Such files hold static functions and one function that fills the table of kernels.
function(nori_isa_flags level)
    set(avx512 "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c")
    if(level STREQUAL "avx2")
        set(flags "-mavx2;-mfma;-mf16c")
    elseif(level STREQUAL "avx512")
        set(flags "${avx512}")
    elseif(level STREQUAL "amx")
        set(flags "${avx512};-mavx512vbmi;-mamx-tile;-mamx-int8")
    else()
        message(FATAL_ERROR "no such CPU level: ${level}")
    endif()
    # Loops of constant length unroll only at -O3.
    list(APPEND flags "$<$<CONFIG:Release>:-O3>")
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()
