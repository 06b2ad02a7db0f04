# muster_compile_as(KIND TARGET): compiles what is in TARGET with the options of its kind, and with cmake/precompiled/
# {sources,tests}.h parsed before (docs/adr/0010: half of a build's time went into the same headers). Kinds: sources and
# tests; long_sources and long_tests of a folder whose tests try thousands of seeds.
#
# CMake's own target_precompile_headers makes one for each target and puts the folder's path into it, so that ccache finds
# nothing again in another clone. Beside each of ours lies a .sum of what went into it, which is what ccache looks at
# (CCACHE_PCH_EXTSUM), and compilers are given its path from the build tree, where they run.
option(MUSTER_PRECOMPILE "parse common headers once" ON)

set(MUSTER_OPTIONS_sources)
if(MUSTER_FUZZ)
  set(MUSTER_OPTIONS_sources -fsanitize=fuzzer-no-link)
endif()
set(MUSTER_OPTIONS_tests -O0)  # they are many, and each runs once
set(MUSTER_OPTIONS_long_sources ${MUSTER_OPTIONS_sources})
set(MUSTER_OPTIONS_long_tests)
if(MUSTER_SANITIZE)  # nothing else is optimised there, which makes these fifteen times slower
  list(APPEND MUSTER_OPTIONS_long_sources -O1)
  list(APPEND MUSTER_OPTIONS_long_tests -O1)
endif()

function(muster_make_precompiled kind)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
  get_directory_property(options COMPILE_OPTIONS)
  # With the macros of the targets that use it.
  list(APPEND flags ${options} ${MUSTER_OPTIONS_${kind}} ${CMAKE_CXX23_STANDARD_COMPILE_OPTION} -pthread
       -DFMT_SHARED -DGTEST_HAS_PTHREAD=1 -x c++-header)
  set(header ${CMAKE_BINARY_DIR}/precompiled/${kind}.h)
  string(REPLACE "long_" "" name ${kind})
  set(folder ${CMAKE_SOURCE_DIR}/cmake/precompiled)
  configure_file(${folder}/sources.h ${CMAKE_BINARY_DIR}/precompiled/sources.h COPYONLY)
  configure_file(${folder}/${name}.h ${header} COPYONLY)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(output ${header}.gch)
  else()
    set(output ${header}.pch)
    list(APPEND flags -Xclang -fno-pch-timestamp)
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND sh -c "\"$@\" -E -P ${header} | sha256sum >${output}.sum" sh ${CMAKE_CXX_COMPILER} ${flags}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${header} -o ${output}
    DEPENDS ${CMAKE_BINARY_DIR}/precompiled/sources.h ${header}
    COMMENT "precompiled: ${kind}" VERBATIM)
  add_custom_target(muster_precompiled_${kind} DEPENDS ${output})
  set_property(TARGET muster_precompiled_${kind} PROPERTY MUSTER_OUTPUT ${output})
endfunction()

function(muster_compile_as kind target)
  target_compile_options(${target} PRIVATE ${MUSTER_OPTIONS_${kind}})
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET muster_precompiled_${kind})
    muster_make_precompiled(${kind})
  endif()
  get_target_property(output muster_precompiled_${kind} MUSTER_OUTPUT)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${output})
  file(RELATIVE_PATH relative ${CMAKE_BINARY_DIR} ${output})
  target_compile_definitions(${target} PRIVATE FMT_SHARED GTEST_HAS_PTHREAD=1)
  target_compile_options(${target} PRIVATE -pthread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    string(REGEX REPLACE "\\.gch$" "" relative ${relative})
    target_compile_options(${target} PRIVATE "SHELL:-include ${relative}" -Winvalid-pch -fpch-preprocess)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-include-pch ${relative}")
  endif()
endfunction()
