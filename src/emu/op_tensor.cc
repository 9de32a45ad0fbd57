// Owns cp.async.bulk.tensor and its relatives, tile mode (PTX ISA 9.7.9.25.5), and what names a
// tensor map. Never knows how boxes are laid out (tensor_copy.h).
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/bulk.h"
#include "emu/control.h"
#include "emu/report.h"
#include "emu/tensor_copy.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

enum class Kind : uint8_t { Load, Store, Reduce, Prefetch };
struct Tensor {
  Kind kind = Kind::Load;
  uint32_t rank = 1;
  uint32_t map = 0, shared = 0, barrier = 0, mask = 0;  // slots
  int64_t map_offset = 0, shared_offset = 0, barrier_offset = 0;
  std::array<uint32_t, 5> coordinates{};  // slots
  bool multicast = false;
  ReduceOp op = ReduceOp::Add;
};

const Insn* bad_map(Warp& w, const Insn* i, uint32_t lane, uint64_t address,
                    const std::string& why) {
  return fault(w, i, FindingKind::AsyncHazard,
               thread_text(w, lane) + " names a tensor map at " +
                   place_text(w, Window::Generic, address, kTensorMapBytes) + ", " + why,
               "pass the CUtensorMap that cuTensorMapEncodeTiled made as a __grid_constant__ "
               "parameter, or copy it to __constant__ or "
               "global memory");
}

// The tensor map that a generic address names, or nullptr after fault().
const TensorShape* shape_at(Warp& w, const Insn* i, uint32_t lane, uint64_t address) {
  if (address % 64) {
    bad_map(w, i, lane, address, "which is not a multiple of 64");
    return nullptr;
  }
  const uint8_t* bytes =
      resolve_quietly(w, lane, Window::Generic, address, kTensorMapBytes, Access::Read);
  if (!bytes) {
    span_bytes(w, i, lane, Window::Generic, address, kTensorMapBytes, Access::Read);
    return nullptr;
  }
  const LaunchPlan& plan = w.worker->run.plan;
  if (std::memcmp(bytes, kTensorMapMagic.data(), kTensorMapMagic.size()) != 0) {
    bad_map(w, i, lane, address, "where there is none");
    return nullptr;
  }
  uint32_t index = tensor_map_index({bytes, kTensorMapBytes}, 0);
  if (index >= plan.tensor_maps.size()) {
    bad_map(w, i, lane, address, "which was never encoded");
    return nullptr;
  }
  auto& shapes = w.worker->tensor_shapes;
  if (shapes.size() <= index) shapes.resize(plan.tensor_maps.size());
  if (!shapes[index]) {
    auto made = tensor_shape(plan.tensor_maps[index]);
    if (!made) {
      bad_map(w, i, lane, address, made.error().message);
      return nullptr;
    }
    shapes[index] = std::make_shared<const TensorShape>(*std::move(made));
  }
  return shapes[index].get();
}

// Global host bytes of the rows of a box; neighbours are in the same buffer.
class Rows {
 public:
  Rows(Warp& w, const Insn* i, uint32_t lane, Access access)
      : w_(w), i_(i), lane_(lane), access_(access) {}
  uint8_t* at(uint64_t address, uint32_t bytes) {
    if (last_ && address >= last_->begin && address < last_->end && last_->end - address >= bytes)
      return last_->at(address);
    uint8_t* host = resolve_quietly(w_, lane_, Window::Global, address, bytes, access_, &last_);
    return host ? host : span_bytes(w_, i_, lane_, Window::Global, address, bytes, access_);
  }

 private:
  Warp& w_;
  const Insn* i_;
  uint32_t lane_;
  Access access_;
  const Allocation* last_ = nullptr;
};

struct Row {
  TensorRow row;
  uint8_t* global = nullptr;
};
using Box = std::vector<Row>;

bool find_rows(Warp& w, const Insn* i, uint32_t lane, const TensorShape& shape,
               const std::array<int32_t, 5>& start, Access access, Box& box) {
  Rows rows(w, i, lane, access);
  box.reserve(shape.rows);
  return each_row(shape, start, [&](const TensorRow& row) {
    uint8_t* global = row.count ? rows.at(row.address, row.count * shape.element_bytes) : nullptr;
    if (row.count && !global) return false;
    box.push_back({row, global});
    return true;
  });
}

bool load(Warp& w, const Insn* i, const Tensor& t, uint32_t lane, const TensorShape& shape,
          Box box) {
  uint32_t address = lanes<U32>(w, t.shared)[lane] + static_cast<uint32_t>(t.shared_offset);
  if (!check_alignment(w, i, lane, "shared-memory address", address & 0xffffff, 128)) return false;
  if (!span_bytes(w, i, lane, Window::SharedCluster, address, shape.shared_bytes(), Access::Write))
    return false;
  MbarrierPlace barrier;
  uint32_t barrier_address =
      lanes<U32>(w, t.barrier)[lane] + static_cast<uint32_t>(t.barrier_offset);
  if (!find_mbarrier(w, i, lane, Window::SharedCluster, barrier_address, barrier)) return false;
  SharedPlace place = shared_place(w, address);
  std::vector<Cta*> ctas;
  if (t.multicast) {
    if (!multicast_targets(w, i, lane, lanes<U32>(w, t.mask)[lane] & 0xffff, ctas)) return false;
  } else {
    ctas.push_back(place.cta);
    if (barrier.cta != place.cta) {
      fault(w, i, FindingKind::BarrierMisuse,
            thread_text(w, lane) + " loads into " + block_text(*place.cta) +
                " and signals an mbarrier of " + block_text(*barrier.cta),
            "destination and mbarrier must lie in the same block's shared memory");
      return false;
    }
  }
  AsyncWork work;
  for (Cta* cta : ctas) {
    work.signals.push_back({cta, barrier.offset, shape.box_bytes()});
    check_bulk_write(w, i, lane, *cta, place.offset, static_cast<uint32_t>(shape.shared_bytes()),
                     barrier.offset);
  }
  work.transfer = [ctas, &shape, offset = place.offset, rows = std::move(box)] {
    for (const Row& each : rows)
      for (Cta* cta : ctas) put_row(shape, window_of_cta(*cta), offset, each.row, each.global);
  };
  return submit(w, i, lane, std::move(work));
}

std::optional<ReduceType> reduce_type_of(TensorType type) {
  switch (type) {
    case TensorType::UInt32:
      return ReduceType::UInt32;
    case TensorType::SInt32:
      return ReduceType::SInt32;
    case TensorType::UInt64:
      return ReduceType::UInt64;
    case TensorType::SInt64:
      return ReduceType::SInt64;
    case TensorType::F16:
      return ReduceType::F16;
    case TensorType::BF16:
      return ReduceType::BF16;
    case TensorType::F32:
    case TensorType::F32Ftz:
      return ReduceType::F32;
    case TensorType::F64:
      return ReduceType::F64;
    default:
      return std::nullopt;
  }
}

bool store(Warp& w, const Insn* i, const Tensor& t, uint32_t lane, const TensorShape& shape,
           Box box) {
  uint32_t address = lanes<U32>(w, t.shared)[lane] + static_cast<uint32_t>(t.shared_offset);
  if (!check_alignment(w, i, lane, "shared-memory address", address & 0xffffff, 128)) return false;
  if (!span_bytes(w, i, lane, Window::Shared, address, shape.shared_bytes(), Access::Read))
    return false;
  std::optional<ReduceType> type;
  if (t.kind == Kind::Reduce) {
    type = reduce_type_of(shape.type);
    if (!type || !reduces(t.op, *type)) {
      fault(w, i, FindingKind::IllegalInstruction,
            thread_text(w, lane) +
                " reduces into a tensor whose element type does not have this operation");
      return false;
    }
  }
  AsyncWork work;
  work.group = true;
  uint32_t offset = address & 0xffffff;
  check_bulk_read(w, i, lane, offset, static_cast<uint32_t>(shape.shared_bytes()));
  work.transfer = [cta = w.cta, &shape, offset, type, op = t.op, rows = std::move(box)] {
    alignas(16) uint8_t bytes[256 * 8];
    for (const Row& each : rows) {
      if (!each.row.count) continue;
      get_row(shape, window_of_cta(*cta), offset, each.row, bytes);
      const uint8_t* from = bytes + each.row.first * shape.element_bytes;
      uint32_t size = each.row.count * shape.element_bytes;
      if (type)
        reduce(op, *type, each.global, from, size);
      else
        std::memcpy(each.global, from, size);
    }
  };
  return submit(w, i, lane, std::move(work));
}

const Insn* tensor_copy(Warp& w, const Insn* i) {
  const Tensor& t = *static_cast<const Tensor*>(i->more);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    uint64_t address = lanes<U64>(w, t.map)[lane] + static_cast<uint64_t>(t.map_offset);
    const TensorShape* shape = shape_at(w, i, lane, address);
    if (!shape) return nullptr;
    if (shape->rank != t.rank)
      return bad_map(w, i, lane, address,
                     "which has " + std::to_string(shape->rank) +
                         " dimensions where the instruction has " + std::to_string(t.rank));
    std::array<int32_t, 5> start{};
    for (uint32_t k = 0; k < t.rank; ++k)
      start[k] = static_cast<int32_t>(lanes<U32>(w, t.coordinates[k])[lane]);
    Access access = t.kind == Kind::Load || t.kind == Kind::Prefetch ? Access::Read
                    : t.kind == Kind::Store                          ? Access::Write
                                                                     : Access::Update;
    Box box;
    if (!find_rows(w, i, lane, *shape, start, access, box)) return nullptr;
    if (t.kind == Kind::Prefetch) continue;
    for (const Row& row : box)
      if (row.row.count)
        check_bulk_global(w, i, lane, row.row.address, row.row.count * shape->element_bytes,
                          access);
    count_bytes(w, i, shape->box_bytes());
    bool went_well = t.kind == Kind::Load ? load(w, i, t, lane, *shape, std::move(box))
                                          : store(w, i, t, lane, *shape, std::move(box));
    if (!went_well) return nullptr;
  }
  return i + 1;
}

bool named_refusals(Decoder& d) {
  static constexpr Modifier kModes[] = {Modifier::Im2col, Modifier::Im2colW, Modifier::Im2colW128,
                                        Modifier::Im2colNoOffs};
  for (Modifier m : kModes)
    if (d.has(m)) return d.refuse("im2col mode");
  for (Modifier m : d.in().modifiers)
    if (ptx::name(m).find("gather4") != std::string_view::npos ||
        ptx::name(m).find("scatter4") != std::string_view::npos)
      return d.refuse("gather and scatter (sm_100)");
  if (d.has(Modifier::CtaGroup1) || d.has(Modifier::CtaGroup2))
    return d.refuse(".cta_group (sm_100)");
  return true;
}

// The map operand: [address, {coordinates}].
bool map_operand(Decoder& d, const Operand& operand, Tensor& t) {
  if (operand.kind != Operand::Kind::Address || operand.elements.size() < 2)
    return d.refuse("a tensor map with coordinates is needed");
  t.map = d.source(operand.elements[0], 8);
  t.map_offset = operand.offset;
  const Operand& list = operand.elements[1];
  std::vector<Operand> single{list};
  const std::vector<Operand>& each = list.kind == Operand::Kind::Vector ? list.elements : single;
  if (each.size() != t.rank) return d.refuse(std::to_string(each.size()) + " coordinates");
  for (uint32_t k = 0; k < t.rank; ++k) t.coordinates[k] = d.source(each[k], 4);
  return !d.refused();
}

bool decode_copy(Decoder& d) {
  if (!named_refusals(d)) return false;
  Tensor t;
  static constexpr Modifier kDims[] = {Modifier::Dim1, Modifier::Dim2, Modifier::Dim3,
                                       Modifier::Dim4, Modifier::Dim5};
  for (uint32_t k = 0; k < 5; ++k)
    if (d.has(kDims[k])) t.rank = k + 1;
  bool signals = d.has(Modifier::MbarrierCompleteTxBytes);
  t.kind = d.opcode() == Opcode::CpAsyncBulkPrefetchTensor ? Kind::Prefetch
           : d.opcode() == Opcode::CpReduceAsyncBulkTensor ? Kind::Reduce
           : signals                                       ? Kind::Load
                                                           : Kind::Store;
  if (!map_operand(d, d.operand(t.kind == Kind::Load ? 1 : 0), t)) return false;
  if (t.kind != Kind::Prefetch) {
    const Operand& shared = d.operand(t.kind == Kind::Load ? 0 : 1);
    t.shared = address_slot(d, shared, Window::Shared);
    t.shared_offset = shared.offset;
  }
  if (t.kind == Kind::Load) {
    t.barrier = address_slot(d, d.operand(2), Window::Shared);
    t.barrier_offset = d.operand(2).offset;
    t.multicast = d.has(Modifier::MulticastCluster);
    if (t.multicast) t.mask = d.source(3, 4);
  }
  if (t.kind == Kind::Reduce) {
    auto op = reduce_op(d);
    if (!op) return d.refuse("");
    t.op = *op;
    d.kernel().order_matters = true;
  }
  if (d.refused()) return false;
  d.emit(tensor_copy).more = d.keep(t);
  return true;
}

// prefetch.tensormap and fence.proxy.tensormap: a: address.
const Insn* name_map(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    if (!shape_at(w, i, first_lane(rest), lane_address(w, i, Window::Generic, first_lane(rest))))
      return nullptr;
  return i + 1;
}
bool decode_name(Decoder& d) {
  const Operand& address = d.operand(0);
  uint32_t base = address_slot(d, address, Window::Generic);
  if (d.refused()) return false;
  Insn& insn = d.emit(name_map);
  insn.a = base;
  insn.imm = address.offset;
  return true;
}

}  // namespace

namespace {
bool decode_each(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::CpAsyncBulkTensor:
    case Opcode::CpReduceAsyncBulkTensor:
    case Opcode::CpAsyncBulkPrefetchTensor:
      return decode_copy(d);
    case Opcode::Prefetch:
      return d.has(Modifier::Tensormap) && decode_name(d);
    case Opcode::FenceProxy:
      return d.has(Modifier::TensormapGeneric) && d.operands() == 2 && decode_name(d);
    default:
      return false;
  }
}
}  // namespace

bool decode_tensor(Decoder& d) {
  bool made = decode_each(d);
  if (made) mark_check_site(d);
  return made;
}

}  // namespace ptxb::emu
