# Embeds kernels/*.cl as arrays in gpu_kernels.h: run at configure time, again when one changes.
set(header "/* Made from src/providers/gpu/kernels by kernels.cmake. */\n")
foreach(name common elementwise conv gemm pool rows move)
    set(file ${CMAKE_CURRENT_LIST_DIR}/kernels/${name}.cl)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
    string(APPEND header "static const unsigned char gpu_kernels_${name}[] = {\n${bytes}\n};\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/gpu/gpu_kernels.h CONTENT "${header}" @ONLY)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/gpu_source.c PROPERTIES
    INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}/gpu)
