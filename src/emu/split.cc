// Owns divergence and reconvergence of the lanes of a warp. Never executes an instruction of the
// program.
// SPDX-License-Identifier: Apache-2.0
#include "emu/split.h"

#include <algorithm>

#include "emu/worker.h"

namespace ptxb::emu {
namespace {

int32_t new_join(Warp& w, const Insn* place, const Frame* frame, uint32_t mask, int32_t parent) {
  Join join{place, frame, mask, 0, parent, false};
  if (w.free_joins.empty()) {
    w.joins.push_back(join);
    return static_cast<int32_t>(w.joins.size() - 1);
  }
  int32_t index = w.free_joins.back();
  w.free_joins.pop_back();
  w.joins[static_cast<size_t>(index)] = join;
  return index;
}

Join& join_at(Warp& w, int32_t index) { return w.joins[static_cast<size_t>(index)]; }

void enter(Warp& w, const Split& s) {
  w.exec = w.mask = s.mask;
  w.r = s.frame->registers;
}

// A split's lanes leave `join` for good; siblings waiting there may now be complete.
void leave_join(Warp& w, int32_t index, uint32_t lanes_out) {
  Join& join = join_at(w, index);
  join.mask &= ~lanes_out;
  join.arrived &= ~lanes_out;
  if (join.mask == 0) {
    w.free_joins.push_back(index);
    return;
  }
  if (join.arrived == join.mask) {
    for (Split& s : w.splits)
      if (s.join == index && s.wait == Wait::Join) s.wait = Wait::Ready;
  }
}

void erase_split(Warp& w, size_t index) {
  w.splits.erase(w.splits.begin() + static_cast<std::ptrdiff_t>(index));
  if (w.current > static_cast<int>(index)) --w.current;
}

// Ancestors of a join chain, innermost first.
bool chain_contains(Warp& w, int32_t chain, int32_t wanted) {
  for (int32_t j = chain; j >= 0; j = join_at(w, j).parent)
    if (j == wanted) return true;
  return wanted < 0;
}

}  // namespace

const Insn* suspend(Warp& w, const Insn* pc, Wait wait) {
  Split& s = w.split();
  s.pc = pc;
  s.wait = wait;
  return nullptr;
}

const Insn* pause(Warp& w, const Insn* pc, Pause why) {
  w.split().pc = pc;
  w.pause = why;
  return nullptr;
}

const Insn* diverge(Warp& w, const Insn* fall_through, const Insn* target, uint32_t taken,
                    const Insn* join) {
  Split& s = w.split();
  int32_t node = s.join;
  if (join && (node < 0 || join_at(w, node).place != join || join_at(w, node).frame != s.frame))
    node = new_join(w, join, s.frame, s.mask, s.join);
  Split away{target, s.frame, taken, node, Wait::Ready, 0, 0};
  if (join && target == join) {
    away.wait = Wait::Join;
    join_at(w, node).arrived |= taken;
  }
  s.mask &= ~taken;
  s.join = node;
  w.exec = w.mask = s.mask;
  w.splits.push_back(away);  // `s` dangles from here on
  return fall_through;
}

const Insn* arrive_at_join(Warp& w, const Insn* i) {
  for (;;) {
    Split& s = w.split();
    if (s.join < 0) return i + 1;
    int32_t index = s.join;
    Join& join = join_at(w, index);
    if (join.place != i || join.frame != s.frame) return i + 1;
    if (join.broken) {
      s.join = join.parent;
      leave_join(w, index, s.mask);
      continue;
    }
    join.arrived |= s.mask;
    if (join.arrived != join.mask) return suspend(w, i, Wait::Join);
    uint32_t all = join.mask;
    int32_t parent = join.parent;
    for (size_t k = w.splits.size(); k-- > 0;)
      if (static_cast<int>(k) != w.current && w.splits[k].join == index) erase_split(w, k);
    w.free_joins.push_back(index);
    Split& merged = w.split();
    merged.mask = all;
    merged.join = parent;
    w.exec = w.mask = all;
  }
}

bool converge(Warp& w, const Insn* i, uint32_t needed) {
  if ((w.exec & needed) == needed) return true;
  Split& s = w.split();
  s.pc = i;
  uint32_t together = w.exec;
  for (const Split& other : w.splits)
    if (other.wait == Wait::Converge && other.pc == i && other.frame == s.frame)
      together |= other.mask;
  if ((together & needed) != needed) {
    s.wait = Wait::Converge;
    s.needed = needed;
    return false;
  }
  // One split again. Its join is the innermost one that all of them are inside of.
  int32_t join = s.join;
  for (const Split& other : w.splits)
    if (other.wait == Wait::Converge && other.pc == i && other.frame == s.frame)
      while (!chain_contains(w, other.join, join)) join = join_at(w, join).parent;
  for (size_t k = w.splits.size(); k-- > 0;) {
    const Split other = w.splits[k];
    bool self = static_cast<int>(k) == w.current;
    if (!self && !(other.wait == Wait::Converge && other.pc == i && other.frame == w.split().frame))
      continue;
    for (int32_t j = other.join; j != join;) {
      int32_t parent = join_at(w, j).parent;
      leave_join(w, j, other.mask);
      j = parent;
    }
    if (!self) erase_split(w, k);
  }
  Split& merged = w.split();
  merged.mask = together;
  merged.join = join;
  w.exec = w.mask = together;
  return true;
}

bool rendezvous(Warp& w, const Insn* i, uint32_t needed) {
  if ((w.exec & needed) == needed) return true;
  uint32_t here = w.exec, together = w.exec;
  for (const Split& other : w.splits) {
    if (other.wait != Wait::Converge || other.pc->fn != i->fn) continue;
    together |= other.mask;
    if (other.pc == i && other.frame == w.split().frame) here |= other.mask;
  }
  if ((together & needed) != needed) {
    Split& s = w.split();
    s.pc = i;
    s.wait = Wait::Converge;
    s.needed = needed;
    return false;
  }
  for (Split& other : w.splits) {
    if (other.wait != Wait::Converge || other.pc->fn != i->fn) continue;
    if (other.pc == i && other.frame == w.split().frame) continue;
    if ((other.mask & needed) == 0) continue;
    ++other.pc;
    other.wait = Wait::Ready;
  }
  return converge(w, i, here);
}

bool exit_lanes(Warp& w) {
  uint32_t gone = w.mask;
  Split& s = w.split();
  w.exited |= gone;
  for (int32_t j = s.join; j >= 0;) {
    int32_t parent = join_at(w, j).parent;
    leave_join(w, j, gone);
    j = parent;
  }
  for (Frame* f = s.frame; f;) {
    Frame* caller = f->caller;
    f->live &= ~gone;
    if (f->live == 0 && caller) free_frame(w, f);
    f = caller;
  }
  s.mask &= ~gone;
  w.exec = w.mask = s.mask;
  // Siblings that wait for these lanes look again.
  for (Split& other : w.splits)
    if (other.wait == Wait::Converge) other.wait = Wait::Ready;
  if (s.mask) return true;
  erase_split(w, static_cast<size_t>(w.current));
  w.current = -1;
  return false;
}

const Insn* return_lanes(Warp& w) {
  Split& s = w.split();
  Frame* frame = s.frame;
  // Joins of the callee end here: a return is where all its paths meet.
  while (s.join >= 0 && join_at(w, s.join).frame == frame) {
    int32_t index = s.join;
    s.join = join_at(w, index).parent;
    leave_join(w, index, s.mask);
  }
  const Insn* resume = frame->resume;
  s.frame = frame->caller;
  frame->live &= ~s.mask;
  if (frame->live == 0) free_frame(w, frame);
  enter(w, s);
  return resume;
}

bool has_ready(const Warp& w) {
  return std::any_of(w.splits.begin(), w.splits.end(),
                     [](const Split& s) { return s.wait == Wait::Ready; });
}

bool pick_split(Warp& w) {
  size_t count = w.splits.size();
  if (count == 0) return false;
  size_t first = w.current < 0 ? 0 : static_cast<size_t>(w.current) + 1;
  for (size_t k = 0; k < count; ++k) {
    size_t index = (first + k) % count;
    if (w.splits[index].wait != Wait::Ready) continue;
    w.current = static_cast<int>(index);
    enter(w, w.splits[index]);
    return true;
  }
  return false;
}

bool break_joins(Warp& w) {
  bool woke = false;
  for (Split& s : w.splits) {
    if (s.wait != Wait::Join) continue;
    join_at(w, s.join).broken = true;
    s.wait = Wait::Ready;
    woke = true;
  }
  return woke;
}

}  // namespace ptxb::emu
