// Owns check mode's view of the registers of wgmma: accumulators touched while their product is in
// flight, operands written after the last wgmma.fence (PTX ISA 9.7.15.7). ptxas repairs both, so
// that they are warnings.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emu/async.h"
#include "emu/check.h"
#include "emu/check_state.h"
#include "emu/report.h"
#include "ptx/parse.h"

namespace ptxb::emu {

using ptx::Opcode;
using ptx::Operand;

ProductRegisters product_registers_of(const ptx::Instruction& in) {
  ProductRegisters out;
  auto add = [](const Operand& operand, std::vector<uint32_t>& to) {
    if (operand.kind != Operand::Kind::Vector) return;
    for (const Operand& each : operand.elements)
      if (each.kind == Operand::Kind::Register) to.push_back(each.reg);
  };
  if (in.operands.size() < 2) return out;
  add(in.operands[0], out.d);
  add(in.operands[1], out.a);
  return out;
}

namespace {

struct Touch {
  std::vector<uint32_t> reads, writes;  // registers that some wgmma of the function uses
  uint32_t site = 0;
};

bool contains(const std::vector<uint32_t>& in, const std::vector<uint32_t>& any) {
  return std::any_of(any.begin(), any.end(),
                     [&](uint32_t r) { return std::find(in.begin(), in.end(), r) != in.end(); });
}

void warn(Warp& w, uint32_t site, uint32_t other_site, const std::string& what, std::string hint) {
  Finding finding;
  finding.kind = FindingKind::AsyncHazard;
  finding.grade = FindingGrade::Repaired;
  finding.place = w.worker->checker->place(site);
  finding.other = w.worker->checker->place(other_site);
  finding.message = "warp " + std::to_string(w.index) + " of " + block_text(*w.cta) + " " + what;
  finding.hint = std::move(hint);
  note(w.worker->run, std::move(finding));
}

// After an ordinary instruction.
const Insn* touch(Warp& w, const Insn* i) {
  const Touch& t = *static_cast<const Touch*>(i->more);
  WarpShadow& own = *w.shadow;
  for (const Product& p : own.products) {
    if (p.frame != &w.frame()) continue;
    bool accumulator = contains(p.registers->d, t.reads) || contains(p.registers->d, t.writes);
    if (!accumulator && !contains(p.registers->a, t.writes)) continue;
    warn(w, t.site, p.site,
         accumulator ? "uses an accumulator of a wgmma that is still in flight"
                     : "writes operand A of a wgmma that is still in flight",
         "wgmma.wait_group must come before the registers are used; ptxas inserts it and "
         "serialises the products (C7514, C7517)");
    break;
  }
  for (uint32_t r : t.writes) {
    if (own.unfenced.size() <= r) own.unfenced.resize(r + 1);
    own.unfenced[r] = t.site + 1;
  }
  return i + 1;
}

}  // namespace

void emit_product_check(Decoder& d) {
  if (d.flavour() != Flavour::Checked) return;
  std::vector<uint8_t>& used = d.product_registers();
  if (used.empty()) {
    used.assign(d.function().registers.size() + 1, 0);
    for (const ptx::Instruction& in : d.function().body) {
      if (in.opcode != Opcode::WgmmaMmaAsync) continue;
      ProductRegisters each = product_registers_of(in);
      for (uint32_t r : each.d) used[r] = 1;
      for (uint32_t r : each.a) used[r] = 1;
    }
  }
  Opcode opcode = d.in().opcode;
  if (opcode == Opcode::WgmmaMmaAsync || opcode == Opcode::Call || opcode == Opcode::Ret ||
      opcode == Opcode::Exit || opcode == Opcode::BrxIdx)
    return;
  Uses uses;
  collect_uses(d.in(), uses);
  Touch t;
  for (uint32_t r : uses.reads)
    if (used[r]) t.reads.push_back(r);
  for (uint32_t r : uses.writes)
    if (used[r]) t.writes.push_back(r);
  if (t.reads.empty() && t.writes.empty()) return;
  d.kernel().check_sites.push_back(
      {&d.code(), static_cast<uint32_t>(&d.in() - d.function().body.data())});
  t.site = static_cast<uint32_t>(d.kernel().check_sites.size() - 1);
  const Touch* kept = d.keep(std::move(t));
  d.emit(touch).more = kept;
}

void check_product_start(Warp& w, const Insn* i, const ProductRegisters& registers) {
  if (!check_attached(*w.cta)) return;
  WarpShadow& own = *w.shadow;
  if (!own.product_fence) {
    warn(w, i->y, i->y, "starts a wgmma before any wgmma.fence",
         "wgmma.fence must come before the first wgmma of a kernel; ptxas inserts one (C7519)");
    own.product_fence = true;
  }
  for (const std::vector<uint32_t>* each : {&registers.d, &registers.a}) {
    for (uint32_t r : *each) {
      if (r >= own.unfenced.size() || !own.unfenced[r]) continue;
      warn(w, i->y, own.unfenced[r] - 1,
           "starts a wgmma whose register operand was written after the last wgmma.fence",
           "wgmma.fence must stand between the write and the wgmma; ptxas inserts one (C7519)");
      own.unfenced.clear();
      break;
    }
  }
  own.products.push_back({&registers, &w.frame(), w.wgmma_committed + 1, i->y});
}

void check_product_wait(Warp& w, uint32_t pending) {
  if (!check_attached(*w.cta)) return;
  uint64_t complete = w.wgmma_committed > pending ? w.wgmma_committed - pending : 0;
  std::erase_if(w.shadow->products, [&](const Product& p) { return p.group <= complete; });
}

void check_product_fence(Warp& w) {
  if (!check_attached(*w.cta)) return;
  w.shadow->unfenced.clear();
  w.shadow->product_fence = true;
}

}  // namespace ptxb::emu
