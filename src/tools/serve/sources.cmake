# The server: a library of its own, which the core does not need, and the same as a module that the
# command loads when it is asked to serve. Both use the public headers only.
if(NOT NORI_MICROHTTPD_TARGET OR NOT NORI_JANSSON_TARGET)
    return()
endif()
set(folder ${CMAKE_CURRENT_LIST_DIR})

# The files of the page as bytes: what a browser gets is in the library.
set(page)
foreach(file page.html page.js page.css)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/page/${file})
    file(READ ${folder}/page/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "([^\n]{100})" "\\1\n" bytes "${bytes}")
    string(REPLACE "." "_" name ${file})
    string(APPEND page "static const unsigned char ${name}[] = {\n${bytes}\n};\n")
endforeach()
file(CONFIGURE OUTPUT serve_page_files.h CONTENT "${page}" @ONLY)

add_library(nori_serve_objects OBJECT)
foreach(name answer batch batch_proof clients elements http info json listen load model page parse parse_load
        queue routes scan start stats text types)
    target_sources(nori_serve_objects PRIVATE ${folder}/serve_${name}.c)
endforeach()
target_include_directories(nori_serve_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(nori_serve_objects PRIVATE ${NORI_MICROHTTPD_TARGET} ${NORI_JANSSON_TARGET} Threads::Threads)

add_library(nori_serve STATIC $<TARGET_OBJECTS:nori_serve_objects>)
target_include_directories(nori_serve INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(nori_serve PRIVATE ${NORI_MICROHTTPD_TARGET} ${NORI_JANSSON_TARGET} Threads::Threads m)

add_library(nori_module_serve MODULE $<TARGET_OBJECTS:nori_serve_objects>)
target_link_libraries(nori_module_serve PRIVATE ${NORI_MICROHTTPD_TARGET} ${NORI_JANSSON_TARGET} Threads::Threads m)
set_target_properties(nori_module_serve PROPERTIES PREFIX "" OUTPUT_NAME nori-serve
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
install(TARGETS nori_module_serve LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/nori)
install(FILES $<TARGET_FILE:nori_serve> DESTINATION ${CMAKE_INSTALL_LIBDIR})
