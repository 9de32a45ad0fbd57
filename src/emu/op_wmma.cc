// Owns wmma.load, wmma.store and wmma.mma (PTX ISA 9.7.14.4). Their fragments are opaque: here
// they are made of the fragments of mma.m16n8, so that one tile arithmetic serves both.
// SPDX-License-Identifier: Apache-2.0
#include "emu/op_wmma.h"

#include <algorithm>
#include <cstring>

#include "emu/arith/mma.h"
#include "emu/check.h"
#include "emu/check_hooks.h"
#include "emu/emit.h"
#include "emu/report.h"

namespace ptxb::emu {

using arith::MmaAccumulator;
using arith::MmaForm;
using arith::MmaType;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

// How one wmma shape is cut into mma blocks. m8n32 is computed as its transpose: D^T = B^T A^T.
struct Tiling {
  MmaForm form;
  int m = 16, n = 16, k = 16;  // as written
  int m_blocks = 1, n_blocks = 1;
  bool transposed = false;
  arith::MmaRegisters regs;
};

std::optional<MmaType> input_type(Type type) {
  switch (type) {
    case Type::F16:
      return MmaType::F16;
    case Type::BF16:
      return MmaType::BF16;
    case Type::TF32:
      return MmaType::TF32;
    case Type::F64:
      return MmaType::F64;
    case Type::S8:
      return MmaType::S8;
    case Type::U8:
      return MmaType::U8;
    default:
      return std::nullopt;
  }
}
std::optional<MmaAccumulator> accumulator_type(Type type) {
  switch (type) {
    case Type::F32:
      return MmaAccumulator::F32;
    case Type::F16:
      return MmaAccumulator::F16;
    case Type::S32:
      return MmaAccumulator::S32;
    case Type::F64:
      return MmaAccumulator::F64;
    default:
      return std::nullopt;
  }
}

std::optional<Tiling> tiling_of(const Decoder& d, MmaType input, MmaAccumulator accumulator) {
  Tiling t;
  for (Modifier m : d.in().modifiers) {
    if (auto shape = ptx::matrix_shape(m)) t.m = shape->m, t.n = shape->n, t.k = shape->k;
  }
  t.transposed = t.m == 8 && t.n == 32;
  int rows = t.transposed ? t.n : t.m, columns = t.transposed ? t.m : t.n;
  bool small = input == MmaType::F64;
  t.form.m = small ? 8 : 16;
  t.form.n = 8;
  t.form.k = static_cast<uint16_t>(t.k);
  t.form.a = t.form.b = input;
  t.form.c = t.form.d = accumulator;
  if (rows % t.form.m || columns % 8) return std::nullopt;
  t.m_blocks = rows / t.form.m;
  t.n_blocks = columns / 8;
  t.regs = arith::mma_registers(t.form);
  if (t.regs.a == 0) return std::nullopt;
  return t;
}

enum class Part : uint8_t { A, B, C };

struct Place {
  int reg = 0, lane = 0, element = 0;
};
// Where element (row, column) of the matrix as written lies (PTX ISA 9.7.14.5, fragments of
// mma.m16n8).
Place place_of(const Tiling& t, Part part, int bits, int row, int column) {
  if (t.transposed) {
    std::swap(row, column);
    if (part != Part::C) part = part == Part::A ? Part::B : Part::A;
  }
  int per = std::max(32 / bits, 1);
  Place p;
  if (part == Part::A) {
    int block = row / t.form.m, r = row % t.form.m, k = column;
    int half = r / 8, group = k / (4 * per);
    p.reg = block * t.regs.a + (t.form.m == 16 ? group * 2 + half : group);
    p.lane = (r % 8) * 4 + k % (4 * per) / per;
    p.element = k % per;
  } else if (part == Part::B) {
    int block = column / 8, k = row;
    p.reg = block * t.regs.b + k / (4 * per);
    p.lane = (column % 8) * 4 + k % (4 * per) / per;
    p.element = k % per;
  } else {
    int block = row / t.form.m * t.n_blocks + column / 8, r = row % t.form.m, c = column % 8;
    bool packed = bits == 16;
    p.reg = block * t.regs.c + (packed ? r / 8 : r / 8 * 2 + c % 2);
    p.lane = (r % 8) * 4 + c / 2;
    p.element = packed ? c % 2 : 0;
  }
  return p;
}

struct Transfer {
  Window window = Window::Shared;
  uint32_t site = 0;
  bool loads = true, column_major = false, wide = false;
  uint32_t element_bytes = 2, minor = 16, major = 16;
  uint32_t stride_slot = 0;
  std::vector<uint32_t> slots;
  std::vector<Place> places;  // by major * minor + minor index
  size_t distinct = 0;        // registers that hold elements; the rest repeat them
};

void move_element(Warp& w, const Transfer& t, const Place& p, uint8_t* at) {
  uint8_t* lane =
      w.r + t.slots[static_cast<size_t>(p.reg)] + static_cast<size_t>(p.lane) * (t.wide ? 8 : 4);
  uint8_t* element = lane + static_cast<size_t>(p.element) * t.element_bytes;
  if (t.loads)
    std::memcpy(element, at, t.element_bytes);
  else
    std::memcpy(at, element, t.element_bytes);
}

const Insn* transfer(Warp& w, const Insn* i) {
  const Transfer& t = *static_cast<const Transfer*>(i->more);
  uint32_t lane = first_lane(w.exec);
  uint64_t base = lane_address(w, i, t.window, lane);
  uint64_t stride = lanes<U32>(w, t.stride_slot)[lane];
  Access access = t.loads ? Access::Read : Access::Write;
  uint32_t bytes = t.minor * t.element_bytes;
  for (uint32_t line = 0; line < t.major; ++line) {
    uint64_t address = base + line * stride * t.element_bytes;
    uint8_t* host = address % t.element_bytes
                        ? nullptr
                        : resolve_quietly(w, lane, t.window, address, bytes, access);
    if (host && check_attached(*w.cta))
      check_plain_access(w, t.site, lane, t.window, address, bytes, access);
    for (uint32_t k = 0; k < t.minor; ++k) {
      // Element by element where the line is bad, so that the fault names the first bad one.
      uint8_t* at = host ? host + k * t.element_bytes
                         : resolve(w, i, lane, t.window, address + k * t.element_bytes,
                                   t.element_bytes, access);
      if (!at) return nullptr;
      move_element(w, t, t.places[line * t.minor + k], at);
    }
  }
  if (t.loads) {
    for (size_t k = t.distinct; k < t.slots.size(); ++k)
      std::memcpy(w.r + t.slots[k], w.r + t.slots[k % t.distinct], t.wide ? 256 : 128);
  }
  return i + 1;
}

bool slots_of(Decoder& d, const Operand& operand, int width, bool writes,
              std::vector<uint32_t>& out) {
  if (operand.kind == Operand::Kind::Vector) {
    for (const Operand& each : operand.elements)
      out.push_back(writes ? d.destination(each, width) : d.source(each, width));
  } else {
    out.push_back(writes ? d.destination(operand, width) : d.source(operand, width));
  }
  return !d.refused();
}

// Any accumulator goes with the tiling of an input type; loads of A and B know theirs, those of C
// do not.
std::optional<Tiling> transfer_tiling(const Decoder& d, Part part, Type type) {
  if (part != Part::C) {
    auto input = input_type(type);
    if (!input) return std::nullopt;
    MmaAccumulator c = *input == MmaType::F64 ? MmaAccumulator::F64
                       : ptx::is_float(type)  ? MmaAccumulator::F32
                                              : MmaAccumulator::S32;
    return tiling_of(d, *input, c);
  }
  auto accumulator = accumulator_type(type);
  if (!accumulator) return std::nullopt;
  bool short_depth = d.has(Modifier::M16N16K8);
  MmaType input = *accumulator == MmaAccumulator::F64   ? MmaType::F64
                  : *accumulator == MmaAccumulator::S32 ? MmaType::S8
                  : short_depth                         ? MmaType::TF32
                                                        : MmaType::F16;
  return tiling_of(d, input, *accumulator);
}

bool decode_transfer(Decoder& d, bool loads) {
  Part part = !loads || d.has(Modifier::C) ? Part::C : d.has(Modifier::A) ? Part::A : Part::B;
  Type type = d.type();
  auto tiling = transfer_tiling(d, part, type);
  auto window = window_of(d);
  if (!tiling || !window) return d.refuse("");
  Transfer t;
  t.window = *window;
  t.loads = loads;
  t.column_major = d.has(Modifier::Col);
  t.wide = tiling->regs.wide;
  t.element_bytes = type == Type::TF32 ? 4 : static_cast<uint32_t>(ptx::size_bytes(type));
  int rows = part == Part::B ? tiling->k : tiling->m,
      columns = part == Part::A ? tiling->k : tiling->n;
  t.minor = static_cast<uint32_t>(t.column_major ? rows : columns);
  t.major = static_cast<uint32_t>(t.column_major ? columns : rows);
  int most = 0;
  for (uint32_t line = 0; line < t.major; ++line) {
    for (uint32_t k = 0; k < t.minor; ++k) {
      int row = static_cast<int>(t.column_major ? k : line),
          column = static_cast<int>(t.column_major ? line : k);
      t.places.push_back(
          place_of(*tiling, part, static_cast<int>(t.element_bytes) * 8, row, column));
      most = std::max(most, t.places.back().reg);
    }
  }
  t.distinct = static_cast<size_t>(most) + 1;
  const Operand& address = d.operand(loads ? 1 : 0);
  uint32_t base = address_slot(d, address, *window);
  t.stride_slot = d.operands() > 2 ? d.source(2, 4) : d.bits(t.minor, 4);
  if (d.refused() || !slots_of(d, d.operand(loads ? 0 : 1), t.wide ? 8 : 4, loads, t.slots))
    return false;
  if (t.slots.size() < t.distinct || t.slots.size() % t.distinct)
    return d.refuse("another number of registers than the form has");
  t.site = check_site(d);
  Insn& insn = d.emit(transfer);
  insn.a = base;
  insn.imm = address.offset;
  insn.y = d.memory_ordinal();
  insn.more = d.keep(std::move(t));
  return true;
}

struct Product {
  Tiling tiling;
  arith::MmaFunction function = nullptr;
  arith::MmaFunction64 function64 = nullptr;
  std::vector<uint32_t> a, b, c, d;
};

template <class T, class Operands, class Function>
void multiply(Warp& w, const Product& p, Function function) {
  const Tiling& t = p.tiling;
  const std::vector<uint32_t>&left = t.transposed ? p.b : p.a, &right = t.transposed ? p.a : p.b;
  const T *a[16], *b[16], *c[16];
  T* d[16];
  for (int m = 0; m < t.m_blocks; ++m) {
    for (int n = 0; n < t.n_blocks; ++n) {
      auto from = [](const std::vector<uint32_t>& slots, int block, int count, int k) {
        return slots[static_cast<size_t>(block * count + k)];
      };
      for (int k = 0; k < t.regs.a; ++k) a[k] = lanes<T>(w, from(left, m, t.regs.a, k));
      for (int k = 0; k < t.regs.b; ++k) b[k] = lanes<T>(w, from(right, n, t.regs.b, k));
      for (int k = 0; k < t.regs.c; ++k)
        c[k] = lanes<T>(w, from(p.c, m * t.n_blocks + n, t.regs.c, k));
      for (int k = 0; k < t.regs.d; ++k)
        d[k] = lanes<T>(w, from(p.d, m * t.n_blocks + n, t.regs.d, k));
      function(Operands{a, b, c, d});
    }
  }
}

const Insn* product(Warp& w, const Insn* i) {
  const Product& p = *static_cast<const Product*>(i->more);
  if (w.worker->neutralise_mma) {
    size_t bytes = p.tiling.regs.wide ? 256 : 128;
    for (size_t k = 0; k < p.d.size(); ++k) std::memmove(w.r + p.d[k], w.r + p.c[k], bytes);
  } else if (p.function64) {
    multiply<uint64_t, arith::MmaOperands64>(w, p, p.function64);
  } else {
    multiply<uint32_t, arith::MmaOperands>(w, p, p.function);
  }
  return i + 1;
}

bool decode_product(Decoder& d) {
  const auto& types = d.in().types;
  // Two types: D and C with f16 inputs; four: D, A, B, C.
  Type input = types.size() == 2 ? Type::F16 : d.type(1);
  Type to_type = d.type(0), c_type = types.size() == 2 ? d.type(1) : d.type(3);
  if ((types.size() != 2 && types.size() != 4) || to_type != c_type) return d.refuse("");
  if (types.size() == 4 && d.type(1) != d.type(2)) return d.refuse("");
  auto a = input_type(input);
  auto c = accumulator_type(c_type);
  if (!a || !c) return d.refuse("");
  auto tiling = tiling_of(d, *a, *c);
  if (!tiling || d.has(Modifier::Rz) || d.has(Modifier::Rm) || d.has(Modifier::Rp))
    return d.refuse("");
  Product p;
  p.tiling = *tiling;
  p.tiling.form.satfinite = d.has(Modifier::Satfinite);
  if (tiling->regs.wide)
    p.function64 = arith::mma_function_f64(p.tiling.form);
  else
    p.function =
        arith::mma_function(p.tiling.form, d.flavour() == Flavour::Exact ? arith::Numerics::Exact
                                                                         : arith::Numerics::Fast);
  if (!p.function && !p.function64) return d.refuse("");
  int width = tiling->regs.wide ? 8 : 4;
  if (!slots_of(d, d.operand(1), width, false, p.a) ||
      !slots_of(d, d.operand(2), width, false, p.b) ||
      !slots_of(d, d.operand(3), width, false, p.c) || !slots_of(d, d.operand(0), width, true, p.d))
    return false;
  auto enough = [](size_t have, int blocks, int each) {
    return have >= static_cast<size_t>(blocks * each) && have <= 16;
  };
  const auto &left = tiling->transposed ? p.b : p.a, &right = tiling->transposed ? p.a : p.b;
  int blocks = tiling->m_blocks * tiling->n_blocks;
  if (!enough(left.size(), tiling->m_blocks, tiling->regs.a) ||
      !enough(right.size(), tiling->n_blocks, tiling->regs.b) ||
      !enough(p.c.size(), blocks, tiling->regs.c) || !enough(p.d.size(), blocks, tiling->regs.d) ||
      p.c.size() != p.d.size())
    return d.refuse("another number of registers than the form has");
  d.emit(product).more = d.keep(std::move(p));
  return true;
}

}  // namespace

bool decode_wmma(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::WmmaLoad:
      return decode_transfer(d, true);
    case Opcode::WmmaStore:
      return decode_transfer(d, false);
    case Opcode::WmmaMma:
      return decode_product(d);
    default:
      return false;
  }
}

}  // namespace ptxb::emu
