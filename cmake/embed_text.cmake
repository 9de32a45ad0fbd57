# Turns docs/cli.md into a string definition: help text and manual are one source.
file(READ ${INPUT} text)
string(LENGTH "${text}" length)
# Compilers limit one literal to 64 KiB; pieces are joined by juxtaposition.
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "R\"ptxb(${piece})ptxb\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT} "#include \"app/cli_text.h\"\nnamespace ptxb::app {\nconst std::string_view kCliText =\n${pieces};\n}\n")
