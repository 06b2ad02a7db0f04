# muster_precompiled(TARGET sources|tests): compiles what is in TARGET with cmake/precompiled/{sources,tests}.h parsed
# before. Half of a build's time was spent in the same headers (docs/adr/0010). CMake's own target_precompile_headers
# makes one for each target and puts the folder's path into it, so that ccache finds nothing again in another clone.
#
# Beside each one lies a .sum of what went into it, which is what ccache looks at (CCACHE_PCH_EXTSUM).
option(MUSTER_PRECOMPILE "parse common headers once" ON)

# Tests are compiled without optimisation: they are many, and each runs once.
set(MUSTER_TEST_OPTIONS -O0)

function(muster_make_precompiled kind)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
  get_directory_property(options COMPILE_OPTIONS)
  list(APPEND flags ${options} ${CMAKE_CXX23_STANDARD_COMPILE_OPTION} -pthread -DFMT_SHARED ${ARGN})
  set(header ${CMAKE_BINARY_DIR}/precompiled/${kind}.h)
  set(inputs ${CMAKE_SOURCE_DIR}/cmake/precompiled/sources.h ${CMAKE_SOURCE_DIR}/cmake/precompiled/${kind}.h)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(output ${header}.gch)
  else()
    set(output ${header}.pch)
    list(APPEND flags -Xclang -fno-pch-timestamp)
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${inputs} ${CMAKE_BINARY_DIR}/precompiled
    COMMAND sh -c "\"$@\" -E -P ${header} | sha256sum >${output}.sum" sh ${CMAKE_CXX_COMPILER} ${flags} -x c++-header
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c++-header ${header} -o ${output}
    DEPENDS ${inputs}
    COMMENT "precompiled: ${kind}" VERBATIM)
  add_custom_target(muster_precompiled_${kind} DEPENDS ${output})
  set_property(TARGET muster_precompiled_${kind} PROPERTY MUSTER_OUTPUT ${output})
endfunction()

function(muster_precompiled target kind)
  if(NOT MUSTER_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET muster_precompiled_${kind})
    set(options)
    if(kind STREQUAL "tests")
      set(options ${MUSTER_TEST_OPTIONS} -DGTEST_HAS_PTHREAD=1)
    elseif(MUSTER_FUZZ)
      set(options -fsanitize=fuzzer-no-link)
    endif()
    muster_make_precompiled(${kind} ${options})
  endif()
  get_target_property(output muster_precompiled_${kind} MUSTER_OUTPUT)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${output})
  # Relative to the build tree, where the compiler runs: the same in every clone.
  file(RELATIVE_PATH relative ${CMAKE_BINARY_DIR} ${output})
  target_compile_definitions(${target} PRIVATE FMT_SHARED)
  target_compile_options(${target} PRIVATE -pthread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    string(REGEX REPLACE "\\.gch$" "" relative ${relative})
    target_compile_options(${target} PRIVATE "SHELL:-include ${relative}" -Winvalid-pch -fpch-preprocess)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-include-pch ${relative}")
  endif()
endfunction()
