// SPDX-License-Identifier: Apache-2.0
#include "build/elf.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace ptxb::build {

namespace {

// Bounds of what a candidate's library may reasonably have.
constexpr uint64_t kMaxSections = 65536;
constexpr uint64_t kMaxSymbols = 1'000'000;

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Error fault(const std::string& what) const {
    return bad_input(name_ + ": not a usable shared library: " + what);
  }

  template <class T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::optional<std::string_view> span(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    return bytes_.substr(offset, size);
  }

 private:
  std::string_view bytes_;
  std::string name_;
};

std::optional<std::string> text_at(std::string_view strings, uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  size_t end = strings.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(strings.substr(offset, end - offset));
}

struct Sections {
  std::vector<Elf64_Shdr> all;
  // The only one of its type: assembler text can add sections of any type, and a second one would
  // hide the real one.
  const Elf64_Shdr* only(uint32_t type) const {
    const Elf64_Shdr* found = nullptr;
    for (const Elf64_Shdr& one : all) {
      if (one.sh_type != type) continue;
      if (found) return nullptr;
      found = &one;
    }
    return found;
  }
};

Result<Sections> read_sections(const Reader& reader) {
  auto header = reader.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return reader.fault("no ELF header");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return reader.fault("not 64-bit little-endian");
  }
  if (header->e_type != ET_DYN) return reader.fault("not a shared object");
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return reader.fault("no section headers");
  uint64_t count = header->e_shnum;
  if (count == 0 || count > kMaxSections) return reader.fault("bad number of sections");
  Sections sections;
  for (uint64_t i = 0; i < count; ++i) {
    // e_shoff is a full 64-bit number: checked before it is added to.
    if (header->e_shoff > UINT64_MAX - i * sizeof(Elf64_Shdr))
      return reader.fault("section headers out of range");
    auto section = reader.at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return reader.fault("section headers out of range");
    sections.all.push_back(*section);
  }
  return sections;
}

Result<std::string_view> content(const Reader& reader, const Elf64_Shdr& section,
                                 const char* what) {
  auto bytes = reader.span(section.sh_offset, section.sh_size);
  if (!bytes) return reader.fault(std::string(what) + " out of range");
  return *bytes;
}

Result<std::string_view> linked_strings(const Reader& reader, const Sections& sections,
                                        const Elf64_Shdr& section) {
  if (section.sh_link >= sections.all.size() ||
      sections.all[section.sh_link].sh_type != SHT_STRTAB) {
    return reader.fault("no string table");
  }
  return content(reader, sections.all[section.sh_link], "string table");
}

// The loader goes by program headers and addresses: the sections must be the same things.
Result<void> same_as_loaded(const Reader& reader, const Elf64_Shdr& dynamic,
                            const Elf64_Shdr& symbols, std::string_view entries) {
  auto header = reader.at<Elf64_Ehdr>(0);
  bool found = false;
  for (uint64_t i = 0; header && i < header->e_phnum; ++i) {
    if (header->e_phoff > UINT64_MAX - i * sizeof(Elf64_Phdr)) break;
    auto program = reader.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!program) return reader.fault("program headers out of range");
    if (program->p_type == PT_DYNAMIC) found = program->p_offset == dynamic.sh_offset;
  }
  if (!found) return reader.fault("its dynamic section is not the one that would be loaded");
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB && entry.d_un.d_ptr == symbols.sh_addr) return {};
  }
  return reader.fault("its symbol table is not the one that would be loaded");
}

}  // namespace

bool DynamicSymbols::defines(std::string_view name) const {
  for (const Symbol& symbol : exported) {
    if (symbol.name == name) return true;
  }
  return false;
}

Result<DynamicSymbols> read_dynamic_symbols(std::string_view bytes, std::string_view name) {
  Reader reader(bytes, name);
  PTXB_TRY(Sections sections, read_sections(reader));
  const Elf64_Shdr* table = sections.only(SHT_DYNSYM);
  if (!table) return reader.fault("not exactly one table of dynamic symbols");
  PTXB_TRY(std::string_view symbols, content(reader, *table, "symbol table"));
  PTXB_TRY(std::string_view strings, linked_strings(reader, sections, *table));
  std::string_view versions;
  if (const Elf64_Shdr* section = sections.only(SHT_GNU_versym)) {
    PTXB_TRY(versions, content(reader, *section, "symbol versions"));
  }
  DynamicSymbols found;
  uint64_t count = symbols.size() / sizeof(Elf64_Sym);
  if (count > kMaxSymbols) return reader.fault("too many symbols");
  for (uint64_t i = 1; i < count; ++i) {  // number 0 is reserved
    Elf64_Sym raw;
    std::memcpy(&raw, symbols.data() + i * sizeof raw, sizeof raw);
    unsigned binding = ELF64_ST_BIND(raw.st_info), visibility = ELF64_ST_VISIBILITY(raw.st_other);
    if (binding == STB_LOCAL) continue;
    auto text = text_at(strings, raw.st_name);
    if (!text) return reader.fault("a symbol's name out of range");
    DynamicSymbols::Symbol symbol{*text, binding == STB_WEAK,
                                  ELF64_ST_TYPE(raw.st_info) == STT_FUNC, false};
    if (raw.st_shndx == SHN_UNDEF) {
      Elf64_Versym version = 0;
      if ((i + 1) * sizeof version <= versions.size()) {
        std::memcpy(&version, versions.data() + i * sizeof version, sizeof version);
      }
      symbol.versioned = (version & 0x7fff) > VER_NDX_GLOBAL;
      found.undefined.push_back(std::move(symbol));
    } else if (visibility == STV_DEFAULT || visibility == STV_PROTECTED) {
      found.exported.push_back(std::move(symbol));
    }
  }
  const Elf64_Shdr* dynamic = sections.only(SHT_DYNAMIC);
  if (!dynamic) return reader.fault("not exactly one dynamic section");
  PTXB_TRY(std::string_view entries, content(reader, *dynamic, "dynamic section"));
  PTXB_TRY(std::string_view names, linked_strings(reader, sections, *dynamic));
  PTXB_CHECK_OK(same_as_loaded(reader, *dynamic, *table, entries));
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED) continue;
    auto text = text_at(names, entry.d_un.d_val);
    if (!text) return reader.fault("a needed library's name out of range");
    found.needed.push_back(*text);
  }
  return found;
}

}  // namespace ptxb::build
