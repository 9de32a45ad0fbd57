// Owns the interface between execution and check mode. With no checker attached none of it runs on
// the hot path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/warp.h"

namespace ptxb::emu {

// Some lanes of a warp have ended: barriers that counted on them are looked at again
// (op_barrier.cc).
void warp_done(Warp& w);

struct Launch;
class Checker;
Checker* make_checker(Launch& launch);
void delete_checker(Checker* checker);

void check_start(Cluster& cluster);  // its blocks are about to run
bool check_attached(const Cta& cta);
void check_barrier_arrive(Warp& w, uint32_t id);
void check_barrier_complete(Cta& cta, uint32_t id);
void check_cluster_arrive(Warp& w);
void check_cluster_complete(Cluster& cluster);

}  // namespace ptxb::emu
