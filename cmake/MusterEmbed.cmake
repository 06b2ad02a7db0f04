# muster_embed(FILE HEADER): build/gen/HEADER is the text of FILE as a raw string literal, for #include.
function(muster_embed file header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/${header} CONTENT "R\"embedded(@text@)embedded\"\n" @ONLY)
endfunction()
