// SPDX-License-Identifier: Apache-2.0
#include "shim/module_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "ptx/parse.h"

namespace ptxb::shim {

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50, kFatbinWrapperMagic = 0x466243b1;
constexpr uint8_t kAttributeParamBank = 0x0a, kAttributeKparamInfo = 0x17, kFormatSized = 0x04;

template <class T>
std::optional<T> at(const std::string& bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The text of a string table entry, "" when out of range.
std::string text_at(const std::string& bytes, const Elf64_Shdr& table, uint64_t offset) {
  if (table.sh_offset > bytes.size() || table.sh_size > bytes.size() - table.sh_offset ||
      offset >= table.sh_size)
    return {};
  const char* begin = bytes.data() + table.sh_offset + offset;
  return std::string(begin, strnlen(begin, table.sh_size - offset));
}

// .nv.info.<kernel>: a list of {format, attribute, size or value}; sized ones carry `size` more
// bytes.
Result<std::vector<KernelParam>> read_params(const std::string& info, const std::string& kernel) {
  std::vector<KernelParam> params;
  uint32_t bank_offset = 0;
  for (size_t i = 0; i + 4 <= info.size();) {
    auto format = static_cast<uint8_t>(info[i]), attribute = static_cast<uint8_t>(info[i + 1]);
    uint16_t size = *at<uint16_t>(info, i + 2);
    i += 4;
    if (format != kFormatSized) continue;
    if (info.size() - i < size) return bad_input("cubin: .nv.info." + kernel + " is cut short");
    if (attribute == kAttributeKparamInfo && size == 12) {
      // u32 index, u16 ordinal, u16 offset, u32 flags with the size in bits 18 and up
      uint16_t offset = *at<uint16_t>(info, i + 6);
      uint32_t bytes = *at<uint32_t>(info, i + 8) >> 18;
      params.push_back({offset, bytes});
    }
    if (attribute == kAttributeParamBank && size == 8) bank_offset = *at<uint16_t>(info, i + 4);
    i += size;
  }
  std::sort(params.begin(), params.end(), [](const KernelParam& a, const KernelParam& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  uint32_t end = 0;
  for (KernelParam& p : params) {
    // Offsets count from the parameters' place in the constant bank, alignment from the bank's
    // beginning: keep the latter, so that tensor maps lie at multiples of 64.
    p.offset_bytes += bank_offset % 64;
    if (p.offset_bytes < end || p.size_bytes == 0 ||
        p.offset_bytes + p.size_bytes > PlanLimits::kParamBytes) {
      return bad_input("cubin: parameters of " + kernel + " overlap or are too large");
    }
    end = p.offset_bytes + p.size_bytes;
  }
  return params;
}

Result<ModuleImage> read_ptx(const std::string& text) {
  PTXB_TRY(ptx::Module parsed, ptx::parse(text, "loaded module"));
  ModuleImage out;
  out.module.ptx = text;
  for (const ptx::Function& function : parsed.functions) {
    if (!function.is_entry || function.is_declaration) continue;
    KernelInfo kernel;
    kernel.name = function.name;
    for (const ptx::ParamPlace& place : ptx::param_layout(function)) {
      kernel.params.push_back({place.offset_bytes, place.size_bytes});
    }
    uint64_t shared = 0;
    for (const ptx::Variable& v : function.locals) {
      if (v.space == ptx::Space::Shared && !v.is_extern_array) {
        shared = round_up(shared, std::max<uint64_t>(v.alignment_bytes, 1)) + v.size_bytes;
      }
    }
    kernel.static_shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(shared, 1u << 20));
    uint64_t bound = function.required_threads.x ? function.required_threads.volume()
                                                 : function.max_threads.volume();
    if (bound) kernel.max_threads = static_cast<uint32_t>(std::min<uint64_t>(bound, 1024));
    kernel.required_cluster = function.required_cluster;
    out.module.kernels.push_back(std::move(kernel));
  }
  for (const ptx::Variable& v : parsed.variables) {
    if ((v.space == ptx::Space::Global || v.space == ptx::Space::Const) && !v.is_extern)
      out.variables[v.name] = v.size_bytes;
  }
  return out;
}

}  // namespace

Result<std::string> image_bytes(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == kFatbinMagic || magic == kFatbinWrapperMagic)
    return unsupported("a fat binary image");
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) {
    size_t length = strnlen(bytes, PlanLimits::kModuleBytes + 1);
    if (length > PlanLimits::kModuleBytes) return limit_error("a module image of more than 64 MiB");
    return std::string(bytes, length);
  }
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  uint64_t end = sizeof header;
  auto grow = [&end](uint64_t begin, uint64_t size) {
    if (begin < PlanLimits::kModuleBytes && size <= PlanLimits::kModuleBytes)
      end = std::max(end, begin + size);
    else
      end = PlanLimits::kModuleBytes + 1;
  };
  grow(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  grow(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (uint16_t i = 0; i < header.e_shnum && end <= PlanLimits::kModuleBytes; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) grow(section.sh_offset, section.sh_size);
  }
  if (end > PlanLimits::kModuleBytes) return limit_error("a module image of more than 64 MiB");
  return std::string(bytes, end);
}

Result<ModuleImage> read_cubin(const std::string& bytes) {
  auto header = at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != 190 /* EM_CUDA */) {
    return bad_input("not a cubin (ELF64 for CUDA)");
  }
  std::vector<Elf64_Shdr> sections;
  for (uint16_t i = 0; i < header->e_shnum; ++i) {
    auto section = at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return bad_input("cubin: the section table is cut short");
    sections.push_back(*section);
  }
  if (header->e_shstrndx >= sections.size()) return bad_input("cubin: no section names");
  ModuleImage out;
  out.module.cubin = bytes;
  for (const Elf64_Shdr& section : sections) {
    constexpr std::string_view kInfo = ".nv.info.";
    std::string section_name = text_at(bytes, sections[header->e_shstrndx], section.sh_name);
    if (section_name.starts_with(kInfo)) {
      if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset) {
        return bad_input("cubin: a section lies outside of the file");
      }
      KernelInfo kernel;
      kernel.name = section_name.substr(kInfo.size());
      PTXB_TRY(kernel.params,
               read_params(bytes.substr(section.sh_offset, section.sh_size), kernel.name));
      out.module.kernels.push_back(std::move(kernel));
    }
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      auto symbol = at<Elf64_Sym>(bytes, section.sh_offset + i * sizeof(Elf64_Sym));
      if (!symbol) return bad_input("cubin: the symbol table is cut short");
      if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF) continue;
      out.variables[text_at(bytes, sections[section.sh_link], symbol->st_name)] = symbol->st_size;
    }
  }
  return out;
}

Result<ModuleImage> read_image(const std::string& bytes) {
  return bytes.compare(0, SELFMAG, ELFMAG) == 0 ? read_cubin(bytes) : read_ptx(bytes);
}

}  // namespace ptxb::shim
