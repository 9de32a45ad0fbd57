// Owns the checks and the arithmetic that bulk copies and tensor copies share.
// SPDX-License-Identifier: Apache-2.0
#include "emu/bulk.h"

#include <algorithm>
#include <cstring>

#include "emu/arith/float_ops.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;

uint8_t* span_bytes(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                    uint64_t bytes, Access access) {
  if (bytes > UINT32_MAX || address > UINT64_MAX - bytes) {
    fault(w, i, FindingKind::OutOfBounds,
          thread_text(w, lane) + " copies " + std::to_string(bytes) + " bytes");
    return nullptr;
  }
  uint8_t* at = resolve_quietly(w, lane, window, address, static_cast<uint32_t>(bytes), access);
  if (at) return at;
  if (!resolve(w, i, lane, window, address, 1, access)) return nullptr;
  bool is_global =
      window == Window::Global ||
      (window == Window::Generic && (address < kSharedWindow || address >= kSharedWindowEnd));
  std::string where = is_global ? w.worker->run.memory.describe(address, bytes)
                                : place_text(w, window, address, 1) + "; the block has " +
                                      std::to_string(w.shared_end - kSharedBase) +
                                      " bytes of shared memory";
  fault(w, i, FindingKind::OutOfBounds,
        thread_text(w, lane) + " copies " + std::to_string(bytes) + " bytes at " + where,
        "the whole copy must lie inside one buffer");
  return nullptr;
}

bool check_alignment(Warp& w, const Insn* i, uint32_t lane, const char* what, uint64_t value,
                     uint32_t alignment) {
  if (value % alignment == 0) return true;
  fault(w, i, FindingKind::Misaligned,
        thread_text(w, lane) + " gives a bulk copy a " + what + " of " + hex_text(value) +
            ", which is not a multiple of " + std::to_string(alignment));
  return false;
}

SharedPlace shared_place(Warp& w, uint64_t address) {
  uint32_t rank = static_cast<uint32_t>(address >> 24) & 0xff;
  return {rank == w.cta->rank ? w.cta : w.cta->cluster->ctas[rank].get(),
          static_cast<uint32_t>(address & 0xffffff)};
}

std::optional<ReduceOp> reduce_op(const Decoder& d) {
  if (d.has(Modifier::Add)) return ReduceOp::Add;
  if (d.has(Modifier::Min)) return ReduceOp::Min;
  if (d.has(Modifier::Max)) return ReduceOp::Max;
  if (d.has(Modifier::Inc)) return ReduceOp::Inc;
  if (d.has(Modifier::Dec)) return ReduceOp::Dec;
  if (d.has(Modifier::And)) return ReduceOp::And;
  if (d.has(Modifier::Or)) return ReduceOp::Or;
  if (d.has(Modifier::Xor)) return ReduceOp::Xor;
  return std::nullopt;
}

std::optional<ReduceType> reduce_type(ptx::Type type) {
  switch (type) {
    case ptx::Type::B32:
    case ptx::Type::U32:
      return ReduceType::UInt32;
    case ptx::Type::S32:
      return ReduceType::SInt32;
    case ptx::Type::B64:
    case ptx::Type::U64:
      return ReduceType::UInt64;
    case ptx::Type::S64:
      return ReduceType::SInt64;
    case ptx::Type::F16:
      return ReduceType::F16;
    case ptx::Type::BF16:
      return ReduceType::BF16;
    case ptx::Type::F32:
      return ReduceType::F32;
    case ptx::Type::F64:
      return ReduceType::F64;
    default:
      return std::nullopt;
  }
}

uint32_t reduce_bytes(ReduceType type) {
  switch (type) {
    case ReduceType::UInt32:
    case ReduceType::SInt32:
    case ReduceType::F32:
      return 4;
    case ReduceType::F16:
    case ReduceType::BF16:
      return 2;
    default:
      return 8;
  }
}

bool reduces(ReduceOp op, ReduceType type) {
  bool ordered = op == ReduceOp::Add || op == ReduceOp::Min || op == ReduceOp::Max;
  switch (type) {
    case ReduceType::F16:
    case ReduceType::BF16:
      return ordered;
    case ReduceType::F32:
    case ReduceType::F64:
      return op == ReduceOp::Add;
    case ReduceType::UInt32:
      return true;
    default:
      return op != ReduceOp::Inc && op != ReduceOp::Dec;
  }
}

namespace {

template <class T>
T combined(ReduceOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::Add:
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    case ReduceOp::Min:
      return std::min(a, b);
    case ReduceOp::Max:
      return std::max(a, b);
    case ReduceOp::Inc:
      return a >= b ? T{0} : static_cast<T>(a + 1);
    case ReduceOp::Dec:
      return a == 0 || a > b ? b : static_cast<T>(a - 1);
    case ReduceOp::And:
      return static_cast<T>(a & b);
    case ReduceOp::Or:
      return static_cast<T>(a | b);
    case ReduceOp::Xor:
      return static_cast<T>(a ^ b);
  }
  return a;
}

uint16_t combined_half(ReduceOp op, arith::Half format, uint16_t a, uint16_t b) {
  if (op == ReduceOp::Min) return arith::min_half(format, a, b);
  if (op == ReduceOp::Max) return arith::max_half(format, a, b);
  return arith::add_half(format, a, b);
}

template <class T, class Combine>
void each(uint8_t* to, const uint8_t* from, uint64_t bytes, Combine combine) {
  for (uint64_t k = 0; k + sizeof(T) <= bytes; k += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + k, sizeof a);
    std::memcpy(&b, from + k, sizeof b);
    a = combine(a, b);
    std::memcpy(to + k, &a, sizeof a);
  }
}

}  // namespace

bool reduce(ReduceOp op, ReduceType type, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (!reduces(op, type)) return false;
  switch (type) {
    case ReduceType::UInt32:
      each<uint32_t>(to, from, bytes, [op](uint32_t a, uint32_t b) { return combined(op, a, b); });
      break;
    case ReduceType::SInt32:
      each<int32_t>(to, from, bytes, [op](int32_t a, int32_t b) { return combined(op, a, b); });
      break;
    case ReduceType::UInt64:
      each<uint64_t>(to, from, bytes, [op](uint64_t a, uint64_t b) { return combined(op, a, b); });
      break;
    case ReduceType::SInt64:
      each<int64_t>(to, from, bytes, [op](int64_t a, int64_t b) { return combined(op, a, b); });
      break;
    case ReduceType::F16:
      each<uint16_t>(to, from, bytes, [op](uint16_t a, uint16_t b) {
        return combined_half(op, arith::Half::F16, a, b);
      });
      break;
    case ReduceType::BF16:
      each<uint16_t>(to, from, bytes, [op](uint16_t a, uint16_t b) {
        return combined_half(op, arith::Half::BF16, a, b);
      });
      break;
    case ReduceType::F32:
      each<uint32_t>(to, from, bytes, [](uint32_t a, uint32_t b) { return arith::add_f32(a, b); });
      break;
    case ReduceType::F64:
      each<uint64_t>(to, from, bytes, [](uint64_t a, uint64_t b) { return arith::add_f64(a, b); });
      break;
  }
  return true;
}

void count_bytes(Warp& w, const Insn* i, uint64_t bytes) {
  w.worker->bulk_bytes[{w.frame().code, i->origin}] += static_cast<double>(bytes);
}

bool multicast_targets(Warp& w, const Insn* i, uint32_t lane, uint32_t mask,
                       std::vector<Cta*>& out) {
  const Cluster& cluster = *w.cta->cluster;
  if (mask == 0 || mask >> cluster.ctas.size()) {
    fault(w, i, FindingKind::AsyncHazard,
          thread_text(w, lane) + " multicasts with mask " + hex_text(mask) + " in a cluster of " +
              std::to_string(cluster.ctas.size()) + " blocks",
          "bit k of the mask names the block of rank k");
    return false;
  }
  for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank)
    if (mask >> rank & 1) out.push_back(cluster.ctas[rank].get());
  return true;
}

}  // namespace ptxb::emu
