# Source files that need ISA flags of their own. They hold static functions and one init only.
function(nori_isa_sources level)
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
        return()
    endif()
    if(level STREQUAL "avx2")
        set(flags "-mavx2;-mfma;-mf16c")
    elseif(level STREQUAL "avx512")
        set(flags "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c")
    endif()
    # Loops of constant length unroll only at -O3.
    list(APPEND flags "$<$<CONFIG:Release>:-O3>")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()
