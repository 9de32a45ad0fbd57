// Owns divergence: splitting a warp, joins at postdominators, waiting for named lanes, leaving.
// Handlers call these; none of them knows an opcode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/warp.h"

namespace ptxb::emu {

// Leaves the run loop; the current split goes on at `pc` once it is Ready again.
const Insn* suspend(Warp& w, const Insn* pc, Wait wait);
const Insn* pause(Warp& w, const Insn* pc, Pause why);
// Lanes `taken` of the current split go to `target`, the others on; they meet again at `join`
// (nullptr: nowhere). Returns where the run loop goes on.
const Insn* diverge(Warp& w, const Insn* fall_through, const Insn* target, uint32_t taken,
                    const Insn* join);
const Insn* arrive_at_join(Warp& w, const Insn* i);
// True: all lanes of `needed` execute i together (Warp::exec may have grown). False: parked, return
// nullptr.
bool converge(Warp& w, const Insn* i, uint32_t needed);
// The same for bar.warp.sync: lanes wait at any such instruction for each other; those parked
// elsewhere go on from there.
bool rendezvous(Warp& w, const Insn* i, uint32_t needed);
// Lanes of w.mask end for ever. Returns false when no lane of the current split is left.
bool exit_lanes(Warp& w);
// Lanes of the current split return to their caller together. Returns where to go on.
const Insn* return_lanes(Warp& w);
// Picks the next Ready split and makes it current; false when there is none.
bool pick_split(Warp& w);
// Breaks every join that lanes wait at; true when that made one Ready.
bool break_joins(Warp& w);
bool has_ready(const Warp& w);

}  // namespace ptxb::emu
