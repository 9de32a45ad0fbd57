// Owns the vocabulary of PTX: base operations, dot-modifiers, types, special registers, and what is
// allowed with each operation. Everything is derived from the one table opcodes.def (PTX ISA 9.0
// chapters 5, 9, 10); knows no grammar and no semantics.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxb::ptx {

enum class Opcode : uint16_t {
  Invalid,
#define PTXB_OPCODE(enumerator, ...) enumerator,
#include "ptx/opcodes.def"
};

// Dot tokens that are neither part of a base mnemonic nor a type.
enum class Modifier : uint16_t {
#define PTXB_MODIFIER(enumerator, spelling) enumerator,
#define PTXB_SHAPE(m, n, k) M##m##N##n##K##k,
#include "ptx/opcodes.def"
};

enum class Type : uint8_t {
#define PTXB_TYPE(enumerator, spelling, bits) enumerator,
#include "ptx/opcodes.def"
};

// Vector registers (%tid.y) carry the component in Operand::component; %envregN and %pmN carry N
// there.
enum class Special : uint8_t {
  None,
#define PTXB_SPECIAL(enumerator, spelling, type, members) enumerator,
#include "ptx/opcodes.def"
};

enum class Category : uint8_t {
  Integer,
  Float,
  Compare,
  Logic,
  Move,
  Convert,
  Memory,
  Atomic,
  AsyncCopy,
  Warp,
  Barrier,
  Mbarrier,
  Fence,
  Matrix,
  Wgmma,
  Tcgen05,
  Control,
  Stack,
  System,
  Refused,  // named so that the refusal can be precise: textures, surfaces, video
};

// Who has to take part, or what the instruction orders.
enum class SyncClass : uint8_t {
  None,
  Warp,
  Warpgroup,
  Cta,
  Cluster,
  Mbarrier,
  Fence,
  AsyncGroup,
  Grid,
};

// Through which proxy the instruction touches memory (PTX ISA 8.6); None: registers only.
enum class Proxy : uint8_t { None, Generic, Async };

// What one operand position is. Source order, destination first.
enum class Role : uint8_t {
  Destination,      // D: register, "_" or a vector of them
  DestinationPair,  // Q: as D, or d|p
  Accumulator,      // X: register or vector, read and written
  Source,           // S: register, immediate, special, symbol or vector
  Vector,           // V: {..} of sources
  Predicate,        // P: predicate register (may be negated) or constant
  Immediate,        // I
  AddressRead,      // M: [..]
  AddressWritten,   // W: [..]
  AddressUpdated,   // A: [..] read and written (atomics, barrier objects, accumulators in tensor
                    // memory)
  SourceOrAddress,  // Z: matrix descriptor in a register, or [tensor memory]
  Label,            // L
  Table,            // T: .branchtargets
};

struct OpcodeInfo {
  Opcode opcode = Opcode::Invalid;
  std::string_view mnemonic;  // base: "cp.async.bulk.tensor"
  Category category = Category::Refused;
  SyncClass sync = SyncClass::None;
  Proxy proxy = Proxy::None;
  int ptx_version = 10;       // 87 = 8.7: first version with this base operation
  std::string_view target;    // first target: "sm_90a"
  std::string_view section;   // of the PTX ISA 9.0 document
  std::string_view operands;  // "D S S | Q S S P", see Role; '?' marks an optional operand
  std::string_view forms;     // typed variants, grammar in opcodes.def; empty: the bare mnemonic
};

struct MatrixShape {
  int m = 0, n = 0, k = 0;
};

struct RoleSlot {
  Role role = Role::Source;
  bool optional = false;
};

const OpcodeInfo& info(Opcode opcode);
// OpcodeInfo::operands taken apart: one list an alternative. Call has a shape of its own (module.h)
// and gives none.
const std::vector<std::vector<RoleSlot>>& operand_patterns(Opcode opcode);
const std::vector<OpcodeInfo>& all_opcodes();  // without Invalid, in table order
bool allows(Opcode opcode, Modifier modifier);
bool allows(Opcode opcode, Type type);
// Every typed variant the forms of `opcode` spell: "add.rn.ftz.f32" (whole mnemonics), at most
// `limit`.
std::vector<std::string> variants(Opcode opcode, size_t limit);

std::string_view name(Opcode opcode);      // "add"
std::string_view name(Modifier modifier);  // "rn", without the dot
std::string_view name(Type type);          // "f32"
std::string_view name(Special special);    // "%tid"
std::string_view name(Category category);  // "Integer"
std::string_view name(SyncClass sync);

int size_bits(Type type);
int size_bytes(Type type);  // rounded up to a byte; pred: 1
bool is_float(Type type);   // f16 .. f64, bf16, tf32 and packed forms
bool is_signed(Type type);  // s8 .. s64, s16x2, s4, s2
std::optional<MatrixShape> matrix_shape(Modifier modifier);
Type type_of(Special special);         // of one component
int component_count(Special special);  // 1: no ".x"; 4: %tid; 32: %envreg

// The longest base mnemonic that starts `mnemonic` ("cp.async.bulk.tensor.2d..."); length counts
// its bytes.
struct OpcodeMatch {
  Opcode opcode = Opcode::Invalid;
  size_t length = 0;
};
OpcodeMatch find_opcode(std::string_view mnemonic);
std::optional<Modifier> find_modifier(std::string_view spelling);  // without the dot
std::optional<Type> find_type(std::string_view spelling);          // without the dot
// "%tid", "%envreg3", "%clock64"; index is N of %envregN.
struct SpecialMatch {
  Special special = Special::None;
  uint8_t index = 0;
};
SpecialMatch find_special(std::string_view spelling);

}  // namespace ptxb::ptx
