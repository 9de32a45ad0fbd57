// Owns PTX text -> tokens, one at a time, with their lines (PTX ISA 4.1-4.5). Private to the room;
// knows no grammar. Never reads outside the text, never allocates for a token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxb::ptx {

struct Token {
  enum class Kind : uint8_t {
    End,
    Identifier,   // foo, %r1, $L__BB0_1, _
    Directive,    // ".reg": text without the dot, "::" included
    Integer,      // bits, is_unsigned
    Float32,      // 0fXXXXXXXX: bits
    Float64,      // 0dX..., 1.5e3: bits
    String,       // text between the quotes
    Punctuation,  // one character of text, or two of << >> <= >= == != && ||
    Broken,       // text is what was there, problem says why
  };
  Kind kind = Kind::End;
  std::string_view text;
  uint64_t bits = 0;
  bool is_unsigned = false;
  int line = 1;
  const char* problem = nullptr;

  bool is(char c) const { return kind == Kind::Punctuation && text.size() == 1 && text[0] == c; }
  bool is(std::string_view punctuation) const {
    return kind == Kind::Punctuation && text == punctuation;
  }
  bool is_word(std::string_view word) const { return kind == Kind::Identifier && text == word; }
  bool is_directive(std::string_view word) const { return kind == Kind::Directive && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  // The rest of a mnemonic whose first identifier is `first` (the token read last): "ld" ->
  // "ld.global.f32". White space before a dot is allowed; then `storage` holds the joined spelling.
  std::string_view mnemonic(const Token& first, std::string& storage);
  // Whether the next significant character is `c` (a lone one for ':'); consumes nothing.
  bool at(char c);
  // Skips to behind the '}' that closes a '{' already read. False: the text ends first.
  bool skip_braces();

 private:
  void skip_blank();
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Token number();
  Token decimal_float(size_t begin);
  Token float_bits(size_t begin, Token::Kind kind, size_t digits);
  Token string();
  Token punctuation();
  Token token(Token::Kind kind, size_t begin) const;
  Token broken(size_t begin, const char* problem) const;

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int token_line_ = 1;
  const char* blank_problem_ = nullptr;
};

bool is_name_start(char c);  // letters, '_', '$', '%'
bool is_name_part(char c);   // letters, digits, '_', '$'

}  // namespace ptxb::ptx
