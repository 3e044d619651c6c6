# nori_embed(HEADER PREFIX USER FILES...): kernel sources as arrays PREFIX_<name> in HEADER, which USER
# includes. Made at configure time, again when a source changes.
function(nori_embed header prefix user)
    set(text "/* Made from kernel sources by gpu/kernels.cmake. */\n")
    foreach(file ${ARGN})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
        get_filename_component(name ${file} NAME_WE)
        file(READ ${file} hex HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
        string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
        string(APPEND text "static const unsigned char ${prefix}_${name}[] = {\n${bytes}\n};\n")
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embedded/${header} CONTENT "${text}" @ONLY)
    set_source_files_properties(${user} PROPERTIES
        INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endfunction()
